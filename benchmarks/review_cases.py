"""Reviews beside the bench: the paper's data with answers, attackers who know who asks, reviewers who err or lie.

    python benchmarks/review_cases.py --parts paper strategies reviewers --jobs 4 --rows runs/cases.jsonl

One line of JSON per finished case; cases whose line is there are not run again. ``--limit`` seconds stop the script in
good order. ``benchmarks/questions_results.py`` makes the tables.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.svm import SVC

from floral_bench.cell_data import load, poisoned_labels
from floral_bench.questions.orders import ORDERS, available
from floral_bench.questions.problems import given_labels, problem
from floral_bench.suites import SUITES
from floral_learn import FloralClassifier, LabelReview
from floral_learn.attacks import poison

MARKS = (10, 20, 50, 100)
SUITES_WITH_ANSWERS = ("moon", "moon-alfa", "moon-alfa-tilt", "moon-lfa", "mnist-alfa-tilt")
STRATEGY_DATA = ("phoneme", "magic04", "pima")
REVIEWER_DATA = ("pima", "phoneme", "spambase", "htru2", "banknote", "magic04")
REVIEWERS = ("right", "wrong in 5 %", "not sure in 20 %", "two, one lying", "two in turn, one lying", "liar alone")
INPUTS = ("plain", "weighted", "sparse", "uneven")
SEED = 5


def cases(parts: list[str]) -> list[dict[str, Any]]:
    """Every case of `parts`, the dearest to know first."""
    found: list[dict[str, Any]] = []
    if "paper" in parts:
        for seed in (1, 2, 3, 4, 5):
            for name in SUITES_WITH_ANSWERS:
                if seed <= (2 if name.startswith("mnist") else 5):
                    levels = [lv for lv in SUITES[name].levels if lv > 0 or name in ("moon", "mnist-alfa-tilt")]
                    found += [{"part": "paper", "suite": name, "level": lv, "seed": seed} for lv in levels[::-1]]
    if "strategies" in parts:
        for split in (1, 2):
            for name in STRATEGY_DATA:
                for known in ("nothing", "review", *available()):
                    orders = ("review", *available()) if known == "nothing" else (known,)
                    found.append(
                        {"part": "strategies", "data": name, "split": split, "known": known, "against": list(orders)}
                    )
                found += [
                    {"part": "strategies", "data": name, "split": split, "known": "nothing", "group_size": size,
                     "against": ["review"]}
                    for size in (1, 2, 10, 20)
                ]  # fmt: skip
    if "reviewers" in parts:
        for split in (1,):
            for name in REVIEWER_DATA:
                for attack, level in (("clean", 0.0), ("random", 30.0), ("farthest", 30.0)):
                    case = {"part": "reviewers", "data": name, "split": split, "attack": attack, "level": level}
                    found += [{**case, "reviewer": who, "input": "plain"} for who in REVIEWERS]
                    found += [{**case, "reviewer": "right", "input": how} for how in INPUTS[1:]]
    return found


def run(case: dict[str, Any]) -> dict[str, Any]:
    """A case with its results: accuracy of SVC on given and clean labels, and by number of answers."""
    started = time.perf_counter()
    try:
        found = {"paper": paper, "strategies": strategies, "reviewers": reviewers}[case["part"]](case)
    except Exception as error:  # one broken case must not stop the others
        found = {"error": f"{type(error).__name__}: {error}"}
    return {**case, **found, "seconds": round(time.perf_counter() - started, 2)}


def paper(case: dict[str, Any]) -> dict[str, Any]:
    """The paper's data, C and gamma: SVC and FLORAL on given labels, on labels as read after answers, on clean ones."""
    suite = SUITES[case["suite"]]
    number, setting = suite.seeds.index(case["seed"]), suite.settings[0]
    data = suite.data[number]
    rows = load(data)
    attack = suite.attack_at(suite.attacks[0], case["level"], setting)
    given = rows.y_train_clean if attack is None else poisoned_labels(data, attack, [case["level"]], case["seed"])[0]
    models = {
        "svm": SVC(C=setting[0], gamma=setting[1], cache_size=1000),
        "floral": FloralClassifier(C=setting[0], gamma=setting[1]),
    }
    review = LabelReview(rows.X_train, given, random_state=case["seed"])
    found: dict[str, Any] = {"wrong": {"0": float((given != rows.y_train_clean).mean())}}
    for name, model in models.items():
        found[name] = {"0": float(model.fit(rows.X_train, given).score(rows.X_test, rows.y_test))}
        found[f"{name}, clean labels"] = float(
            model.fit(rows.X_train, rows.y_train_clean).score(rows.X_test, rows.y_test)
        )
    for count in _answered(review, rows.y_train_clean):
        found["wrong"][str(count)] = float((review.labels != rows.y_train_clean).mean())
        for name, model in models.items():
            found[name][str(count)] = float(review.train(model).score(rows.X_test, rows.y_test))
    return found


def strategies(case: dict[str, Any]) -> dict[str, Any]:
    """`evasive` at 30 %, its groups where the reviewer whom the attacker knows asks least, against reviewers."""
    data = problem(case["data"], case["split"])
    truth = data.y_train_clean
    strategy = None if case["known"] == "nothing" else lambda X, y: asked_share(case["known"], X, y)
    given = poison(
        data.X_train, truth, "evasive", int(0.3 * len(truth)), random_state=case["split"], strategy=strategy,
        group_size=case.get("group_size", 5),
    ).y  # fmt: skip
    found = _plain(data, given)
    for order in case["against"]:
        review = LabelReview(data.X_train, given, classes=data.classes, random_state=_seed(case))
        ranked = None
        if order != "review":
            ranked = ORDERS[order](data.X_train, given, np.random.default_rng(_seed(case)))
        found[order] = {
            str(count): float(review.train(SVC()).score(data.X_test, data.y_test))
            for count in _answered(review, truth, ranked)
        }
    return found


def asked_share(order: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How likely a reviewer is to ask about each row, as an attacker finds out on the clean labels: three tries.

    A row near one that was asked about counts too: an answer tells about its neighbours.
    """
    counts = np.zeros(len(y))
    gamma = 1.0 / (X.shape[1] * X.var())
    for attempt in range(3):
        if order == "review":
            review = LabelReview(X, y, random_state=1000 + attempt)
            for _ in _answered(review, y):
                pass
            asked = np.array([entry["row"] for entry in review.history])
        else:
            asked = ORDERS[order](X, y, np.random.default_rng(1000 + attempt))[: MARKS[-1]]
        far = ((X[:, None, :] - X[None, asked, :]) ** 2).sum(axis=2)
        counts += np.exp(-gamma * far).sum(axis=1)
    return counts


def reviewers(case: dict[str, Any]) -> dict[str, Any]:
    """Our questions, answered by people who err, do not know or lie; rows weighted, sparse, or of uneven classes."""
    data = problem(_uneven(case["data"]) if case["input"] == "uneven" else case["data"], case["split"])
    given = given_labels(data.name, case["split"], case["attack"], case["level"])
    rng = np.random.default_rng(_seed(case))
    options: dict[str, Any] = {}
    X = data.X_train
    if case["input"] == "weighted":
        options["sample_weight"] = rng.uniform(0.2, 5.0, len(given))
    if case["input"] == "sparse":
        X = sparse.csr_matrix(X)
    found = _plain(data, given, options.get("sample_weight"))
    review = LabelReview(X, given, classes=data.classes, random_state=_seed(case), **options)
    answers = _teller(case["reviewer"], data.y_train_clean, data.classes, rng)
    for count in _answered(review, data.y_train_clean, answers=answers):
        found.setdefault("review", {})[str(count)] = float(review.train(SVC()).score(data.X_test, data.y_test))
    found["reviewers"] = {name: round(error, 3) for name, error in review.reviewers.items()}
    return found


def _uneven(name: str) -> str:
    return f"{name}-rare" if name in ("spambase", "phoneme") else "imbalanced" if name == "pima" else "htru2"


def _teller(who: str, truth: np.ndarray, classes: np.ndarray, rng: np.random.Generator) -> Any:
    """``answers(rows, turn)`` -> (labels, reviewer) pairs."""
    lies = np.where(truth == classes[0], classes[1], classes[0])
    erring = np.where(rng.random(len(truth)) < 0.05, lies, truth)
    sure = rng.random(len(truth)) >= 0.2

    def answers(rows: np.ndarray, turn: int) -> list[tuple[list[Any], str]]:
        if who == "wrong in 5 %":
            return [(erring[rows].tolist(), "Ada")]
        if who == "not sure in 20 %":
            return [([t if s else None for t, s in zip(truth[rows], sure[rows], strict=True)], "Ada")]
        if who == "two, one lying":
            return [(truth[rows].tolist(), "Ada"), (lies[rows].tolist(), "Mal")]
        if who == "two in turn, one lying":
            return [(truth[rows].tolist(), "Ada")] if turn % 2 else [(lies[rows].tolist(), "Mal")]
        if who == "liar alone":
            return [(lies[rows].tolist(), "Mal")]
        return [(truth[rows].tolist(), "Ada")]

    return answers


def _answered(
    review: LabelReview, truth: np.ndarray, ranked: np.ndarray | None = None, answers: Any = None
) -> Iterator[int]:
    """Ask and answer; yields at each mark: one by one up to 10, then by fives and by tens, as in the bench."""
    count, turn = 0, 0
    for mark in MARKS:
        while count < mark:
            step = min(1 if count < 10 else 5 if count < 20 else 10, mark - count)
            rows = review.ask(step) if ranked is None else ranked[count:mark]
            if not len(rows):
                return
            for labels, name in [(truth[rows], "reviewer")] if answers is None else answers(rows, turn):
                review.answer(rows, labels, reviewer=name)
            count, turn = count + len(rows), turn + 1
        yield count


def _plain(data: Any, given: np.ndarray, weight: np.ndarray | None = None) -> dict[str, Any]:
    return {
        "svc": float(SVC().fit(data.X_train, given, weight).score(data.X_test, data.y_test)),
        "clean": float(SVC().fit(data.X_train, data.y_train_clean, weight).score(data.X_test, data.y_test)),
    }


def _seed(case: dict[str, Any]) -> int:
    return zlib.crc32(f"{case['data']} {case['split']} {SEED}".encode()) % 2**31


def key(case: dict[str, Any]) -> str:
    """What tells a case from the others."""
    names = ("part", "suite", "data", "level", "seed", "split", "known", "group_size", "attack", "reviewer", "input")
    return json.dumps([case.get(name) for name in names])


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=("paper", "strategies", "reviewers"), required=True)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=float("inf"))
    parser.add_argument("--only", default="", help="cases whose key holds this text")
    given = parser.parse_args()
    started = time.perf_counter()
    known = set()
    if given.rows.exists():
        known = {key(json.loads(line)) for line in given.rows.read_text(encoding="utf-8").splitlines()}
    left = [case for case in cases(given.parts) if key(case) not in known and given.only in key(case)]
    print(f"{len(left)} cases to run, {len(known)} known", file=sys.stderr, flush=True)
    given.rows.parent.mkdir(parents=True, exist_ok=True)
    work = Parallel(n_jobs=given.jobs, return_as="generator_unordered", batch_size=1, pre_dispatch=given.jobs)(
        delayed(run)(case) for case in left if time.perf_counter() - started < given.limit
    )
    with given.rows.open("a", encoding="utf-8") as out:
        for number, row in enumerate(work, 1):
            out.write(json.dumps(row) + "\n")
            out.flush()
            if number % 20 == 0:
                print(f"{number} of {len(left)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
