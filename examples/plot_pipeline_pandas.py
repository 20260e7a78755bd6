"""
A pipeline with pandas
======================

Tables have columns of different kinds. Everything that scikit-learn offers for that works in front of FLORAL, and the
suspicious labels come back as rows of the table.
"""

# %%
# A made-up table of parts: two sensors, a site, and a verdict by one of four workers. One worker is careless.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from floral_learn import FloralClassifier

rng = np.random.default_rng(0)
n = 600
table = pd.DataFrame(
    {
        "width": rng.normal(10, 1, n),
        "noise_db": rng.normal(60, 5, n),
        "site": rng.choice(["north", "south"], n),
        "worker": rng.choice(["ann", "bob", "cem", "dora"], n),
    }
)
shift = np.where(table["site"] == "north", 0.5, -0.5)
good = (table["width"] - 10 + shift) ** 2 + ((table["noise_db"] - 60) / 5) ** 2 < 1.6
table["verdict"] = np.where(good, "good", "bad")
careless = (table["worker"] == "cem") & (rng.random(n) < 0.5)
truth = table["verdict"].copy()
table.loc[careless, "verdict"] = np.where(truth[careless] == "good", "bad", "good")
print(table.head())

# %%
# The worker is not a feature: a model that knew the worker could learn their mistakes.
features = make_column_transformer(
    (StandardScaler(), ["width", "noise_db"]), (OneHotEncoder(), ["site"]), verbose_feature_names_out=False
)
model = make_pipeline(features, FloralClassifier(budget=0.2, random_state=0))
model.fit(table, table["verdict"])
print("agrees with the true verdicts:", (model.predict(table) == truth).mean().round(3))
print("the given verdicts do:        ", (table["verdict"] == truth).mean().round(3))

# %%
# Join the issues to the table, and count them by worker.
issues = model[-1].label_issues().set_index("row")
table["score"] = issues["score"]
print(table.sort_values("suspicion", ascending=False).head())

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for verdict, colour in (("good", "C0"), ("bad", "C1")):
    part = table[table["verdict"] == verdict]
    axes[0].scatter(part["width"], part["noise_db"], s=6 + 60 * part["score"], color=colour, alpha=0.6, lw=0)
axes[0].set(xlabel="width", ylabel="noise (dB)", title="larger: more suspicious")
by_worker = table.groupby("worker")["score"].mean()
axes[1].bar(by_worker.index, by_worker, color=["C3" if worker == "cem" else "0.6" for worker in by_worker.index])
axes[1].set(title="mean suspicion of a worker's verdicts")
plt.show()
