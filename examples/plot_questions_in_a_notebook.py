"""
How do I answer questions in a notebook?
========================================

``ask`` names a row, you look at it and answer, and the other labels are corrected. In a notebook the loop is a cell;
here the true digit plays the person. The digits ship with scikit-learn; their labels were flipped by an attack.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from floral_learn import LabelReview, poison

X, truth = load_digits(n_class=4, return_X_y=True)
y = poison(X, truth, attack="class-biased", budget=0.2, random_state=0).y
review = LabelReview(X, y, random_state=0)


# %%
# In a notebook this function shows the picture and returns ``input("digit? ")``.
def person(row):
    return truth[row]


history = [float((review.labels != truth).mean())]
for _ in range(25):
    (row,) = review.ask(1)
    review.answer(row, person(row))
    history.append(float((review.labels != truth).mean()))

# %%
# The review itself shows as a table in a notebook.
review  # noqa: B018

# %%
model, plain = review.train(SVC()), SVC().fit(X, y)
print(f"wrong labels {history[0]:.1%} -> {history[-1]:.1%}; guaranteed: {review.guarantee()}")
print(f"accuracy on the true labels: {plain.score(X, truth):.3f}, after 25 answers {model.score(X, truth):.3f}")

# %%
figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", width_ratios=(1.2, 1))
panels[0].plot(100 * np.array(history), color="C0")
panels[0].set(xlabel="answers", ylabel="wrong labels (%)", ylim=(0, None))
asked = [entry["row"] for entry in review.history[:12]]
panels[1].imshow(np.block([[X[r].reshape(8, 8) for r in asked[i : i + 4]] for i in (0, 4, 8)]), cmap="gray_r")
panels[1].set(xticks=[], yticks=[], title="the first twelve questions")
plt.show()
