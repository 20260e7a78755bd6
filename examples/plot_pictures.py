"""
Pictures: wrong labels among files
==================================

Three hundred digits as PNG files, one in ten of them with another label. A small network, trained on photographs,
makes a vector of each file, and the labels that do not fit are found from these vectors.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from floral_learn import LabelReview, find_label_issues
from floral_learn.encoders import ImageEncoder

digits = load_digits()
rng = np.random.default_rng(0)
truth = digits.target[:300]
y = truth.copy()
wrong = rng.choice(300, 30, replace=False)
y[wrong] = (truth[wrong] + rng.integers(1, 10, 30)) % 10

folder = Path(tempfile.mkdtemp())
paths = [folder / f"{row}.png" for row in range(300)]
for path, pixels in zip(paths, digits.images, strict=False):
    Image.fromarray((pixels * 15.9).astype(np.uint8)).save(path)

# %%
# A list of paths goes in where rows do: ``find_label_issues(paths, y)``. Digits are small, so 64 pixels a side do in
# place of 224, and vectors are made once for the audit and the review.
X = ImageEncoder(size=64, cache=folder).fit_transform(paths)
issues = find_label_issues(X, y, random_state=0)
first = issues.ranking[:30]
print(f"{np.isin(first, wrong).sum()} of the 30 most suspicious labels are wrong")

fig, axes = plt.subplots(2, 6, figsize=(7, 3), layout="constrained")
for ax, row in zip(axes.flat, first, strict=False):
    ax.imshow(Image.open(paths[row]), cmap="gray_r")
    ax.set_title(f"{y[row]}, rather {issues.classes[issues.suggested[row]]}?", fontsize=9)
    ax.axis("off")

# %%
# Thirty answers of a person who sees the pictures.
review = LabelReview(X, y, random_state=0)
for _ in range(30):
    asked = review.ask(1)
    review.answer(asked, truth[asked])
print(f"wrong labels: {(y != truth).mean():.1%} as given, {(review.labels != truth).mean():.1%} after 30 answers")
plt.show()
