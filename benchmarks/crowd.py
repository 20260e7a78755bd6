"""Beside `floral bench crowd`: whom to ask next, what the game adds, when labels are decided, authors, a million votes.

`python benchmarks/crowd.py ask game decided groups million` prints a table for each part that is named, by default all.
Needs cleanlab and the tables of FLORAL_DATA.
"""

import argparse
import resource
import time
from functools import partial
from itertools import product

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from floral_bench.crowds.peers import _frame, _held_out
from floral_bench.crowds.problems import load_problem
from floral_learn import FloralClassifier, LabelReview, aggregate_votes, find_label_issues, poison_votes
from floral_learn.crowd import next_tasks

CROWDS = (("satimage", "sparse"), ("spambase", "sparse"), ("phoneme", "sparse"), ("banknote", "tail"))
THREATS = (("none", 0.0), ("pair", 0.3), ("far", 0.4), ("collusion", 0.3))
SEEDS = (0, 1)


def attacked(problem, attack, level, seed, informed=False):
    if not level:
        return problem.votes
    options = {"missing": -1, "classes": problem.classes, "random_state": seed, "informed": informed}
    return poison_votes(problem.votes, problem.X, problem.y, attack=attack, budget=level, **options).votes


def aggregated(problem, votes, **known):
    return aggregate_votes(votes, problem.X, missing=-1, classes=problem.classes, random_state=0, **known)


def active_lab(problem, votes, n):
    """Items in the order of cleanlab's ActiveLab, most in need first."""
    from cleanlab.multiannotator import get_active_learning_scores, get_majority_vote_label

    first = np.asarray(get_majority_vote_label(_frame(votes), verbose=False))
    scores, _ = get_active_learning_scores(_frame(votes), _held_out(problem, first, 0))
    return np.argsort(scores)[:n]


def after(problem, votes, items, rng):
    """Accuracy after one more vote on each item, right three times in four, from a new person."""
    new = np.full((len(votes), 1), -1)
    right = rng.random(len(items)) < 0.75
    other = (problem.y[items] + rng.integers(1, len(problem.classes), size=len(items))) % len(problem.classes)
    new[items, 0] = np.where(right, problem.y[items], other)
    return float((aggregated(problem, np.column_stack([votes, new])).labels == problem.y).mean())


def asking(problem, votes, seed):
    """Accuracy before, and after votes on a fifth of the items: at random, by ActiveLab, by `next_tasks`."""
    found, n = aggregated(problem, votes), len(problem.y) // 5
    choices = (
        np.random.default_rng(seed + 10).choice(len(problem.y), n, replace=False),
        active_lab(problem, votes, n),
        next_tasks(found, n)["item"].to_numpy(dtype=int),
    )
    before = float((found.labels == problem.y).mean())
    return [before] + [after(problem, votes, c, np.random.default_rng(seed + 20)) for c in choices]


def gaming(problem, votes, seed):
    """Test accuracy of models of the aggregated labels: SVC, FLORAL, and FLORAL with fewer rows for its attacker.

    The last two may flip only labels that are less than 90 % sure, and only labels of items on which somebody voted
    whose answers do not fit the rest.
    """
    found = aggregated(problem, votes)
    unsure = found.probability.max(axis=1) <= 0.9
    people = found.annotators
    doubtful = people["annotator"][people["score"] > 0.5].to_numpy(dtype=int)
    touched = (votes[:, doubtful] >= 0).any(axis=1)
    scores = [SVC(C=1.0).fit(problem.X, found.labels).score(problem.X_test, problem.y_test)]
    for free in (np.ones(len(unsure), dtype=bool), unsure, touched):
        budget = min(0.05, float(free.mean()))
        model = FloralClassifier(C=1.0, budget=budget if free.any() else 0, random_state=seed)
        model.fit(problem.X, found.labels, trusted=None if free.all() or not free.any() else ~free)
        scores.append(model.score(problem.X_test, problem.y_test))
    return scores


def deciding(problem, attack, informed, level, seed):
    """Right labels, decided items, right labels among these; the first and second with ten known answers."""
    votes = attacked(problem, attack, level, seed, informed)
    found = aggregated(problem, votes)
    right = found.labels == problem.y
    pool = np.flatnonzero(~found.decided) if (~found.decided).sum() >= 10 else np.arange(len(right))
    gold = np.random.default_rng(seed).choice(pool, 10, replace=False)
    told = aggregated(problem, votes, gold={int(row): int(problem.y[row]) for row in gold})
    among = right[found.decided].mean() if found.decided.any() else np.nan
    return [right.mean(), found.decided.mean(), among, (told.labels == problem.y).mean(), told.decided.mean()]


def line(names, values):
    print(f"| {' | '.join(names)} | " + " | ".join(f"{v:.3f}" for v in values) + " |", flush=True)


def ask_and_game(part):
    heads = {
        "ask": ("before", "random", "ActiveLab", "next_tasks"),
        "game": ("SVC", "FLORAL", "FLORAL, sure labels trusted", "FLORAL, people of good standing trusted"),
    }
    print(f"\n| data | attack | {' | '.join(heads[part])} |\n|---|---|{'---|' * len(heads[part])}")
    measure, rows = {"ask": asking, "game": gaming}[part], []
    for name, kind in CROWDS:
        for attack, level in THREATS:
            each = []
            for seed in SEEDS:
                problem = load_problem(name, kind, seed)
                each.append(measure(problem, attacked(problem, attack, level, seed), seed))
            rows.append(np.mean(each, axis=0))
            line((name, f"{attack} {level:.0%}"), rows[-1])
    line(("mean", ""), np.mean(rows, axis=0))


def decided():
    crowds = (("labelme", "real"), *CROWDS[:3], ("pima", "dense"))
    print(
        "\n| attack | level | right | decided | right among decided | right with 10 answers | decided with 10 answers |"
    )
    print("|---|---|---|---|---|---|---|")
    threats = [("none", False, 0.0)]
    kinds = (("pair", False), ("pair", True), ("collusion", False), ("targeted", True))
    threats += [(attack, informed, level) for attack, informed in kinds for level in (0.2, 0.3, 0.4, 0.45, 0.5)]
    for attack, informed, level in threats:
        found = [deciding(load_problem(name, kind, 0), attack, informed, level, 0) for name, kind in crowds]
        line((attack + (" (informed)" if informed else ""), f"{level:.0%}"), np.nanmean(found, axis=0))


def authored(name, kind, seed=0):
    """Rows, truth, labels of ten people of whom some lie as `kind` says, and who gave each label."""
    problem, rng = load_problem(name, "sparse", seed), np.random.default_rng(seed)
    X, y, n, k = problem.X, problem.y, len(problem.y), len(problem.classes)
    who, given = rng.integers(10, size=n), y.copy()
    careless = rng.random(n) < 0.05
    given[careless] = (y + rng.integers(1, k, size=n))[careless] % k
    near = ((X - X[rng.integers(n)]) ** 2).sum(axis=1)
    if kind == "hard rows":  # an honest person who got the hardest rows, and errs there
        sure = LogisticRegression(C=0.02, max_iter=300).fit(X, y).predict_proba(X).max(axis=1)
        who[np.argsort(sure)[: n // 10]] = 0
    wrong = {
        "nobody lies": np.zeros(n, dtype=bool),
        "hard rows": (who == 0) & (rng.random(n) < 0.25),
        "three always lie": who < 3,
        "four lie half of the time": (who < 4) & (rng.random(n) < 0.5),
        "four lie about one class": (who < 4) & (y == 0),
        "five lie in one region": (who < 5) & (near < np.quantile(near, 0.35)),
    }[kind]
    given[wrong] = (y[wrong] + 1) % k
    return X, y, given, who.astype(str)


def groups():
    """Wrong labels that are left after an audit, and after 0, 10 and 30 answers, without and with `groups`."""
    heads = ["given", "audit", "audit, groups"]
    heads += [f"{m} answers{told}" for told in ("", ", groups") for m in (0, 10, 30)]
    print(f"\n| labels | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    tables = ("satimage", "spambase", "phoneme", "banknote", "pima")
    kinds = ("nobody lies", "hard rows", "three always lie", "four lie half of the time")
    for kind in (*kinds, "four lie about one class", "five lie in one region"):
        rows = []
        for name, seed in product(tables, SEEDS):
            X, y, given, who = authored(name, kind, seed)
            row = [(given != y).mean()]
            row += [
                (find_label_issues(X, given, groups=g, random_state=seed).cleaned_labels() != y).mean()
                for g in (None, who)
            ]
            for told in (None, who):
                review = LabelReview(X, given, groups=told, random_state=seed)
                for count in range(31):
                    if count in (0, 10, 30):
                        row.append((review.labels != y).mean())
                    at = review.ask(1)
                    review.answer(at, y[at])
            rows.append(row)
        line((kind,), np.mean(rows, axis=0))


def million():
    """A million votes of 10,000 people, a fifth of them liars, on 100,000 items with 50 features and 10 classes."""
    rng = np.random.default_rng(0)
    n, people, k = 100_000, 10_000, 10
    y = rng.integers(k, size=n)
    X = rng.normal(size=(n, 50)) + 1.5 * rng.normal(size=(k, 50))[y] / np.sqrt(5)
    import pandas as pd

    item, who = np.repeat(np.arange(n), 10), rng.integers(people, size=10 * n)
    truth = y[item]
    said = np.where(rng.random(len(item)) < 0.75, truth, rng.integers(k, size=len(item)))
    said = np.where(who < people // 5, (truth + 1) % k, said)
    votes = pd.DataFrame({"task": item, "worker": who, "label": said}).drop_duplicates(["task", "worker"])
    wall, cpu = time.perf_counter(), time.process_time()
    found = aggregate_votes(votes, pd.DataFrame(X), random_state=0)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    spent = f"{wall:.0f} s, {cpu:.0f} s of processor time, {peak:.1f} GiB at most"
    right = f"{(found.labels == y).mean():.5f} of the labels right, {found.decided.mean():.3f} decided"
    print(f"\n{len(votes):,} votes: {spent}, {right}", flush=True)


def main():
    parts = {"decided": decided, "groups": groups, "million": million}
    parts |= {name: partial(ask_and_game, name) for name in ("ask", "game")}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *parts], help="what to measure; all of it by default")
    for name in parser.parse_args().parts or parts:
        parts[name]()


if __name__ == "__main__":
    main()
