"""
Ten answers against poisoned labels
===================================

One label in five is wrong, and the wrong ones are those that every model is sure of. Labels alone cannot say so; a
person who looks at ten rows can. ``LabelReview`` chooses the rows.
"""

import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.svm import SVC

from floral_learn import FloralClassifier, LabelReview, load_moon, poison

moon = load_moon()
X, truth = moon.X_train, moon.y_train
y = poison(X, truth, attack="farthest", budget=0.2).y

# %%
# The review: ask, answer, correct the other labels. Here the true labels play the person.
review = LabelReview(X, y, random_state=0)
for _ in range(10):
    rows = review.ask(1)
    review.answer(rows, truth[rows])

print(f"wrong labels: {(y != truth).mean():.1%} as given, {(review.labels != truth).mean():.1%} as read")
print("the model's estimate:", review.wrong_share)
print("guaranteed:", review.guarantee())

# %%
# What a classifier makes of it. FLORAL is given the true share of wrong labels; the review gets ten answers.
models = {
    "SVC": SVC().fit(X, y),
    "FLORAL, given the share": FloralClassifier(C=1.0, budget=0.2, random_state=0).fit(X, y),
    "FLORAL with ten answers": review.train(FloralClassifier(C=1.0, random_state=0)),
}
figure, panels = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained", sharey=True)
colours = ListedColormap(["#0072B2", "#D55E00"])
asked = [entry["row"] for entry in review.history]
for panel, (name, model) in zip(panels, models.items(), strict=True):
    DecisionBoundaryDisplay.from_estimator(
        model, X, response_method="predict", alpha=0.25, cmap=colours, ax=panel, grid_resolution=150
    )
    shown = review.labels if "answers" in name else y
    panel.scatter(X[:, 0], X[:, 1], c=shown, s=7, cmap=colours)
    panel.set_title(f"{name}\ntest accuracy {model.score(moon.X_test, moon.y_test):.3f}")
    panel.set(xticks=[], yticks=[])
panels[2].scatter(X[asked, 0], X[asked, 1], s=80, facecolor="none", edgecolor="black", linewidth=1.4, label="asked")
panels[2].legend(loc="lower left")
plt.show()
