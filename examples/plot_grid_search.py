"""
GridSearchCV, and a trap
========================

``FloralClassifier`` goes into any search. But a search on untrusted labels optimises agreement with the poison. A
hundred labels that you checked yourself are enough to choose well.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from floral_learn import FloralClassifier, load_moon, poison

moon = load_moon()
y = poison(moon.X_train, moon.y_train, attack="farthest", budget=0.15, random_state=0).y
pipe = make_pipeline(StandardScaler(), FloralClassifier(n_rounds=100, random_state=0))
grid = {
    "floralclassifier__budget": [0.0, 0.1, 0.2, 0.3],
    "floralclassifier__gamma": [0.1, 1.0, 3.0, 10.0],
}

# %%
# The trap: three folds of the untrusted labels.
blind = GridSearchCV(pipe, grid, cv=3).fit(moon.X_train, y)

# %%
# The way out: train on the untrusted rows, score on 100 rows with checked labels.
checked = np.arange(100)
X_all = np.vstack([moon.X_train, moon.X_val[checked]])
y_all = np.concatenate([y, moon.y_val[checked]])
fold = PredefinedSplit(np.r_[np.full(len(y), -1), np.zeros(len(checked), int)])
informed = GridSearchCV(pipe, grid, cv=fold, refit=False).fit(X_all, y_all)
best = pipe.set_params(**informed.best_params_).fit(moon.X_train, y)

print("by untrusted folds:", blind.best_params_, f"test {blind.score(moon.X_test, moon.y_test):.3f}")
print("by checked labels: ", informed.best_params_, f"test {best.score(moon.X_test, moon.y_test):.3f}")

# %%
# What each search sees, and the truth that neither may use.
hidden = GridSearchCV(
    pipe, grid, refit=False, cv=PredefinedSplit(np.r_[np.full(len(y), -1), np.zeros(len(moon.y_test), int)])
).fit(np.vstack([moon.X_train, moon.X_test]), np.concatenate([y, moon.y_test]))
figure, axes = plt.subplots(1, 3, figsize=(11, 4.6), layout="constrained")
for ax, search, title in zip(axes, (blind, informed, hidden), ("untrusted folds", "100 checked labels", "the truth")):
    shape = len(grid["floralclassifier__budget"]), len(grid["floralclassifier__gamma"])
    values = search.cv_results_["mean_test_score"].reshape(shape)
    ax.imshow(values, cmap="viridis")
    for (i, j), value in np.ndenumerate(values):
        bright = value > (values.min() + 3 * values.max()) / 4
        colour, weight = "black" if bright else "white", "bold" if value == values.max() else "normal"
        ax.text(j, i, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=8, fontweight=weight)
    ax.set(title=title, xlabel="gamma", xticks=range(shape[1]), xticklabels=grid["floralclassifier__gamma"])
    ax.set(yticks=range(shape[0]), yticklabels=grid["floralclassifier__budget"])
axes[0].set_ylabel("budget")
plt.show()
