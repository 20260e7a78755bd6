"""The comparison of defenses on a file of the user's own, as a suite."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from floral_bench.contenders import SAFE_VERSION
from floral_bench.spec import Attack, Data, Method, Suite, params
from floral_bench.split_table import load_split_table
from floral_bench.suites import DEFAULTS, FIXED, NETWORKS, TOLD
from floral_learn.attacks import ATTACKS
from floral_learn.base.files import sha256
from floral_learn.game.kernels import resolve_gamma

# A newcomer's answer within a minute, and with --thorough what takes longer.
LEVELS, ALL_LEVELS = (0, 10, 20), (0, 5, 10, 20)
SEEDS, ALL_SEEDS = (1, 2, 3), (1, 2, 3, 4, 5)
C = 1.0  # as in SVC(), so that sanitisers are compared with the same SVM behind them
# What a user would try. Sanitisers have their own defaults here: nobody tells them how many labels are wrong.
CONTENDERS = (
    Method("safe-svc", params(version=SAFE_VERSION), label="ContradictedLabels, SVC()", per_setting=False),
    Method("plain-boosting", label="boosted trees", per_setting=False),
    Method("safe-boosting", params(version=SAFE_VERSION), label="ContradictedLabels, boosted trees", per_setting=False),
    Method("ln-svm-libsvm", params(noise=0.05), label="ln-svm"),
    Method("curie-libsvm", params(confidence=0.95, n_neighbors=20), label="curie"),
    Method("ls-svm-libsvm", params(threshold=0.95, n_neighbors=20), label="ls-svm"),
    Method("k-lid-libsvm", label="k-lid"),
)
THOROUGH = (Method("rs", per_setting=False), Method("dpa", per_setting=False))
# Only where --methods asks for them: near copies of the others, or slow.
ON_REQUEST = (Method("svm-libsvm", label="svm"), Method("rsrnn", per_setting=False))


def suite_for_file(
    path: Path,
    label: str,
    attacks: list[str],
    reading: Mapping[str, Any],
    *,
    thorough: bool = False,
    everything: bool = False,
) -> Suite:
    """The classifiers a user has at hand, under `attacks`, on three splits of the file, or five where `thorough`.

    `reading` are options of `load_split_table`, how the file is read; `everything` adds what runs on request only.
    """
    if unknown := [name for name in attacks if name not in ATTACKS]:
        raise ValueError(f"--attack {unknown[0]!r} is unknown; choose among {', '.join(ATTACKS)}")
    given = {name: value for name, value in reading.items() if value}
    first = load_split_table(path, label, seed=SEEDS[0], **given)
    binary = len(first.classes) == 2
    if not binary and (needs_two := [name for name in attacks if not ATTACKS[name].multiclass]):
        raise ValueError(f"--attack {needs_two[0]}: it is defined for two classes, {label!r} has {len(first.classes)}")
    # Four digits: the number is shown in tables and commands.
    gamma = float(f"{resolve_gamma('scale', first.X_train):.4g}")
    cleanlab = Method("cleanlab-svc", label="CleanLearning(SVC())", per_setting=False)
    methods: tuple[Method, ...] = (*DEFAULTS, TOLD, cleanlab, *CONTENDERS)
    if thorough or everything:
        methods = (*methods, *THOROUGH)
    if everything:
        methods = (*methods, FIXED, *ON_REQUEST, *(NETWORKS if binary else ()))
    seeds = ALL_SEEDS if thorough else SEEDS
    # The content is part of the key: an edited file is another data set.
    content = sha256(path)
    return Suite(
        name=path.stem,
        title=f"{path.name}, {len(first.y_train) + len(first.y_test):,} rows",
        data=tuple(
            Data("csv", params(path=str(path.resolve()), label=label, seed=seed, sha256=content, **given))
            for seed in seeds
        ),
        attacks=tuple(Attack(name) for name in attacks),
        levels=ALL_LEVELS if thorough else LEVELS,
        settings=((C, gamma),),
        default_setting=True,
        methods=methods,
        seeds=seeds,
        figures=("security",),
        notes=(
            *first.info["notes"],
            "The labels in the file count as right; the attack changes those of the training rows only.",
            "floral (budget = level) is told how many labels are wrong, the others are not.",
            *(() if thorough else ("More splits, levels and methods: --thorough.",)),
        ),
        details=(f"Columns: {first.info['encoding']}",),
    )
