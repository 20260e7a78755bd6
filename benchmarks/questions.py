"""What answers bring back of the accuracy that poison took: LabelReview and its peers, on development or report data.

    python benchmarks/questions.py run choose --jobs 16 --rows rows.jsonl     # variants, on development data sets
    python benchmarks/questions.py run report --jobs 16 --rows rows.jsonl     # as shipped with peers, on the others
    python benchmarks/questions.py page rows.jsonl docs/results/answers.md    # recovered shares, harm, intervals
    python benchmarks/questions.py variants rows.jsonl                        # of every variant

A cell is a data set, a split and a kind of flips (at most 1,000 training rows, 2,500 test rows, columns standardised).
Questions come one by one up to ten, then by fives up to twenty, then by tens, as a busy person would take them.
A person is simulated who knows the true labels and errs now and then. Recovered: the share of (accuracy on clean labels
less accuracy on given ones) that comes back, where poison took more than 0.02; harm: accuracy less that on the given
labels, elsewhere. Cells in which a class vanishes are left out. Known lines of ``--rows`` are not run again.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import tempfile
import time
import warnings
import zlib
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import beta
from sklearn import datasets
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_learn import LabelReview
from floral_learn.datasets import load_imdb
from floral_learn.review.rules import RULES

MARKS = (10, 20, 50, 100)
KINDS = (("far", 0.3), ("one class", 0.3), ("near", 0.3), ("random", 0.3), ("far", 0.1), ("clean", 0.0))
# Development sets: rules were chosen on these. Report sets: looked at once, at the end.
DEVELOPMENT = {
    "tables": ("pima", "phoneme", "spambase", "elec2"),
    "embeddings": ("imdb", "mnist-1-7"),
    "several classes": ("trec", "digits", "mnist", "satimage"),
    "many classes": ("trec-fine",),
}
REPORT = {
    "tables": ("a9a", "magic04", "htru2", "banknote"),
    "embeddings": ("catdog",),
    "several classes": ("students", "music"),
    "many classes": ("letters",),
}
MOST_COLUMNS = 20  # up to which other models than SVC are trained, too: boosting takes long in hundreds
OTHER_MODELS: dict[str, Any] = {
    "forest": RandomForestClassifier(50, min_samples_leaf=2, random_state=0),
    "logistic": LogisticRegression(max_iter=500),
    "boosting": HistGradientBoostingClassifier(max_iter=30, random_state=0),
}


@lru_cache(maxsize=4)
def source(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All rows and true classes of a data set."""
    home = Path(os.environ["FLORAL_DATA"])
    if name == "digits":
        return datasets.load_digits(return_X_y=True)
    if name == "letters":  # 26 classes of two clouds each in 16 dimensions, as close as handwritten letters are
        return datasets.make_classification(
            8000,
            16,
            n_informative=12,
            n_redundant=2,
            n_classes=26,
            n_clusters_per_class=2,
            class_sep=1.6,
            random_state=7,
        )
    if name.startswith("mnist"):
        found = np.load(home / "mnist.npz")
        X, y = found["x_train"][:12_000], found["y_train"][:12_000]
        keep = np.isin(y, (1, 7)) if name == "mnist-1-7" else np.arange(len(y)) < 4000
        return X[keep].astype(np.float32), y[keep].astype(int)
    if name == "music":
        found = np.load(home / "tables/music_crowd.npz")
        return np.vstack([found["X"], found["X_test"]]), np.concatenate([found["y"], found["y_test"]]).astype(int)
    if name == "trec-fine":
        X = np.load(home / "tables/trec.npz")["X"]
        with open(home / "tables/trec.csv", encoding="utf-8") as stream:
            fine = np.array([line["fine_label"] for line in csv.DictReader(stream) if line["split"] == "train"])
        _, codes, counts = np.unique(fine, return_inverse=True, return_counts=True)
        keep = counts[codes] >= 60
        return X[keep].astype(np.float32), np.unique(codes[keep], return_inverse=True)[1]
    if name == "imdb":
        return imdb_words()
    found = np.load(home / f"tables/{name}.npz")
    return found["X"].astype(np.float32), found["y"].astype(int)


def imdb_words() -> tuple[np.ndarray, np.ndarray]:
    """3,500 of IMDB's reviews by 100 components of their words; kept beside other temporary files."""
    kept = Path(tempfile.gettempdir()) / "floral-questions-imdb.npz"
    if not kept.is_file():
        data = load_imdb()
        some = np.random.default_rng(0).permutation(len(data.X_train))[:3500]
        words = TfidfVectorizer(min_df=5, max_features=20_000, sublinear_tf=True, stop_words="english")
        counts = words.fit_transform([data.X_train[i] for i in some])
        X = TruncatedSVD(100, random_state=0).fit_transform(counts).astype(np.float32)
        np.savez(kept, X=X, y=np.asarray(data.y_train)[some])
    found = np.load(kept)
    return found["X"], found["y"].astype(int)


def split(name: str, seed: int, most: int = 1000) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test rows, standardised, with true classes."""
    X, y = source(name)
    X = X[:, X.std(axis=0) > 1e-5]
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[: min(most, len(y) // 2)], order[len(y) // 2 :][:2500]
    scale = StandardScaler().fit(X[train])
    return scale.transform(X[train]), scale.transform(X[test]), y[train], y[test]


def flipped(kind: str, share: float, X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Labels of which `share` is wrong: far from a linear boundary, near an rbf one, in one class, or at random."""
    classes, given = np.unique(y), y.copy()
    if kind == "clean":
        return given
    score = rng.random(len(y))
    if kind in ("far", "near"):
        model = LogisticRegression(max_iter=500) if kind == "far" else SVC()
        f = model.fit(X, y).decision_function(X)
        f = np.abs(f) if f.ndim == 1 else (lambda z: z[:, -1] - z[:, -2])(np.sort(f, axis=1))
        score = f if kind == "far" else -f
    elif kind == "one class":
        score += 10 * (y == classes[-1])
    at = np.argsort(-score)[: int(share * len(y))]
    if len(classes) == 2:
        given[at] = classes[0] + classes[1] - y[at]
    elif kind == "one class":
        given[at] = np.where(y[at] == classes[0], classes[1], classes[0])
    else:
        given[at] = [rng.choice(classes[classes != v]) for v in y[at]]
    return given


# -- peers: each fixes the labels that were answered, and no others ---------------------------------------------------


def held_out(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Held-out class probabilities (n, M) by logistic regression."""
    model = LogisticRegression(C=0.01 if X.shape[1] > 100 else 1.0, max_iter=300)
    return cross_val_predict(
        model, X, labels, method="predict_proba", cv=StratifiedKFold(5, shuffle=True, random_state=0)
    )


def uncertain_first(X: np.ndarray, labels: np.ndarray, left: np.ndarray) -> np.ndarray:
    """The rows `left`, ten of them with the smallest margins first: scikit-activeml's uncertainty sampling."""
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import UncertaintySampling

    strategy = UncertaintySampling(method="margin_sampling", random_state=0)
    model = SklearnClassifier(LogisticRegression(max_iter=300), classes=np.unique(labels))
    first = strategy.query(X, labels.astype(float), model, candidates=left, batch_size=10)
    return np.concatenate([first, left[~np.isin(left, first)]])


def fixed_orders(X: np.ndarray, y: np.ndarray, given: np.ndarray, how: str, seed: int) -> Iterator[np.ndarray]:
    """Labels with 1, 2, ... of them fixed, in the order of a peer."""
    labels, rng = given.copy(), np.random.default_rng(seed)
    left = rng.permutation(len(y))
    for turn in range(max(MARKS)):
        if how != "at random" and turn % 10 == 0 and min(np.bincount(np.unique(labels, return_inverse=True)[1])) >= 5:
            if how == "uncertainty sampling":
                left = uncertain_first(X, labels, left)
                row, left = left[0], left[1:]
                labels[row] = y[row]
                yield labels
                continue
            proba = np.clip(held_out(X, labels), 1e-9, 1)
            codes = np.searchsorted(np.unique(labels), given)
            entropy = -np.log(proba[np.arange(len(y)), codes])  # cross-entropy of the given label
            if how == "active label cleaning":  # less the model's own entropy: Bernhardt et al. 2022, equation 2
                entropy = entropy + (proba * np.log(proba)).sum(axis=1)
            left = left[np.argsort(-entropy[left], kind="stable")]
        row, left = left[0], left[1:]
        labels[row] = y[row]
        yield labels


# -- one cell ----------------------------------------------------------------------------------------------------------

# Rules that are not shipped, each with one thing changed.
VARIANTS: dict[str, dict[str, Any]] = {
    "shipped": {},
    "no looks": {"looks": 0},
    "six looks": {"looks": 6},
    "all columns": {"components": 10**6},
    "32 components": {"components": 32},
    "narrow stretches": {"stretches": (1.0, 6.0)},
    "higher": {"height": 5.0},
    "centre 0": {"centre": 0.0},
    "half random": {"random_share": 0.5},
}
PEERS = ("most doubtful", "active label cleaning", "uncertainty sampling", "at random")


def set_rules(changes: dict[str, Any]) -> dict[str, Any]:
    """Change the review's numbers in this process; returns what they were."""
    before = {name: getattr(RULES, name) for name in changes if hasattr(RULES, name)}
    for name in before:
        object.__setattr__(RULES, name, changes[name])
    return before


def scores_of(
    review: LabelReview, model: Any, X: np.ndarray, Xt: np.ndarray, yt: np.ndarray, *, every: bool = True
) -> dict[str, float]:
    """Test accuracy of `model` on labels as given but where answered, as corrected, as read, and by `train`."""
    if not every:
        return {"train": review.train(model).score(Xt, yt)}
    labels, fixed = review.training_labels, review.given.copy()
    for entry in review.history:
        fixed[entry["row"]] = entry["label"]
    return {
        "fixed": clone(model).fit(X, fixed).score(Xt, yt),
        "corrected": clone(model).fit(X, labels).score(Xt, yt),
        "labels": clone(model).fit(X, review.labels).score(Xt, yt),
        "train": review.train(model).score(Xt, yt),
    }


def shares_of(review: LabelReview, wrong: np.ndarray) -> dict[str, Any]:
    """What the review says of the share of wrong labels, and what another rule would need to say it."""
    share = review.wrong_share
    posterior = review._beliefs.posterior
    drawn = {a.row for a in review._log if a.drawn}
    agreed, given = review._answers.agreed, review._data.codes
    return {
        "truth": float(wrong.mean()),
        "estimate": share.estimate if share.known else None,
        "low": share.low,
        "high": share.high,
        "mean": float(review.wrong_probability.mean()),
        "quantiles": np.quantile(review.wrong_probability, np.linspace(0.01, 0.99, 50)).round(4).tolist(),
        "answered": [
            [round(float(p), 4), int(agreed[int(row)] != given[row]), int(row in drawn)]
            for row, p in zip(posterior.at, posterior.left_out(), strict=True)
        ],
    }


def run_cell(job: dict[str, Any]) -> dict[str, Any]:
    """One data set, split, kind of flips and variant (or peer)."""
    warnings.filterwarnings("ignore")
    X, Xt, y, yt = split(job["data"], job["split"], job.get("rows", 1000))
    rng = np.random.default_rng([job["split"], zlib.crc32(f"{job['data']} {job['kind']} {job['share']}".encode())])
    given = flipped(job["kind"], job["share"], X, y, rng)
    if len(np.unique(given)) < len(np.unique(y)):
        return {**job, "left_out": True}
    found: dict[str, Any] = {**job, "given": SVC().fit(X, given).score(Xt, yt), "clean": SVC().fit(X, y).score(Xt, yt)}
    start = time.perf_counter()
    if job["variant"] in PEERS:
        found["svc"] = {}
        for count, labels in enumerate(fixed_orders(X, y, given, job["variant"], job["split"]), 1):
            if count in MARKS:
                found["svc"][str(count)] = {"train": SVC().fit(X, labels).score(Xt, yt)}
        return {**found, "seconds": time.perf_counter() - start}
    changes = dict(VARIANTS[job["variant"]])
    before = set_rules(changes)
    try:
        options = {"random_share": changes["random_share"]} if "random_share" in changes else {}
        review = LabelReview(X, given, random_state=job["split"], **options)
        found["svc"], found["shares"], found["others"] = {}, {}, {}
        count, classes = 0, np.unique(y)
        others = OTHER_MODELS if job.get("others") and X.shape[1] <= MOST_COLUMNS else {}
        while count < max(MARKS):
            rows = review.ask(1 if count < 10 else 5 if count < 20 else 10)
            errs = rng.random(len(rows)) < job.get("errors", 0.0)
            said = [rng.choice(classes[classes != v]) if err else v for v, err in zip(y[rows], errs, strict=True)]
            review.answer(rows, said)
            count += len(rows)
            if count in MARKS:
                found["svc"][str(count)] = scores_of(review, SVC(), X, Xt, yt, every=not job.get("errors"))
                found["shares"][str(count)] = shares_of(review, given != y)
                for name, model in others.items():
                    found["others"].setdefault(name, {})[str(count)] = review.train(model).score(Xt, yt)
        for name, model in others.items():
            found["others"][name]["given"] = clone(model).fit(X, given).score(Xt, yt)
            found["others"][name]["clean"] = clone(model).fit(X, y).score(Xt, yt)
        found["asked"] = [[entry["row"], int(entry["label"])] for entry in review.history]
        found["guarantee"] = [review.guarantee().low, review.guarantee().high]
    finally:
        set_rules(before)
    return {**found, "seconds": time.perf_counter() - start}


def jobs_of(what: str, splits: int, most: int = 1000) -> list[dict[str, Any]]:
    """All cells, the most telling first."""
    groups = DEVELOPMENT if what == "choose" else REPORT
    base = [
        {"group": group, "data": name, "split": s, "kind": kind, "share": share, "rows": most}
        for s in range(splits) for kind, share in KINDS for group, names in groups.items() for name in names
    ]  # fmt: skip
    if what == "choose":
        strong = [c for c in base if c["share"] == 0.3]
        return [{**c, "variant": "shipped", "others": True} for c in base] + [
            {**c, "variant": v} for v in VARIANTS if v != "shipped" for c in strong
        ]
    jobs = [{**c, "variant": "shipped", "others": True} for c in base]
    jobs += [{**c, "variant": "shipped", "errors": e} for e in (0.1, 0.05) for c in base]
    return jobs + [{**c, "variant": v} for c in base for v in PEERS]


# -- tables ------------------------------------------------------------------------------------------------------------

Cells = list[dict[str, Any]]
GROUPS = ("tables", "embeddings", "several classes", "many classes")


def mean(values: list[float]) -> float:
    """The mean, NaN of nothing."""
    return float(np.mean(values)) if values else float("nan")


def poisoned(cells: Cells) -> Cells:
    """Cells in which poison took more than 0.02."""
    return [r for r in cells if r["clean"] - r["given"] > 0.02]


def recovered(cells: Cells, how: str = "train") -> str:
    """Shares in % of what poison took that came back by number of answers: of the sums; and the median cell's."""
    hit = poisoned(cells)
    if not hit:
        return "-"
    back = {m: [r["svc"][str(m)][how] - r["given"] for r in hit] for m in MARKS}
    lost = [r["clean"] - r["given"] for r in hit]
    sums = " / ".join(f"{100 * sum(back[m]) / sum(lost):.0f}" for m in MARKS)
    middle = " / ".join(f"{100 * np.median(np.array(back[m]) / lost):.0f}" for m in MARKS)
    return f"{sums} ({middle})"


def recovery_table(rows: Cells) -> list[str]:
    """Markdown: recovered shares by group and by kind of flips, for the review and its peers."""
    variants = list(dict.fromkeys(r["variant"] for r in rows))
    parts = [(g, [r for r in rows if r["group"] == g]) for g in GROUPS]
    parts += [(f"{k} flips", [r for r in rows if r["kind"] == k]) for k in ("far", "one class", "near", "random")]
    head = ["| cells | number | " + " | ".join(variants) + " |", "|---|---|" + "---|" * len(variants)]
    for name, cells in [("all", rows), *parts]:
        each = [[r for r in cells if r["variant"] == v] for v in variants]
        count = max(len(poisoned(c)) for c in each)
        if count:
            head.append(f"| {name} | {count} | " + " | ".join(recovered(c) for c in each) + " |")
    return head


def ahead_line(rows: Cells) -> str:
    """In how many cells the review is ahead of the best peer, after a hundred answers."""
    by: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    for r in poisoned(rows):
        by[r["data"], r["split"], r["kind"], r["share"]][r["variant"]] = r["svc"]["100"]["train"]
    pairs = [(c["shipped"], max(c[p] for p in PEERS)) for c in by.values() if {"shipped", *PEERS} <= set(c)]
    ahead = sum(a > b for a, b in pairs)
    return f"After 100 answers the review is ahead of the best of all peers in {ahead} of {len(pairs)} cells."


def harm_table(rows: Cells) -> list[str]:
    """Markdown: what answers cost where poison took little, and bring elsewhere, behind four models."""
    table = [
        "| model | recovered at 10 / 20 / 50 / 100 | cells | "
        "mean difference where poison took little, at 10 / 20 / 50 / 100 | worst | cells |",
        "|---|---|---|---|---|---|",
    ]
    shipped = [r for r in rows if r["variant"] == "shipped" and not r.get("errors")]
    for name in ("SVC", *OTHER_MODELS):
        told = [
            {**r, **{str(m): r["svc"][str(m)]["train"] for m in MARKS}} if name == "SVC" else {**r, **r["others"][name]}
            for r in shipped
            if name == "SVC" or name in r["others"]
        ]
        hit = [t for t in told if t["clean"] - t["given"] > 0.02]
        soft = [t for t in told if t["clean"] - t["given"] <= 0.02]
        lost = max(sum(t["clean"] - t["given"] for t in hit), 1e-9)
        back = " / ".join(f"{100 * sum(t[str(m)] - t['given'] for t in hit) / lost:.0f} %" for m in MARKS)
        harm = [[t[str(m)] - t["given"] for t in soft] for m in MARKS]
        means = " / ".join(f"{mean(h):+.4f}" for h in harm)
        worst = " / ".join(f"{min(h, default=0.0):+.3f}" for h in harm)
        table.append(f"| {name} | {back} | {len(hit)} | {means} | {worst} | {len(soft)} |")
    return table


def random_width(share: float, answers: int) -> float:
    """Width of the 90 % interval (Jeffreys) of a share from so many answers about random rows."""
    low, high = beta.ppf([0.05, 0.95], share * answers + 0.5, (1 - share) * answers + 0.5)
    return float(high - low)


def interval_table(rows: Cells) -> list[str]:
    """Markdown: how often the interval of `wrong_share` holds, and how wide it is."""
    kinds = ("far", "one class", "near", "random", "clean")
    table = [
        "| wrong answers | answers | covered | " + " | ".join(kinds) + " | width over that of as many random answers |",
        "|---|---|---|" + "---|" * len(kinds) + "---|",
    ]
    shipped = [r for r in rows if r["variant"] == "shipped"]
    for errors in sorted({r.get("errors", 0.0) for r in shipped}):
        for m in ("20", "50", "100"):
            cells = [{**r["shares"][m], "kind": r["kind"]} for r in shipped if r.get("errors", 0.0) == errors]
            cells = [c for c in cells if c["estimate"] is not None]
            inside = [c["low"] - 1e-9 <= c["truth"] <= c["high"] + 1e-9 for c in cells]
            width = [c["high"] - c["low"] for c in cells]
            fair = [random_width(c["truth"], int(m)) for c in cells]
            by_kind = [mean([i for i, c in zip(inside, cells, strict=True) if c["kind"] == k]) for k in kinds]
            each = " | ".join(f"{100 * v:.0f} %" for v in by_kind)
            table.append(f"| {errors:.0%} | {m} | {mean(inside):.0%} | {each} | {mean(width) / mean(fair):.2f} |")
    return table


PAGE = """# What answers bring back, beside other ways to spend them

{about}

Data sets: {data}; at most {most:,} training rows, columns standardised, flips of 30 % (and 10 % far ones),
splits: {splits}.
Each entry: the share in % of the accuracy that poison took and that came back after 10 / 20 / 50 / 100 answers, of the
sums over cells, in brackets that of the median cell; cells in which poison took more than 0.02. The model is an SVC:
`review.train(SVC())`. Peers fix the labels that were answered and train on all.
*most doubtful*: the least probable labels by held-out logistic regression, fitted again every ten answers. *active
label cleaning*: Bernhardt et al. (2022), on the same probabilities. *uncertainty sampling*: margins, by
scikit-activeml. {ahead}

{recovery}

A review of a hundred answers takes {seconds:.0f} s on one core, the models behind it included.

## Harm, and other models

`review.train(model)` after so many answers; where poison took little: at most 0.02 of that model's accuracy. Other
models than SVC on data of at most {columns} columns.

{harm}

SVC on the same labels, trained in other ways, recovered in % at 10 / 20 / 50 / 100: given labels with the answers put
in {fixed}; corrected labels without weights {corrected}; all of `review.labels` {labels}.

## The interval of `wrong_share`

How often the 90 % interval covers the true share, by kind of flips, where so many answers are wrong, and its mean
width over that of an interval from as many answers about random rows.

{intervals}
"""


def page(rows: Cells, about: str) -> str:
    """The results page as markdown."""
    rows = [r for r in rows if not r.get("left_out")]
    plain = [r for r in rows if not r.get("errors")]
    ours = [r for r in plain if r["variant"] == "shipped"]
    return PAGE.format(
        about=about,
        data=", ".join(sorted({r["data"] for r in rows})),
        most=max(r.get("rows", 1000) for r in rows),
        splits=len({r["split"] for r in rows}),
        ahead=ahead_line(plain),
        recovery="\n".join(recovery_table(plain)),
        seconds=mean([r["seconds"] for r in plain if r["variant"] == "shipped"]),
        harm="\n".join(harm_table(rows)),
        columns=MOST_COLUMNS,
        fixed=recovered(ours, "fixed"),
        corrected=recovered(ours, "corrected"),
        labels=recovered(ours, "labels"),
        intervals="\n".join(interval_table(rows)),
    )


def print_variants(rows: Cells) -> None:
    """Recovered shares of every variant, in three ways of training."""
    rows = [r for r in rows if not r.get("left_out") and not r.get("errors")]
    for how in ("train", "corrected", "labels"):
        print(f"\n{how}: recovered in % after {MARKS} answers, of sums (median)")
        for variant in dict.fromkeys(r["variant"] for r in rows if r["variant"] not in PEERS):
            mine = [r for r in rows if r["variant"] == variant]
            parts = {"all": mine, **{g: [r for r in mine if r["group"] == g] for g in GROUPS}}
            print(f"{variant:17s}", "  ".join(f"{name}: {recovered(cells, how)}" for name, cells in parts.items()))


def _one(job: dict[str, Any], end: float) -> dict[str, Any] | None:
    if time.monotonic() > end:
        return None
    try:
        return run_cell(job)
    except Exception as error:  # one broken cell must not stop the others; its line says why
        return {**job, "left_out": True, "error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Run cells, or print tables of those that ran."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("what", choices=("choose", "report"))
    run.add_argument("--rows", type=Path, required=True)
    run.add_argument("--jobs", type=int, default=2)
    run.add_argument("--splits", type=int, default=1)
    run.add_argument("--most", type=int, default=1000, help="training rows of a cell, at most")
    run.add_argument("--seconds", type=float, default=1e9, help="start no cell after so many")
    run.add_argument("--only", default="", help="run jobs whose JSON contains this text")
    for name in ("page", "variants"):
        commands.add_parser(name).add_argument("rows", type=Path)
    commands.choices["page"].add_argument("out", type=Path)
    commands.choices["page"].add_argument("--about", default="", help="date, commit, machine and command of the run")
    given = parser.parse_args()
    if given.command != "run":
        found = [json.loads(line) for line in given.rows.read_text().splitlines()]
        if given.command == "page":
            given.out.write_text(page(found, given.about), encoding="utf-8")
        else:
            print_variants(found)
        return
    done = set()
    if given.rows.exists():
        done = {
            json.dumps({k: v for k, v in json.loads(s).items() if k in _JOB})
            for s in given.rows.read_text().splitlines()
        }
    todo = [j for j in jobs_of(given.what, given.splits, given.most) if given.only in json.dumps(j)]
    todo = [j for j in todo if json.dumps({k: v for k, v in j.items() if k in _JOB}) not in done]
    end = time.monotonic() + given.seconds

    with given.rows.open("a", encoding="utf-8") as stream:
        for found in Parallel(n_jobs=given.jobs, return_as="generator_unordered")(delayed(_one)(j, end) for j in todo):
            if found is not None:
                stream.write(json.dumps(found) + "\n")
                stream.flush()


_JOB = ("group", "data", "split", "kind", "share", "rows", "variant", "errors")  # what tells a job from others

if __name__ == "__main__":
    import questions  # as a module of its own, which processes find by its name

    questions.main()
