"""How well planted poison is found: the audit's score beside cleanlab and k-NN, and how well suspicion is calibrated.

python benchmarks/audit.py detect --data moon --cache DIR      rows of one data set as CSV, in DIR (resumable)
python benchmarks/audit.py table --cache DIR                   the tables of docs/results/audit.md
python benchmarks/audit.py reliability --cache DIR             reliability curves, docs/images/audit_reliability.png
python benchmarks/audit.py recovery                            docs/images/audit_recovery.png
python benchmarks/audit.py stability                           the lemmas' bounds, docs/images/audit_stability.png
python benchmarks/audit.py embed --cache DIR                   embeddings of 2,000 IMDB reviews (needs transformers)

The score was designed on Moon and digits; breast cancer, MNIST and IMDB were looked at once, for the table.
"""

import argparse
import csv
import json
import lzma
import os
import warnings
from pathlib import Path

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_learn import FloralClassifier, load_mnist, load_moon, poison
from floral_learn.attacks import ATTACKS
from floral_learn.audit import RecoveryDisplay, audit, recovery
from floral_learn.audit.neighbours import find_neighbours
from floral_learn.audit.views import build_grams, look
from floral_learn.datasets import DataNotFoundError
from floral_learn.theory import stability, summarise

LEVELS = (5, 10, 20, 30)
DESIGN = ("moon", "digits", "digits-parity")
DATA = (*DESIGN, "breast-cancer", "mnist", "imdb")
LFA_ROWS = 600  # lfa retrains a victim for every candidate: it gets the first rows only
DOCS = Path(__file__).resolve().parents[1] / "docs"
METHODS = ("floral audit", "label_issues", "cleanlab", "cleanlab, plain SVC", "k-NN 20", "k-NN 50")


def load(name, cache):
    if name == "moon":
        data = load_moon(1)
        return np.array(data.X_train), (data.y_train > 0).astype(int)
    if name.startswith("digits"):
        X, y = load_digits(return_X_y=True)
        return X / 16.0, y if name == "digits" else y % 2
    if name == "breast-cancer":
        X, y = load_breast_cancer(return_X_y=True)
        return StandardScaler().fit_transform(X), y
    if name == "mnist":
        data = load_mnist(n_train=2000, seed=0)
        return np.array(data.X_train), (data.y_train > 0).astype(int)
    with np.load(cache / "imdb_embeddings.npz") as stored:
        return stored["X"], stored["y"]


def poisoned(name, attack, level, cache):
    """Features, true labels and labels after the attack; None where the attack is not defined."""
    X, y = load(name, cache)
    if attack == "lfa":
        X, y = X[:LFA_ROWS], y[:LFA_ROWS]
    path = cache / "labels" / f"{name}_{attack}_{level}.npy"
    if not path.exists():
        settings = {"gamma": 1.0} if name == "moon" and attack in ("alfa", "alfa-tilt") else {}
        if attack == "alfa-tilt":
            settings["n_restarts"] = 50
        if len(np.unique(y)) > 2 and (not ATTACKS[attack].multiclass or attack == "lfa"):
            return None
        path.parent.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.save(path, poison(X, y, attack, level / 100, random_state=0, **settings).y)
    return X, y, np.load(path)


def out_of_fold(X, y, model):
    """Probabilities (n, M) of a model for rows that it was not trained on."""
    out = np.zeros((len(y), y.max() + 1))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        f = clone(model).fit(X[train], y[train]).decision_function(X[test])
        out[test] = np.column_stack([expit(-2 * f), expit(2 * f)]) if f.ndim == 1 else softmax(2 * f, axis=1)
    return out


def by_cleanlab(y, p):
    """Rank as cleanlab does: the issues that it finds first, by self-confidence, then the others."""
    from cleanlab.filter import find_label_issues

    found = np.zeros(len(y))
    found[find_label_issues(y, p, return_indices_ranked_by="self_confidence", n_jobs=1)] = 1
    return found + 1 - p[np.arange(len(y)), y]


def scores(X, y):
    """Every method's suspicion of every label; larger is worse."""
    rng = np.random.default_rng(0)
    near = find_neighbours(X, rng)
    views = look(build_grams(X, rng), y, y.max() + 1, 0)
    issues = FloralClassifier(budget=0.1, n_rounds=200, random_state=0).fit(X, y).label_issues()
    ranked = np.empty(len(y))
    ranked[issues["row"]] = issues["suspicion"]
    _, order = NearestNeighbors(n_neighbors=51).fit(X).kneighbors(X)
    differs = y[order[:, 1:]] != y[:, None]
    return {
        "floral audit": (views.disagreement + near.disagreement(y)) / 2,  # what audit() ranks by
        "label_issues": ranked,
        "cleanlab": by_cleanlab(y, out_of_fold(X, y, FloralClassifier(budget=0.1, n_rounds=150, random_state=0))),
        "cleanlab, plain SVC": by_cleanlab(y, out_of_fold(X, y, SVC(C=10.0))),
        "k-NN 20": differs[:, :20].mean(axis=1),
        "k-NN 50": differs.mean(axis=1),
    }


def detect(args):
    done = args.cache / f"detect_{args.data}.csv"
    seen = set()
    if done.exists():
        seen = {(r["attack"], int(r["level"])) for r in csv.DictReader(done.open())}
    for attack in args.attack or ATTACKS:
        for level in LEVELS:
            if (attack, level) in seen or (case := poisoned(args.data, attack, level, args.cache)) is None:
                continue
            X, true, given = case
            wrong = true != given
            rows = []
            for method, score in scores(X, given).items():
                top = np.argsort(-score, kind="stable")[: wrong.sum()]
                rows.append(
                    [args.data, attack, level, method, average_precision_score(wrong, score), wrong[top].mean()]
                )
            fresh = not done.exists()
            with done.open("a", newline="") as stream:
                writer = csv.writer(stream)
                if fresh:
                    writer.writerow(["data", "attack", "level", "method", "ap", "precision"])
                writer.writerows(rows)
            print(args.data, attack, level, *(f"{r[3]} {r[4]:.3f}" for r in rows), flush=True)


def read_rows(cache):
    rows = []
    for path in sorted(cache.glob("detect_*.csv")):
        rows += [dict(r, level=int(r["level"]), ap=float(r["ap"]), precision=float(r["precision"]))
                 for r in csv.DictReader(path.open())]  # fmt: skip
    # A case that was run twice counts once.
    return list({(r["data"], r["attack"], r["level"], r["method"]): r for r in rows}.values())


def table(args):
    rows = read_rows(args.cache)
    for data in DATA:
        here = [r for r in rows if r["data"] == data]
        if not here:
            continue
        print(f"\n### {data}\n\n| attack | flips | " + " | ".join(METHODS) + " |")
        print("|---|---|" + "---|" * len(METHODS))
        for attack in ATTACKS:
            for level in LEVELS:
                cell = {r["method"]: r for r in here if (r["attack"], r["level"]) == (attack, level)}
                if len(cell) < len(METHODS):
                    continue
                best = max(round(r["ap"], 2) for r in cell.values())
                texts = [
                    f"{'**' if round(cell[m]['ap'], 2) == best else ''}{cell[m]['ap']:.2f}"
                    f"{'**' if round(cell[m]['ap'], 2) == best else ''} / {cell[m]['precision']:.2f}"
                    for m in METHODS
                ]
                print(f"| {attack} | {level} % | " + " | ".join(texts) + " |")
    print("\n### Means\n\n| data | attacks | " + " | ".join(METHODS) + " | floral wins |")
    print("|---|---|" + "---|" * (len(METHODS) + 1))
    scattered = ("random", "class-biased")
    for data in DATA:
        for name, chosen in (("scattered", scattered), ("adversarial", [a for a in ATTACKS if a not in scattered])):
            here = [r for r in rows if r["data"] == data and r["attack"] in chosen]
            if not here:
                continue
            mean = {m: np.mean([r["ap"] for r in here if r["method"] == m]) for m in METHODS}
            cases = {(r["attack"], r["level"]) for r in here}
            ap = {(r["attack"], r["level"], r["method"]): r["ap"] for r in here}
            wins = sum(ap[(*c, METHODS[0])] >= max(ap[(*c, m)] for m in METHODS[2:]) - 0.005 for c in cases)
            best = max(mean.values())
            cells = [f"**{v:.3f}**" if v == best else f"{v:.3f}" for v in mean.values()]
            print(f"| {data} | {name} | " + " | ".join(cells) + f" | {wins} of {len(cases)} |")


def reliability(args):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
    edges = np.array([0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0001])
    print("| data | attack | flips | expected wrong | truly wrong | flagged | of these wrong | ECE |\n|" + "---|" * 8)
    for ax, attacks in zip(axes, (("random",), ("farthest", "near-boundary", "alfa", "gradient"))):
        for data in args.data.split(","):
            pooled_p, pooled_w = [], []
            for attack in attacks:
                for level in LEVELS if len(attacks) == 1 else (10,):
                    X, true, given = poisoned(data, attack, level, args.cache)
                    p, wrong = audit(X, given, random_state=0).suspicion, true != given
                    bins = np.digitize(p, edges) - 1
                    error = sum(abs(p[bins == b].sum() - wrong[bins == b].sum()) for b in range(len(edges))) / len(p)
                    high = p >= 0.5
                    hit = f"{100 * wrong[high].mean():.0f} %" if high.any() else "-"
                    cells = [data, attack, f"{level} %", f"{p.sum():.0f}", wrong.sum(), high.sum(), hit, f"{error:.3f}"]
                    print("| " + " | ".join(map(str, cells)) + " |", flush=True)
                    pooled_p.append(p)
                    pooled_w.append(wrong)
            p, wrong = np.concatenate(pooled_p), np.concatenate(pooled_w)
            bins = np.digitize(p, edges) - 1
            used = [b for b in range(len(edges)) if (bins == b).sum() >= 10]
            ax.plot([p[bins == b].mean() for b in used], [wrong[bins == b].mean() for b in used], "o-", label=data)
        ax.plot([0, 1], [0, 1], color="0.6", linestyle=":")
        ax.set(xlabel="suspicion", xlim=(0, 1.02), ylim=(0, 1.02))
        ax.set_title(", ".join(attacks) + " flips", fontsize=10)
    axes[0].set_ylabel("share of labels that are wrong")
    axes[0].legend(frameon=False)
    figure.savefig(DOCS / "images" / "audit_reliability.png", dpi=100)


def stability_figure(args):
    import matplotlib.pyplot as plt

    games = stability(n_games=500, rounds=100, random_state=0)
    found = [game for game in games if game["found"]]
    print(f"{len(found)} of {len(games)} games have an equilibrium\n\n| bound | rounds | violated | games | worst |")
    print("|---|---|---|---|---|")
    for row in summarise(games):
        print("| {bound} | {rounds:,} | {violated:,} | {games} | {worst:.3f} |".format(**row))
    names = ("lemma 1 printed", "lemma 1 proven", "lemma 2 printed", "euclidean")
    figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for height, name in enumerate(names):
        ratio = np.array([game[f"{name}: worst"] for game in found if game[f"{name}: worst"] > 0])
        spread = np.random.default_rng(0).uniform(-0.25, 0.25, len(ratio))
        ax.scatter(ratio, height + spread, s=7, alpha=0.6, color="#0b5fa5" if height else "#b3261e")
    ax.axvline(1, color="0.3", linewidth=1)
    ax.set_yticks(range(len(names)), names)
    ax.set_xlabel("left over right side of the bound, worst round (above 1: violated)")
    figure.savefig(DOCS / "images" / "audit_stability.png", dpi=90)


def recovery_figure(args):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11, 6), layout="constrained")
    for column, level in enumerate((5, 10, 25)):
        try:
            data = load_moon(1, labels=f"farthest-{level}")
        except DataNotFoundError as error:
            print(f"skipped: {error}")
            return
        budget = 2 * {5: 25, 10: 50, 25: 125}[level]
        clf = FloralClassifier(gamma=1.0, C=10.0, budget=budget, learning_rate=5e-4, random_state=0)
        found = recovery(clf.fit(data.X_train, data.y_train), data.poisoned)
        print(
            f"{level} %: B = {budget}, {100 * found.mean:.1f} % of the poisoned labels flipped back a round,", end=" "
        )
        print(f"{100 * found.ever[-1]:.0f} % at least once, precision {100 * np.nanmean(found.precision):.0f} %")
        RecoveryDisplay(found).plot(axes[0, column], label="flipped back")
        RecoveryDisplay(found).plot_points(data.X_train, axes[1, column])
        axes[0, column].set_title(f"Moon, {level} % poisoned (authors' labels)")
    figure.savefig(DOCS / "images" / "audit_recovery.png", dpi=90)


def embed(args):
    """2,000 training reviews by all-MiniLM-L6-v2 (`--model`: a folder or hub name), 256 tokens, mean pooling."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    with lzma.open(Path(os.environ["FLORAL_DATA"]) / "imdb.jsonl.xz", "rt") as stream:
        rows = [r for r in map(json.loads, stream) if r["split"] == "train"]
    rows = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))[:2000]]
    words, model = AutoTokenizer.from_pretrained(args.model), AutoModel.from_pretrained(args.model).eval()
    X = np.zeros((len(rows), 384), dtype=np.float32)
    with torch.inference_mode():
        for start in range(0, len(rows), 16):
            texts = [r["text"] for r in rows[start : start + 16]]
            batch = words(texts, truncation=True, max_length=256, padding=True, return_tensors="pt")
            hidden, mask = model(**batch).last_hidden_state, batch["attention_mask"][..., None]
            pooled = (hidden * mask).sum(1) / mask.sum(1)
            X[start : start + 16] = torch.nn.functional.normalize(pooled, dim=1).numpy()
    np.savez(args.cache / "imdb_embeddings.npz", X=X, y=np.array([r["label"] for r in rows]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="recovery",
                        choices=["detect", "table", "reliability", "recovery", "stability", "embed"])  # fmt: skip
    parser.add_argument("--data", default="moon", help=f"one of {', '.join(DATA)}; several, by commas, for reliability")
    parser.add_argument("--attack", action="append", choices=list(ATTACKS))
    parser.add_argument("--cache", type=Path, default=Path("audit-cache"))
    parser.add_argument("--model", default="sentence-transformers/all-MiniLM-L6-v2")
    chosen = parser.parse_args()
    commands = {"detect": detect, "table": table, "reliability": reliability, "embed": embed}
    commands |= {"recovery": recovery_figure, "stability": stability_figure}
    commands[chosen.what](chosen)
