"""The numbers that steer a review, in one place, each with its reason.

"Prior" is a belief before any answer, which answers average out or overrule. "Chosen" is what was no worse than other
values on development data: CIFAR-10N, cats and dogs, youtube and music.
"""

# -- the model of wrong labels -----------------------------------------------------------------------------------------
# (b, a) of logit q = b + a s: hardly any label wrong by itself; some, where contradicted; many, where contradicted;
# prior
OWN = ((-4.0, 0.5), (-2.5, 1.0), (-1.5, 2.0), (-0.7, 4.0))
# kinds of regions: which labels they tie, on what they lie, and how narrow they are; prior. On rows in squared
# distances at gamma="scale"; on scores, which run from -2 to 2. An answer says what other wrong labels should have been
# as far as a region of the kind "class" reaches.
REGIONS = (
    ("given", "rows", 0.2),
    ("given", "rows", 1.5),
    ("class", "rows", 0.3),
    ("given", "scores", 1.0),
    ("any", "scores", 1.0),
)
CENTRE, HEIGHT = -1.0, 3.0  # mean and standard deviation of logit r where there are regions; prior
NOWHERE = -4.0  # logit r where there are none; prior
# P(labels were flipped in regions) before any answer: for reading labels, so that few answers can turn a region over,
# and for what a question is worth, where such hopes are discounted until answers speak for them; chosen
REGIONS_PRIOR, QUESTIONS_PRIOR = 0.87, 0.5
MAJORITY = 60.0  # how fast belief falls in a hypothesis by which more than half of the labels are wrong; prior
COMPONENTS = 16  # principal components by which rows with more columns are compared; chosen
SPREAD = 1.5  # standard deviation of log-odds: of a group's effect, and of how far the model is off; prior
SAMPLE = 200  # rows that stand for all, and of candidates for a question; more are only slower
NEGLIGIBLE = 1e-3  # weight below which a hypothesis is not carried on

# -- people ------------------------------------------------------------------------------------------------------------
ERROR_PRIOR = (1.0, 29.0)  # Beta prior of a reviewer's error rate: about three in a hundred
SUSPECT = 0.1  # prior probability that one of several reviewers guesses, or lies
SETTLED = 0.8  # share of the likelihood from which an answer is taken for the label: not that of a likely liar

# -- what is said, and what is trained with ----------------------------------------------------------------------------
FIRST_ANSWERS = 20  # before which nobody is told to stop, and the share is hardly more than what the audit said
TAIL = 0.05  # on each side of an interval
# How much wider the share's interval is than the model's own, in log-odds: at 1 it held in 70 % of 46 cases after 10,
# 20 and 50 answers, at 2.5 in 90 % of 48 on development sets and in 93 % of 116 on eight others, all in view; chosen
MISFIT = 2.5
LEAST_WEIGHT = 0.1  # of a row in doubt; prior
