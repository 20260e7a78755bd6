"""
Spam, and annotators who lie about it
=====================================

Twelve people mark messages as spam or ham, about three votes per message. Some of them work for a sender and call his
lottery spam ham. Counting votes lets it through. Weighing people by what else they said does not, and the words of the
messages tell more. Messages and votes are made up.
"""

# %%
# Five kinds of messages, three of them spam. Honest people are right nine times of ten.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from floral_learn import aggregate_votes

words = {
    "friends": "see you tonight|are you coming|dinner at my place|call me later|the film was great|running late sorry",
    "work": "meeting moved to monday|please review the draft|report is attached|slides for tomorrow|thanks for notes",
    "lottery": "you won the prize|claim your winnings|lucky ticket inside|collect the jackpot|winner selected today",
    "pills": "cheap pills online|no prescription needed|discount pharmacy|lose weight fast|miracle cure inside",
    "loans": "loan approved today|no credit check|cash in minutes|debt gone forever|lowest rate guaranteed",
}
rng = np.random.default_rng(0)
kind = rng.choice(list(words), 400, p=[0.3, 0.3, 0.2, 0.1, 0.1])
texts = [" ".join(rng.choice(words[name].split("|"), 2, replace=False)) for name in kind]
truth = np.where(np.isin(kind, ["friends", "work"]), "ham", "spam")
other = np.where(truth == "ham", "spam", "ham")
said = np.where(rng.random((400, 12)) < 0.9, truth[:, None], other[:, None])
asked = rng.random(said.shape) < 0.25
X = TruncatedSVD(10, random_state=0).fit_transform(TfidfVectorizer().fit_transform(texts))

# %%
# More and more people are bought.
bought, lottery = range(7), kind == "lottery"
caught: dict[str, list[float]] = {"majority": [], "votes weighed": [], "votes and words": []}
options = {"missing": "", "classes": ["ham", "spam"], "random_state": 0}
for liars in bought:
    lies = said.copy()
    lies[np.ix_(lottery, range(liars))] = "ham"
    votes = np.where(asked, lies, "")
    counted = np.where((votes == "spam").sum(axis=1) > (votes == "ham").sum(axis=1), "spam", "ham")
    found = aggregate_votes(votes, X, **options)
    read = {
        "majority": counted,
        "votes weighed": aggregate_votes(votes, **options).labels,
        "votes and words": found.labels,
    }
    for name, labels in read.items():
        caught[name].append(float((labels[lottery] == "spam").mean()))
    if liars == 4:
        people = found.annotators
print(people[["annotator", "reliability", "low", "high"]].round(2))

# %%
# Left: lottery spam that is labelled as spam. Right: the people where four are bought (crosses), with intervals. Beyond
# one half nothing in the votes says who lies: a few messages whose label is known (``gold``) would.
figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
for name, shares in caught.items():
    axes[0].plot(bought, shares, "o-", label=name)
axes[0].set(xlabel="people who are bought, of 12", ylabel="lottery spam that is found", ylim=(-0.03, 1.03))
axes[0].legend()
place = np.arange(len(people))
lying = np.asarray(people["annotator"]).astype(int) < 4
axes[1].hlines(place, 100 * people["low"], 100 * people["high"], color="C0", lw=3, alpha=0.4)
axes[1].plot(100 * people["reliability"][~lying], place[~lying], "o", color="C0", label="honest")
axes[1].plot(100 * people["reliability"][lying], place[lying], "x", color="C3", label="bought")
axes[1].set(xlabel="answers that fit the other evidence (%)", yticks=[], ylabel="people", xlim=(0, 102))
axes[1].invert_yaxis()
axes[1].legend(loc="lower left")
plt.show()
