"""
Images: FLORAL and a review on embeddings
=========================================

Images are judged by what an encoder makes of them. Here a small convolutional network learns to read the digits 0 to 4
from labels that are right; the labels of 5 to 9 are not to be trusted, a quarter of them was flipped. In its place any
encoder will do: a torchvision model with ``layer="output"`` or the input of its last layer.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from floral_learn import FloralClassifier, LabelReview, poison
from floral_learn.paper import NeuralFloralClassifier, layer_features

digits = load_digits()
images, truth = (digits.images[:, None] / 16).astype(np.float32), digits.target  # (n, channels, height, width)
known = truth < 5

# %%
# The encoder: three convolutions, trained on the digits that are known. ``NeuralFloralClassifier`` trains a copy of the
# module; its features are what goes into the last linear layer.
torch.manual_seed(0)
network = torch.nn.Sequential(
    torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(),
    torch.nn.Conv2d(16, 32, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(32, 64, 2), torch.nn.ReLU(), torch.nn.Flatten(),
    torch.nn.Linear(256, 64), torch.nn.ReLU(), torch.nn.Linear(64, 5),
)  # fmt: skip
trained = NeuralFloralClassifier(network, epochs=15, random_state=0)
encoder = trained.fit(images[known], truth[known]).module_
embeddings = scale(layer_features(encoder, images[~known]))
print("embeddings:", embeddings.shape)

# %%
# The digits 5 to 9, and an attacker who flips the labels that a model is surest of.
rows = train_test_split(np.arange(len(embeddings)), test_size=0.4, random_state=0, stratify=truth[~known])
(X, X_test), (y_true, y_test) = ((values[rows[0]], values[rows[1]]) for values in (embeddings, truth[~known]))
pictures = images[~known][rows[0]]
y = poison(X, y_true, attack="farthest", budget=0.25, random_state=0).y

# %%
# Twenty answers of a person, who is shown the pictures that tell most about the others.
review = LabelReview(X, y, random_state=0)
for _ in range(20):
    asked = review.ask(1)
    review.answer(asked, y_true[asked])
print(f"wrong labels: {(y != y_true).mean():.0%} as given, {(review.labels != y_true).mean():.1%} as read")

scores = {
    "SVC": SVC().fit(X, y).score(X_test, y_test),
    "FLORAL": FloralClassifier(random_state=0).fit(X, y).score(X_test, y_test),
    "SVC, 20 answers": review.train(SVC()).score(X_test, y_test),
    "FLORAL, 20 answers": review.train(FloralClassifier(random_state=0)).score(X_test, y_test),
    "SVC, right labels": SVC().fit(X, y_true).score(X_test, y_test),
}

# %%
# Left: test accuracy. Right: pictures whose label the review changed, with the given label and the one that it reads.
changed = np.flatnonzero(review.labels != y)
figure = plt.figure(figsize=(10, 3.8), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.3))
ax = left.subplots()
bars = ax.barh(list(scores), list(scores.values()), color=["0.6", "#0072B2", "0.4", "#D55E00", "0.85"])
ax.bar_label(bars, fmt="%.3f", padding=-34, color="white")
ax.texts[-1].set_color("black")
ax.invert_yaxis()
ax.set(xlabel="test accuracy", xlim=(0, 1.0))
right.suptitle(f"{len(changed)} labels changed: given -> read")
for panel, row in zip(right.subplots(3, 6).flat, changed, strict=False):
    panel.imshow(pictures[row, 0], cmap="gray_r")
    panel.set_title(
        f"{y[row]} -> {review.labels[row]}",
        fontsize=9,
        color="#009E73" if review.labels[row] == y_true[row] else "#D55E00",
    )
    panel.set_axis_off()
plt.show()
