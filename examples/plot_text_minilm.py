"""
Texts, with a frozen encoder
============================

Sentences become vectors by MiniLM, a small encoder that comes as a Python package, and FLORAL trains on the vectors.
Strings in, labels out. The encoder is kept as it is: one that is fine-tuned on poisoned labels has learned them.

With IMDB at hand (``FLORAL_DATA``), its shortest reviews are used; otherwise a list of made-up sentences.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.svm import SVC

from floral_learn import FloralClassifier, TextClassifier, TextFloralClassifier, load_imdb, poison
from floral_learn.datasets.files import search_path

if any((folder / "imdb.jsonl.xz").is_file() for folder in search_path()):
    data = load_imdb(n_train=4_000, n_val=1, n_test=4_000, seed=0)
    parts = [(data.X_train, data.y_train), (data.X_test, data.y_test)]
    shortest = [np.argsort([len(text) for text in texts])[:160] for texts, _ in parts]
    (texts, y), (test_texts, y_test) = [(t[rows], labels[rows]) for (t, labels), rows in zip(parts, shortest)]
else:
    things = ["film", "story", "acting", "ending", "music", "cast", "plot", "dialogue", "camera work", "script"]
    good = ["I loved the {}", "the {} was wonderful", "a beautiful {}", "such a moving {}", "the {} is a joy"]
    bad = ["I hated the {}", "the {} was dreadful", "a boring {}", "such a lazy {}", "the {} is a waste of time"]
    made = [(form.format(thing), sign) for forms, sign in ((good, 1), (bad, -1)) for form in forms for thing in things]
    order = np.random.default_rng(0).permutation(len(made))
    texts, y = np.array([made[i][0] for i in order], dtype=object), np.array([made[i][1] for i in order])
    texts, test_texts, y, y_test = texts[:60], texts[60:], y[:60], y[60:]
print(len(texts), "texts, such as:", texts[0][:100])

# %%
# An annotator mixes up a fifth of the labels.
bad_labels = poison(None, y, attack="random", budget=0.2, random_state=0)
clf = TextFloralClassifier(
    encoder=TextClassifier(max_length=96, device="cpu"),
    head=FloralClassifier(budget=0.2, random_state=0),
    fine_tune=False,
)
clf.fit(texts, bad_labels.y)
vectors, test_vectors = clf.embed(texts), clf.embed(test_texts)
plain = SVC(C=10).fit(vectors, bad_labels.y)
on_clean = FloralClassifier(random_state=0).fit(vectors, y)
for name, head in (("SVC head", plain), ("FLORAL head", clf.head_), ("FLORAL head, clean labels", on_clean)):
    print(f"{name:28s} {head.score(test_vectors, y_test):.3f}")

# %%
# The labels that it distrusts most, with their texts.
issues = clf.label_issues(texts)
for _, issue in issues.head(5).iterrows():
    hit = "flipped by us" if issue["row"] in bad_labels.indices else "as given"
    print(f"given {issue['given']:+d}, {hit}: {' '.join(issue['text'].split())[:90]}")

figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
place = PCA(2, random_state=0).fit_transform(vectors)
suspicion = issues.set_index("row")["suspicion"].reindex(range(len(texts))).to_numpy()
for sign, colour in ((1, "C0"), (-1, "C1")):
    here = bad_labels.y == sign
    size = 10 + 70 * suspicion[here]
    axes[0].scatter(*place[here].T, s=size, color=colour, alpha=0.6, lw=0, label=f"label {sign:+d}")
axes[0].scatter(*place[bad_labels.indices].T, s=90, facecolors="none", edgecolors="black", lw=0.6, label="flipped")
axes[0].set(xticks=[], yticks=[], title="embeddings; larger: more suspicious")
axes[0].legend(fontsize=8)
hits = np.cumsum(np.isin(issues["row"], bad_labels.indices))
axes[1].plot(np.arange(1, len(hits) + 1), hits, label="by suspicion")
axes[1].plot([0, len(hits)], [0, hits[-1]], "--", color="0.6", label="random order")
axes[1].set(xlabel="texts looked at", ylabel="wrong labels found")
axes[1].legend()
plt.show()

# %%
# On so few texts, with random mistakes and an encoder that was not made for sentiments, the heads are level and all
# numbers modest. What FLORAL adds here is the list: the first texts on it are mostly the wrong ones.
