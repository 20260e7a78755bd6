"""
Votes of annotators who agree on false answers
================================================

Twenty people label digits, about three votes per image. Some of them are owned by an attacker and send each class to
the next one. Counting votes follows them; weighing people by what else they said does not.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from floral_learn import aggregate_votes, poison_votes

X, y = load_digits(n_class=5, return_X_y=True)
X, y = X[:350], y[:350]
rng = np.random.default_rng(0)
said = np.where(rng.random((350, 20)) < 0.75, y[:, None], rng.integers(5, size=(350, 20)))
votes = np.where(rng.random(said.shape) < 0.16, said, -1)

shares = [0.0, 0.2, 0.3, 0.4, 0.48]
decided = []
scores: dict[str, list[float]] = {"majority": [], "without features": [], "with features": []}
for share in shares:
    result = poison_votes(votes, X, y, attack="pair", budget=share, missing=-1, random_state=0)
    counts = np.stack([(result.votes == c).sum(axis=1) for c in range(5)], axis=1)
    scores["majority"].append(float((counts.argmax(axis=1) == y).mean()))
    options = {"missing": -1, "classes": range(5), "random_state": 0}
    scores["without features"].append(float((aggregate_votes(result.votes, **options).labels == y).mean()))
    found = aggregate_votes(result.votes, X, **options)
    scores["with features"].append(float((found.labels == y).mean()))
    decided.append(float(found.decided.mean()))

# %%
# Near one half of the votes the two groups are nearly equal, and which of them lies is no longer in the votes: labels
# are marked as not decided, until a few known answers (``gold``) tell.
gold = {row: int(y[row]) for row in range(10)}
told = aggregate_votes(result.votes, X, gold=gold, **options)
print(f"{decided[-1]:.0%} of the labels are decided, with ten known answers {told.decided.mean():.0%};")
print(f"of these {(told.labels == y).mean():.1%} are right")

# %%
# The people, at the highest share: those in the attacker's hands are crosses. The interval is wide where votes are few.
people = found.annotators
figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
for name, values in scores.items():
    axes[0].plot([100 * share for share in shares], values, "o-", label=name)
axes[0].plot([100 * share for share in shares], decided, ":", color="grey", label="share that is decided")
axes[0].set(xlabel="votes in the attacker's hands (%)", ylabel="labels that are right", ylim=(0, 1.04))
axes[0].legend()
place = np.arange(len(people))
axes[1].hlines(place, 100 * people["low"], 100 * people["high"], color="C0", lw=3, alpha=0.4)
owned = np.isin(people["annotator"], result.annotators)
axes[1].plot(100 * people["reliability"][~owned], place[~owned], "o", color="C0", label="honest")
axes[1].plot(100 * people["reliability"][owned], place[owned], "x", color="C3", label="owned by the attacker")
axes[1].set(xlabel="answers that fit the other evidence (%)", yticks=[], ylabel="people", xlim=(0, 100))
axes[1].invert_yaxis()
axes[1].legend(loc="lower left")
plt.show()
