"""A suite that runs in a second: 60 rows of Moon, a handful of methods."""

from dataclasses import replace

from floral_bench.spec import Attack, Data, Grid, Method, params
from floral_bench.suites import FIXED, MOON, OPTIMAL, PGD, TOLD

GRID = Grid(rounds=12, flips=(0.05, 0.1), etas=(1e-3, 3e-3), decays=(None, 5))
SEEDS = (1, 2)


def data(seed: int) -> Data:
    return Data("moon", params(seed=seed, n_train=60, n_val=10, n_test=40))


TINY = replace(
    MOON,
    name="tiny",
    title="a tiny suite",
    data=tuple(data(seed) for seed in SEEDS),
    seeds=SEEDS,
    attacks=(Attack("farthest"),),
    levels=(0, 10),
    methods=(*PGD[:2], FIXED, TOLD, OPTIMAL[0]),
    grid=GRID,
    figures=("rounds", "security"),
)
# dpa has no parameter of this name: every cell of this method fails.
BROKEN = Method("dpa", params(no_such_parameter=1), label="broken", per_setting=False)
