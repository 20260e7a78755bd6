"""
Texts, with a frozen encoder
============================

Sentences become vectors by MiniLM, a small encoder that comes as a Python package, and FLORAL trains on the vectors.
Strings in, labels out. The encoder is kept as it is: one that is fine-tuned on poisoned labels has learned them.

The sentences are made up, so that this runs anywhere in seconds. Twenty thousand film reviews on a GPU are on the
results page :doc:`/results/imdb`.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.svm import SVC

from floral_learn import FloralClassifier, TextClassifier, poison
from floral_learn.paper import TextFloralClassifier

names = "film story acting ending music cast plot dialogue camera script direction humour"
things = names.split()
praise = (
    "I loved the {}|the {} was wonderful|a beautiful {}|such a moving {}|the {} is a joy|what a clever {}|"
    "I would watch it again for the {}|the {} won me over|nothing beats this {}|the {} deserves a prize"
)
blame = (
    "I hated the {}|the {} was dreadful|a boring {}|such a lazy {}|the {} is a waste of time|what a stupid {}|"
    "I left early because of the {}|the {} put me to sleep|nothing saves this {}|the {} deserves a refund"
)
made = [
    (form.format(thing), sign)
    for forms, sign in ((praise, 1), (blame, -1))
    for form in forms.split("|")
    for thing in things
]
order = np.random.default_rng(0).permutation(len(made))
texts, truth = np.array([made[i][0] for i in order], dtype=object), np.array([made[i][1] for i in order])
train, test = np.arange(160), np.arange(160, len(texts))

# %%
# An annotator mixes up a quarter of the labels.
untrusted = poison(None, truth[train], attack="random", budget=0.25, random_state=0)
clf = TextFloralClassifier(
    encoder=TextClassifier(max_length=32, device="cpu"),
    head=FloralClassifier(budget=0.25, random_state=0),
    fine_tune=False,
)
clf.fit(texts[train], untrusted.y)
vectors = clf.embed(texts)
plain = SVC(C=10).fit(vectors[train], untrusted.y)
on_clean = FloralClassifier(budget=0.02, random_state=0).fit(vectors[train], truth[train])
for name, head in (("SVC head", plain), ("FLORAL head", clf.head_), ("FLORAL head, clean labels", on_clean)):
    print(f"{name:28s} {head.score(vectors[test], truth[test]):.3f}")
print(clf.predict(["what a wonderful evening at the cinema", "two hours that I will never get back"]))

# %%
# On so few texts the heads are about level: random mistakes hardly hurt an SVC. What FLORAL adds here is the list of
# labels that it distrusts, with their texts.
issues = clf.label_issues(texts[train])
print(issues[["given", "score", "text"]].head(8))

figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
place = PCA(2, random_state=0).fit_transform(vectors[train])
score = issues.set_index("row")["score"].reindex(train).to_numpy()
for sign, colour in ((1, "C0"), (-1, "C1")):
    here = untrusted.y == sign
    size = 10 + 90 * score[here]
    axes[0].scatter(*place[here].T, s=size, color=colour, alpha=0.6, lw=0, label=f"label {sign:+d}")
axes[0].scatter(*place[untrusted.indices].T, s=110, facecolors="none", edgecolors="black", lw=0.6, label="flipped")
axes[0].set(xticks=[], yticks=[], title="embeddings; larger: more suspicious")
axes[0].legend(fontsize=8)
hits = np.cumsum(np.isin(issues["row"], untrusted.indices))
axes[1].plot(np.arange(1, len(hits) + 1), hits, label="by score")
axes[1].plot([0, len(hits)], [0, hits[-1]], "--", color="0.6", label="random order")
axes[1].set(xlabel="texts looked at", ylabel="wrong labels found")
axes[1].legend()
plt.show()
