"""Which items need another vote (ours, ActiveLab, random), and what the game adds to a model of aggregated labels.

Prints two tables; `python benchmarks/crowd.py`. Needs cleanlab and the tables of FLORAL_DATA.
"""

import numpy as np
from sklearn.svm import SVC

from floral_learn import FloralClassifier, aggregate_votes, poison_votes
from floral_learn.crowd import next_tasks
from floral_learn.evaluation.crowds.peers import _frame, _held_out
from floral_learn.evaluation.crowds.problems import load_problem

CROWDS = (("satimage", "sparse"), ("spambase", "sparse"), ("phoneme", "sparse"), ("banknote", "tail"))
THREATS = (("none", 0.0), ("pair", 0.3), ("far", 0.4))


def attacked(problem, attack, level, seed):
    if attack == "none":
        return problem.votes
    options = {"missing": -1, "classes": problem.classes, "random_state": seed}
    return poison_votes(problem.votes, problem.X, problem.y, attack=attack, budget=level, **options).votes


def aggregated(problem, votes):
    return aggregate_votes(votes, problem.X, missing=-1, classes=problem.classes, random_state=0)


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


def main():
    print("| data | attack | before | random | ActiveLab | next_tasks |\n|---|---|---|---|---|---|")
    asked, games = [], []
    for name, kind in CROWDS:
        problem = load_problem(name, kind, 0)
        n = len(problem.y) // 5
        for attack, level in THREATS:
            votes = attacked(problem, attack, level, 0)
            found = aggregated(problem, votes)
            choices = {
                "random": np.random.default_rng(1).choice(len(problem.y), n, replace=False),
                "ActiveLab": active_lab(problem, votes, n),
                "next_tasks": next_tasks(found, n)["item"].to_numpy(dtype=int),
            }
            before = float((found.labels == problem.y).mean())
            row = [before] + [after(problem, votes, c, np.random.default_rng(2)) for c in choices.values()]
            asked.append(row)
            print(f"| {name} | {attack} {level:.0%} | " + " | ".join(f"{v:.3f}" for v in row) + " |", flush=True)
            trusted = found.probability.max(axis=1) > 0.9
            game = {"C": 1.0, "budget": 0.05, "random_state": 0}
            models = (
                SVC(C=1.0).fit(problem.X, found.labels),
                FloralClassifier(**game).fit(problem.X, found.labels),
                FloralClassifier(**game).fit(problem.X, found.labels, trusted=trusted),
            )
            games.append((name, attack, level, [m.score(problem.X_test, problem.y_test) for m in models]))
    print("| mean | | " + " | ".join(f"{v:.3f}" for v in np.mean(asked, axis=0)) + " |\n")
    print("| data | attack | SVC | FLORAL | FLORAL, sure labels trusted |\n|---|---|---|---|---|")
    for name, attack, level, scores in games:
        print(f"| {name} | {attack} {level:.0%} | " + " | ".join(f"{v:.3f}" for v in scores) + " |")
    print("| mean | | " + " | ".join(f"{v:.3f}" for v in np.mean([g[3] for g in games], axis=0)) + " |")


if __name__ == "__main__":
    main()
