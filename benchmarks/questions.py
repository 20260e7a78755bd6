"""What answers bring back of the accuracy that poison took: LabelReview and its peers, on development or report data.

    python benchmarks/questions.py run choose --jobs 16 --rows rows.jsonl     # other rules, on development data sets
    python benchmarks/questions.py run report --jobs 16 --rows rows.jsonl     # as shipped with peers, on the others
    python benchmarks/questions.py page rows.jsonl --about "date, commit, command"   # docs/results/answers.md, its
                                                                              # picture, and the table of docs/cost.md
    python benchmarks/questions.py variants rows.jsonl                        # of every rule
    python benchmarks/questions.py run made --splits 2 --rows made.jsonl      # as shipped, on made-up tables; sums:
                                                                              # `variants made.jsonl`

A cell is a data set, a split and a kind of flips (500 training rows where nothing else is said, 2,500 test rows,
columns standardised). Questions come one by one up to ten, then by fives up to twenty, then by tens, as a busy person
would take them. A person is simulated who knows the true labels and errs now and then. Recovered: the share of
(accuracy on clean labels less accuracy on given ones) that comes back, where poison took more than 0.02. Cells in which
a class vanishes are left out. Known lines of ``--rows`` are not run again. Nobody was timed for the table of costs: the
seconds of an answer are the reader's.
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
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from made_tables import TABLES, made_table
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

from floral_bench.datasets import load_imdb
from floral_learn import LabelReview

ROOT = Path(__file__).resolve().parents[1]
ROWS = 500  # training rows of a cell
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
MADE = {"made-up tables": tuple(TABLES)}
NARROW = ("magic04", "htru2", "banknote", "letters")  # on which other models than SVC are trained, too
OTHER_MODELS: dict[str, Any] = {
    "forest": RandomForestClassifier(50, min_samples_leaf=2, random_state=0),
    "logistic": LogisticRegression(max_iter=500),
    "boosting": HistGradientBoostingClassifier(max_iter=30, random_state=0),
}


@cache
def source(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All rows and true classes of a data set."""
    home = Path(os.environ["FLORAL_DATA"])
    if name == "digits":
        return datasets.load_digits(return_X_y=True)
    if name in TABLES:
        return made_table(name)
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


def split(name: str, seed: int, most: int = ROWS) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
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

# Shares of random questions; all else is as shipped.
VARIANTS: dict[str, float] = {"shipped": 0.1, "no random rows": 0.0, "random rows, our reading": 1.0}
PEERS = ("most doubtful", "active label cleaning", "uncertainty sampling", "at random")
STRIP = "five rows per answer"
# a person's seconds: for one row, for each further one of a strip; and how often an odd row of a strip is overlooked
ONE_ROW, FURTHER_ROW, OVERLOOKED = 4.0, 1.5, 0.05


def asked_by_strips(review: LabelReview, y: np.ndarray, rng: np.random.Generator) -> Iterator[int]:
    """Answer strips of five rows that the posterior holds alike; yields each number of single answers of equal time."""
    spent, marks = 0.0, list(MARKS)
    while marks:
        row, drawn = review.questions(1)[0]
        rows = np.array([row])
        if not drawn:  # rows of the random order stay single
            posterior = review.beliefs.posterior
            like = np.flatnonzero(review.beliefs.free & (review.given == review.given[row]))
            here, there = posterior.moments(rows), posterior.moments(like)
            shared = posterior.weights @ (posterior.covariance(here, there)[:, 0] / np.sqrt(there.variance))
            rows = np.concatenate([rows, like[(like != row)][np.argsort(-shared[like != row])[:4]]])
        spent += ONE_ROW + FURTHER_ROW * (len(rows) - 1)
        missed = (rng.random(len(rows)) < OVERLOOKED) & (len(rows) > 1)
        review.answer(rows, np.where(missed, review.given[rows], y[rows]))
        while marks and spent >= ONE_ROW * marks[0]:
            yield marks.pop(0)


def asked_one_by_one(review: LabelReview, y: np.ndarray, rng: np.random.Generator, errors: float) -> Iterator[int]:
    """Answer single rows, of which a share of `errors` is wrong; yields each of MARKS when it is reached."""
    classes = np.unique(y)
    count = 0
    while count < max(MARKS):
        rows = review.ask(1 if count < 10 else 5 if count < 20 else 10)
        errs = rng.random(len(rows)) < errors
        said = [rng.choice(classes[classes != v]) if err else v for v, err in zip(y[rows], errs, strict=True)]
        review.answer(rows, said)
        count += len(rows)
        if count in MARKS:
            yield count


def run_cell(job: dict[str, Any]) -> dict[str, Any]:
    """One data set, split, kind of flips and rule (or peer)."""
    warnings.filterwarnings("ignore")
    X, Xt, y, yt = split(job["data"], job["split"], job["rows"])
    rng = np.random.default_rng([job["split"], zlib.crc32(f"{job['data']} {job['kind']} {job['share']}".encode())])
    given = flipped(job["kind"], job["share"], X, y, rng)
    if len(np.unique(given)) < len(np.unique(y)):
        return {**job, "left_out": True}
    found: dict[str, Any] = {**job, "given": SVC().fit(X, given).score(Xt, yt), "clean": SVC().fit(X, y).score(Xt, yt)}
    found["train"] = {}
    start = time.process_time()
    if job["variant"] in PEERS:
        for count, labels in enumerate(fixed_orders(X, y, given, job["variant"], job["split"]), 1):
            if count in MARKS:
                found["train"][str(count)] = SVC().fit(X, labels).score(Xt, yt)
        return {**found, "seconds": time.process_time() - start}
    review = LabelReview(X, given, random_state=job["split"], random_share=VARIANTS.get(job["variant"], 0.1))
    strips = job["variant"] == STRIP
    marks = asked_by_strips(review, y, rng) if strips else asked_one_by_one(review, y, rng, job.get("errors", 0.0))
    others = OTHER_MODELS if job.get("others") else {}
    found |= {"unweighted": {}, "shares": {}, "others": {}}
    for count in map(str, marks):
        found["train"][count] = review.train(SVC()).score(Xt, yt)
        found["unweighted"][count] = review.train(SVC(), weighted=False).score(Xt, yt)
        share = review.wrong_share
        found["shares"][count] = [float((given != y).mean()), share.low, share.high] if share.known else None
        for name, model in others.items():
            found["others"].setdefault(name, {})[count] = review.train(model).score(Xt, yt)
    for name, model in others.items():
        found["others"][name]["given"] = clone(model).fit(X, given).score(Xt, yt)
        found["others"][name]["clean"] = clone(model).fit(X, y).score(Xt, yt)
    return {**found, "seconds": time.process_time() - start}


def jobs_of(what: str, splits: int) -> list[dict[str, Any]]:
    """All cells, the most telling first."""
    groups = {"choose": DEVELOPMENT, "report": REPORT, "made": MADE}[what]
    base = [
        {"group": group, "data": name, "split": s, "kind": kind, "share": share, "rows": ROWS}
        for s in range(splits) for kind, share in KINDS for group, names in groups.items() for name in names
        if s < 2 or share > 0  # clean labels, which no answer contradicts, twice
    ]  # fmt: skip
    first, few = [c for c in base if c["split"] == 0], [c for c in base if c["split"] < 2]
    if what == "choose":
        return [{**c, "variant": v} for v in VARIANTS for c in base]
    jobs = [{**c, "variant": "shipped"} for c in base]
    if what == "made":
        return jobs
    jobs += [{**c, "variant": "random rows, our reading"} for c in few]
    jobs += [{**c, "variant": "shipped", "errors": e} for e in (0.1, 0.05) for c in few]
    jobs += [{**c, "variant": v} for c in first for v in PEERS]
    jobs += [{**c, "variant": "shipped", "others": True} for c in base if c["split"] < 3 and c["data"] in NARROW]
    jobs += [{**c, "variant": STRIP} for c in few if c["share"] == 0.3]
    large = [c for c in first if c["data"] in ("a9a", "magic04") and c["kind"] in ("far", "one class", "near")]
    jobs += [{**c, "variant": "shipped", "rows": rows} for rows in (2000, 8000) for c in large if c["share"] == 0.3]
    return jobs


# -- tables ------------------------------------------------------------------------------------------------------------

Cells = list[dict[str, Any]]
GROUPS = ("tables", "embeddings", "several classes", "many classes")
FLIPS = ("far", "one class", "near", "random")


def mean(values: list[float]) -> float:
    """The mean, NaN of nothing."""
    return float(np.mean(values)) if values else float("nan")


def recovered(cells: Cells, how: str = "train") -> str:
    """Shares in % of what poison took that came back by number of answers: of the sums; and the median cell's."""
    hit = [r for r in cells if r["clean"] - r["given"] > 0.02]
    if not hit:
        return "-"
    lost = [r["clean"] - r["given"] for r in hit]
    back = [np.array([r[how][str(m)] - r["given"] for r in hit]) for m in MARKS]
    sums = " / ".join(f"{100 * b.sum() / sum(lost):.0f}" for b in back)
    return f"{sums} ({' / '.join(f'{100 * np.median(b / lost):.0f}' for b in back)})"


def cell_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """What tells the cell of a line, whoever chose its rows."""
    return row["data"], row["split"], row["kind"], row["share"], row["rows"]


def plain_rows(rows: Cells) -> Cells:
    """Lines of 500 rows, right answers, and the model that all have, SVC."""
    return [r for r in rows if not r.get("errors") and r["rows"] == ROWS and not r.get("others")]


def recovery_table(rows: Cells) -> list[str]:
    """Markdown: recovered shares by group and by kind of flips, for the review and its peers, on the same cells."""
    variants = [v for v in ("shipped", "random rows, our reading", *PEERS) if any(r["variant"] == v for r in rows)]
    parts = [("all, 30 %", [r for r in rows if r["share"] == 0.3])]
    parts += [(g, [r for r in rows if r["group"] == g and r["share"] == 0.3]) for g in GROUPS]
    parts += [(f"{k} flips, 30 %", [r for r in rows if r["kind"] == k and r["share"] == 0.3]) for k in FLIPS]
    parts += [("far flips, 10 %", [r for r in rows if r["share"] == 0.1])]
    table = ["| cells | splits | number | " + " | ".join(variants) + " |", "|---|---|---|" + "---|" * len(variants)]
    for name, cells in parts:
        ours = [r for r in cells if r["variant"] == "shipped" and r["clean"] - r["given"] > 0.02]
        if not ours:
            continue
        splits = len({r["split"] for r in ours})
        table.append(f"| {name} | {splits} | {len(ours)} | {recovered(ours)} |" + " |" * (len(variants) - 1))
        # and what the others were run on
        run = [{cell_of(r) for r in cells if r["variant"] == v} for v in variants]
        both = set.intersection(*run)
        each = [[r for r in cells if r["variant"] == v and cell_of(r) in both] for v in variants]
        number = sum(r["clean"] - r["given"] > 0.02 for r in each[0])
        if len(variants) > 1 and number:
            splits = len({r["split"] for r in each[0]})
            table.append(f"| | {splits} | {number} | " + " | ".join(recovered(c) for c in each) + " |")
    return table


def ahead_line(rows: Cells) -> str:
    """In how many cells the review is ahead of the best peer, after a hundred answers."""
    by: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    for r in rows:
        if r["clean"] - r["given"] > 0.02:
            by[cell_of(r)][r["variant"]] = r["train"]["100"]
    pairs = [(c["shipped"], max(c[p] for p in PEERS)) for c in by.values() if {"shipped", *PEERS} <= set(c)]
    ahead = sum(a > b for a, b in pairs)
    return f"After 100 answers the review is ahead of the best of all four peers in {ahead} of {len(pairs)} cells."


def harm_table(rows: Cells) -> list[str]:
    """Markdown: what answers bring and cost behind four models, where poison took little and in all cells.

    Differences are means over the splits of a data set and a kind of flips.
    """
    table = [
        "| model | recovered at 10 / 20 / 50 / 100 | cells | where poison took at most 0.02: mean difference | worst "
        "| cells | all cells: worst | share of them below -0.005 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    shipped = [r for r in rows if r["variant"] == "shipped" and not r.get("errors") and r["rows"] == ROWS]
    for name in ("SVC", *OTHER_MODELS):
        told = [{**r, **r["train"]} for r in shipped if name == "SVC" and not r.get("others")]
        told += [{**r, **r["others"][name]} for r in shipped if name in r.get("others", {})]
        groups: dict[tuple[Any, ...], Cells] = defaultdict(list)
        for t in told:
            groups[t["data"], t["kind"], t["share"]].append(t)
        keys = ("given", "clean", *map(str, MARKS))
        means = [{k: mean([t[k] for t in part]) for k in keys} for part in groups.values()]
        soft = [t for t in means if t["clean"] - t["given"] <= 0.02]
        hit = [t for t in means if t["clean"] - t["given"] > 0.02]
        lost = max(sum(t["clean"] - t["given"] for t in hit), 1e-9)
        apart = {
            w: [[t[str(m)] - t["given"] for t in part] for m in MARKS] for w, part in (("soft", soft), ("all", means))
        }
        back = " / ".join(f"{100 * sum(t[str(m)] - t['given'] for t in hit) / lost:.0f}" for m in MARKS)
        average = " / ".join(f"{mean(h):+.4f}" for h in apart["soft"])
        worst = {w: " / ".join(f"{min(h, default=0.0):+.3f}" for h in apart[w]) for w in apart}
        below = " / ".join(f"{100 * mean([v < -0.005 for v in h]):.0f} %" for h in apart["all"])
        table.append(
            f"| {name} | {back} | {len(hit)} | {average} | {worst['soft']} | {len(soft)} | {worst['all']} | {below} |"
        )
    return table


def random_width(share: float, answers: int) -> float:
    """Width of the 90 % interval (Jeffreys) of a share from so many answers about random rows."""
    low, high = beta.ppf([0.05, 0.95], share * answers + 0.5, (1 - share) * answers + 0.5)
    return float(high - low)


def interval_table(rows: Cells) -> list[str]:
    """Markdown: how often the interval of `wrong_share` holds, and how wide it is."""
    kinds = (*FLIPS, "clean")
    table = [
        "| wrong answers | answers | cells | covered | " + " | ".join(kinds) + " | width over that of random answers |",
        "|---|---|---|---|" + "---|" * len(kinds) + "---|",
    ]
    shipped = [r for r in rows if r["variant"] == "shipped" and r["rows"] == ROWS and not r.get("others")]
    for errors in sorted({r.get("errors", 0.0) for r in shipped}):
        for m in ("20", "50", "100"):
            cells = [(r["kind"], *r["shares"][m]) for r in shipped if r.get("errors", 0.0) == errors and r["shares"][m]]
            inside = [low - 1e-9 <= truth <= high + 1e-9 for _, truth, low, high in cells]
            by_kind = [mean([i for i, c in zip(inside, cells, strict=True) if c[0] == k]) for k in kinds]
            ratio = mean([c[3] - c[2] for c in cells]) / mean([random_width(c[1], int(m)) for c in cells])
            each = " | ".join(f"{100 * v:.0f} %" for v in (mean(inside), *by_kind))
            table.append(f"| {100 * errors:.0f} % | {m} | {len(cells)} | {each} | {ratio:.2f} |")
    return table


def same_cells_table(rows: Cells, others: list[tuple[str, Cells]]) -> list[str]:
    """Markdown: the review beside something else, each on the cells that both have."""
    ours = {cell_of(r)[:4]: r for r in plain_rows(rows) if r["variant"] == "shipped"}
    table = ["| | cells | recovered | the review on 500 rows, right answers, one row each |", "|---|---|---|---|"]
    for name, cells in others:
        both = [r for r in cells if cell_of(r)[:4] in ours and r["clean"] - r["given"] > 0.02]
        beside = [ours[cell_of(r)[:4]] for r in both]
        if both:
            table.append(f"| {name} | {len(both)} | {recovered(both)} | {recovered(beside)} |")
    return table


LOST = ((15, np.inf), (5, 15), (2, 5), (-np.inf, 2))  # points that wrong labels took
SECONDS = (10, 30)  # per answer: a row of familiar columns, a text or picture to be looked at
COST = ROOT / "docs" / "cost.md"
COST_MARKS = "<!-- table of benchmarks/questions.py -->\n", "<!-- end of table -->"


def cost_table(rows: Cells) -> str:
    """Markdown: by the points lost to wrong labels, points that came back and minutes per point."""
    cells = [r for r in plain_rows(rows) if r["variant"] == "shipped"]
    head = ["points lost", "cells", "answers", "points back (median)", "minutes", "minutes per point"]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    for low, high in LOST:
        name = f"more than {low}" if high == np.inf else f"{low} to {high}"
        name = f"less than {high}" if low == -np.inf else name
        inside = [c for c in cells if low <= 100 * (c["clean"] - c["given"]) < high]
        lost = mean([100 * (c["clean"] - c["given"]) for c in inside])
        for m in MARKS if inside else ():
            back = [100 * (c["train"][str(m)] - c["given"]) for c in inside]
            begin = [f"{name} (mean {lost:.1f})", str(len(inside))] if m == MARKS[0] else [""] * 2
            price = " / ".join(f"{m * s / 60 / mean(back):.1f}" if mean(back) >= 0.5 else "-" for s in SECONDS)
            minutes = " / ".join(f"{m * s / 60:.0f}" for s in SECONDS)
            row = [*begin, str(m), f"{mean(back):+.1f} ({np.median(back):+.1f})", minutes, price]
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def cost_page(rows: Cells, text: str) -> str:
    """The page docs/cost.md with the table as the rows have it."""
    before, rest = text.split(COST_MARKS[0])
    return before + COST_MARKS[0] + cost_table(rows) + COST_MARKS[1] + rest.split(COST_MARKS[1])[1]


def draw(rows: Cells, path: Path) -> None:
    """Recovered shares by number of answers, of the review and of other ways to spend them, on the same cells."""
    from matplotlib.figure import Figure

    names = ("shipped", "random rows, our reading", "most doubtful", "at random")
    words = ("LabelReview", "random rows, read by its rule", "most doubtful labels fixed", "random labels fixed")
    rows = [r for r in plain_rows(rows) if r["share"] == 0.3 and r["clean"] - r["given"] > 0.02]
    both = set.intersection(*({cell_of(r) for r in rows if r["variant"] == name} for name in names))
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axis = figure.subplots()
    for name, word in zip(names, words, strict=True):
        cells = [r for r in rows if r["variant"] == name and cell_of(r) in both]
        lost = sum(r["clean"] - r["given"] for r in cells)
        shares = [100 * sum(r["train"][str(m)] - r["given"] for r in cells) / lost for m in MARKS]
        axis.plot(range(5), [0.0, *shares], marker="o", label=word)
    axis.set_xticks(range(5), ["0", *map(str, MARKS)])
    axis.set(xlabel="answers", ylabel="lost accuracy that came back, %")
    axis.legend(frameon=False)
    figure.savefig(path, dpi=110)


PAGE = """# What answers bring back, beside other ways to spend them

{about}

Data sets: {data}; 500 training rows, columns standardised, every answer right where nothing else is said. Each entry:
the share in % of the accuracy that poison took and that came back after 10 / 20 / 50 / 100 answers, of the sums over
cells, in brackets that of the median cell; cells in which poison took more than 0.02. The model is an SVC:
`review.train(SVC())`. The second line of a pair has the cells on which all columns were run.

*Random rows, our reading*: rows are drawn at random, and the other labels are corrected from the answers by the same
rule: what is left is what the choice of rows brings. The others fix the labels that were answered and train on all.
*Most doubtful*: the least probable labels by held-out logistic regression, fitted again every ten answers. *Active
label cleaning*: Bernhardt et al. (2022), on the same probabilities. *Uncertainty sampling*: margins, by
scikit-activeml. {ahead}

{recovery}

![Lost accuracy that came back by number of answers](answers/answers.png)

A review of a hundred answers takes {seconds:.1f} s of CPU, the models behind it included.

## Harm, and other models

`review.train(model)` after so many answers less the same model on the given labels; means over splits (five behind SVC,
at most three behind the others, which were trained on {narrow}).

{harm}

Weights: the same training labels without them gave back {unweighted} behind SVC, with them {weighted}.

## The interval of `wrong_share`

How often the 90 % interval covers the true share, by kind of flips, where so many answers are wrong, and its mean
width over that of an interval from as many answers about random rows.

{intervals}

## More rows, wrong answers, and several rows per answer

*Five rows per answer*: "are these five all X?" on rows that the posterior holds alike, rows of the random order single;
4 s for one row, 1.5 s for each further one, 5 % of the odd rows overlooked; after the time that 10 / 20 / 50 / 100
single answers take.

{others}
"""


def page(rows: Cells, about: str) -> str:
    """The results page as markdown."""
    plain = plain_rows(rows)
    ours = [r for r in plain if r["variant"] == "shipped"]
    shipped = [r for r in rows if r["variant"] == "shipped" and not r.get("others")]
    others = [(f"{n:,} rows", [r for r in shipped if r["rows"] == n]) for n in (2000, 8000)]
    others += [(f"{e} % of the answers wrong", [r for r in shipped if r.get("errors") == e / 100]) for e in (5, 10)]
    others += [(STRIP, [r for r in rows if r["variant"] == STRIP])]
    return PAGE.format(
        about=about,
        data=", ".join(sorted({r["data"] for r in rows})),
        ahead=ahead_line(plain),
        recovery="\n".join(recovery_table(plain)),
        seconds=mean([r["seconds"] for r in ours]),
        harm="\n".join(harm_table(rows)),
        narrow=", ".join(NARROW),
        unweighted=recovered(ours, "unweighted"),
        weighted=recovered(ours),
        intervals="\n".join(interval_table(rows)),
        others="\n".join(same_cells_table(rows, others)),
    )


def print_variants(rows: Cells) -> None:
    """Recovered shares of every rule."""
    rows = plain_rows(rows)
    for variant in dict.fromkeys(r["variant"] for r in rows):
        mine = [r for r in rows if r["variant"] == variant]
        parts = {"all": mine, **{g: [r for r in mine if r["group"] == g] for g in GROUPS}}
        parts |= {f: [r for r in mine if r["kind"] == f and r["share"] == 0.3] for f in FLIPS}
        print(f"{variant:26s}", "  ".join(f"{name}: {recovered(cells)}" for name, cells in parts.items() if cells))


def _one(job: dict[str, Any], end: float) -> dict[str, Any] | None:
    if time.monotonic() > end:
        return None
    try:
        return run_cell(job)
    except Exception as error:  # one broken cell must not stop the others; its line says why
        return {**job, "left_out": True, "error": f"{type(error).__name__}: {error}"}


_JOB = ("data", "split", "kind", "share", "rows", "variant", "errors", "others")  # what tells a job from others


def run(given: argparse.Namespace) -> None:
    """Cells that the file does not have, line by line."""

    def told(job: dict[str, Any]) -> str:
        return json.dumps({k: bool(job[k]) if k == "others" else job[k] for k in _JOB if job.get(k)})

    known = {told(json.loads(line)) for line in given.rows.read_text().splitlines()} if given.rows.exists() else set()
    todo = [j for j in jobs_of(given.what, given.splits) if given.only in json.dumps(j) and told(j) not in known]
    end = time.monotonic() + given.seconds
    with given.rows.open("a", encoding="utf-8") as stream:
        done = Parallel(n_jobs=given.jobs, batch_size=1, return_as="generator_unordered")
        for found in done(delayed(_one)(job, end) for job in todo):
            if found is not None:
                stream.write(json.dumps(found) + "\n")
                stream.flush()


def main() -> int:
    """Run cells, or make pages of those that ran."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("what", choices=("choose", "report", "made"))
    running.add_argument("--rows", type=Path, required=True)
    running.add_argument("--jobs", type=int, default=2)
    running.add_argument("--splits", type=int, default=1)
    running.add_argument("--seconds", type=float, default=1e9, help="start no cell after so many")
    running.add_argument("--only", default="", help="run jobs whose JSON contains this text")
    for name in ("page", "variants"):
        commands.add_parser(name).add_argument("rows", type=Path)
    commands.choices["page"].add_argument("--about", default="", help="date, commit, machine and command of the run")
    commands.choices["page"].add_argument(
        "--check", action="store_true", help="write nothing; 1 if cost.md is not up to date"
    )
    given = parser.parse_args()
    if given.command == "run":
        run(given)
        return 0
    rows = [json.loads(line) for line in given.rows.read_text().splitlines()]
    rows = [r for r in rows if not r.get("left_out")]
    if given.command == "variants":
        print_variants(rows)
        return 0
    text = COST.read_text(encoding="utf-8")
    if given.check:
        return int(cost_page(rows, text) != text)
    COST.write_text(cost_page(rows, text), encoding="utf-8")
    (ROOT / "docs/results/answers.md").write_text(page(rows, given.about), encoding="utf-8")
    draw(rows, ROOT / "docs/results/answers/answers.png")
    return 0


if __name__ == "__main__":
    import questions  # as a module of its own, which processes find by its name

    raise SystemExit(questions.main())
