"""
Can lenient LLM judges be believed?
===================================

Six judges rate answers as good or bad. Four of them are lenient: they call a bad answer good every other time, and a
majority follows them. Weighing judges by what else they said finds out who is lenient. Mistakes that all judges share
are in no votes: only answers that people checked (``gold``) show those. The votes are made up.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from floral_learn import aggregate_votes

rng = np.random.default_rng(0)
n, classes = 400, np.array(["bad", "good"])
truth = rng.random(n) < 0.4


def judge(lenient, strict=0.05):
    """Votes of a judge who calls bad answers good with probability `lenient`, and good ones bad with `strict`."""
    return classes[np.where(truth, rng.random(n) > strict, rng.random(n) < lenient).astype(int)]


leniency = {"A1": 0.5, "A2": 0.55, "A3": 0.5, "A4": 0.6, "B": 0.1, "C": 0.15}
votes = pd.DataFrame({name: judge(share) for name, share in leniency.items()})

# %%
# Labels from all votes, and what they say about the judges.
found = aggregate_votes(votes, random_state=0)
good = found.labels == "good"
majority = (votes == "good").mean(axis=1).to_numpy() >= 0.5
print(f"right labels: majority {(majority == truth).mean():.3f}, judges weighed {(good == truth).mean():.3f}")
print(found.annotators[["annotator", "reliability"]].round(2))

# %%
# Of the answers that are read as bad, the share that each judge called good: close to what they truly do.
estimated = [float((votes[name] == "good")[~good].mean()) for name in leniency]
figure, panel = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
place = np.arange(len(leniency))
panel.bar(place, estimated, color="C0", width=0.6, label="as found")
panel.plot(place, list(leniency.values()), "kx", label="true")
panel.set(xticks=place, ylabel="bad answers called good", ylim=(0, 1), xlabel="judge")
panel.set_xticklabels(list(leniency))
panel.legend()
plt.show()
