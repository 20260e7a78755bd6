"""A suite as the user asked for it: fewer replications, levels or methods, other seeds, quick, the authors' labels."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from floral_bench.data_kinds import kind_of
from floral_bench.plan import HEAD_METHODS, NETWORK_METHODS
from floral_bench.spec import Attack, Data, Grid, Method, Suite, Wanted, params
from floral_bench.suites import SUITES
from floral_learn.base.extras import bench_install_line, install_line

QUICK_GRID = Grid(rounds=100, flips=(0.02, 0.1), etas=(3e-4, 7e-4), decays=(None,))
NOT_COMPARABLE = "A quick run (few replications, rounds and settings) cannot be compared with the paper's numbers."
QUICK_ATTACKS = {"alfa-tilt": {"n_restarts": 10}, "alfa": {"n_init": 1}, "lfa": {"n_check": 2}}


def adapt(suite: Suite, **changes: Any) -> Suite:
    """`suite` with the changes that are `Wanted`; a ValueError names what is not possible."""
    wanted = Wanted(**changes)
    if kind_of(suite.data[0]).texts:
        suite = _encoder(suite)
    if wanted.quick:
        suite = _quick(suite, wanted.reps)
    if wanted.seed is not None or wanted.reps is not None:
        suite = _replications(suite, wanted.seed, wanted.reps)
    if wanted.reference:
        suite = _reference(suite)
    if wanted.levels:
        if bad := [level for level in wanted.levels if not 0 <= level < 50]:
            raise ValueError(f"--levels {bad[0]:g} is not a percentage of poisoned labels from 0 to below 50")
        # 10 and 10.0 are one level, and must have one key
        suite = replace(suite, levels=tuple(int(v) if v == int(v) else v for v in sorted(set(wanted.levels))))
    if wanted.methods:
        suite = replace(suite, methods=_select(suite, wanted.methods))
    return suite


def suite_named(name: str) -> Suite | None:
    """The suite of the paper that a folder of results is named after; None where it is another's."""
    base = name.removesuffix("-quick").removesuffix("-reference")
    quick, reference = name.endswith("-quick"), "-reference" in name
    return adapt(SUITES[base], quick=quick, reference=reference) if base in SUITES else None


def without_missing_extras(suite: Suite) -> tuple[Suite, list[str]]:
    """`suite` without the methods and attacks whose libraries are not installed here, and a line for each library."""
    texts, lines = kind_of(suite.data[0]).texts, []
    libraries = ("torch", "transformers") if texts else ("torch",)
    gone: dict[str, tuple[str, Callable[[Any], bool]]] = {}
    if not all(find_spec(library) for library in libraries):
        networks = NETWORK_METHODS + HEAD_METHODS
        needs = lambda part: texts or part.name in networks or dict(part.params).get("surrogate") == "nn"  # noqa: E731
        gone["torch"] = install_line("text" if texts else "torch"), needs
    if find_spec("cleanlab") is None:
        gone["cleanlab"] = bench_install_line(peers=True), lambda part: part.name.startswith("cleanlab-")
    for library, (line, needs) in gone.items():
        lost = [m.title for m in suite.methods if needs(m)] + [a.name for a in suite.attacks if needs(a)]
        if lost:
            lines.append(f"skipped, {library} is missing ({line}): {_few(lost)}")
        methods = tuple(method for method in suite.methods if not needs(method))
        suite = replace(suite, methods=methods, attacks=tuple(attack for attack in suite.attacks if not needs(attack)))
    return suite, lines


def _few(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _encoder(suite: Suite) -> Suite:
    """The encoder that ``$FLORAL_TEXT_MODEL`` names becomes part of the cells; MiniLM is MiniLM in any folder."""
    from floral_bench.families.text_data import encoder_name
    from floral_learn.encoders.text import minilm_folder

    if "FLORAL_TEXT_MODEL" not in os.environ:
        return suite
    name = encoder_name(str(minilm_folder()))
    data = tuple(Data(d.name, params(**(dict(d.params) | {"encoder": name}))) for d in suite.data)
    return replace(suite, data=data)


def _select(suite: Suite, names: Sequence[str]) -> tuple[Method, ...]:
    known = dict.fromkeys(name for method in suite.methods for name in (method.name, method.title))
    names = _joined(names, known)
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"--methods {unknown[0]!r} is not in suite {suite.name!r}; it has: {'; '.join(known)}")
    return tuple(method for method in suite.methods if method.name in names or method.title in names)


def _joined(pieces: Sequence[str], known: Container[str]) -> list[str]:
    """Titles that hold commas themselves ("rs (q=0.1, lambda=0.01)"), put together again from their pieces."""
    out, start = [], 0
    while start < len(pieces):
        ends = range(len(pieces), start, -1)
        end = next((end for end in ends if ", ".join(pieces[start:end]) in known), start + 1)
        out.append(", ".join(pieces[start:end]))
        start = end
    return out


def _replications(suite: Suite, seed: int | None, reps: int | None) -> Suite:
    reps = len(suite.seeds) if reps is None else reps
    if reps < 1:
        raise ValueError(f"--reps {reps} must be at least 1")
    first = suite.seeds[0] if seed is None else seed
    if first < 0:
        raise ValueError(f"--seed {first} must not be negative")
    seeds = tuple(range(first, first + reps))
    base = [pair for pair in suite.data[0].params if pair[0] != "seed"]
    data = tuple(Data(suite.data[0].name, params(**dict(base), seed=number)) for number in seeds)
    return replace(suite, seeds=seeds, data=data)


def _reference(suite: Suite) -> Suite:
    """The authors' labels: their one replication of Moon, the suite's seeds draw the games."""
    family = suite.attacks[0].name
    published = kind_of(suite.data[0]).published
    if family not in published or len(suite.attacks) > 1:
        raise ValueError("--authors-labels exist for Moon under farthest or lfa: moon, moon-kernels, moon-lfa, ...")
    known = (0, *published[family])
    attack = Attack("reference", params(family=family))
    data = tuple(Data(suite.data[0].name, params(seed=1)) for _ in suite.seeds)
    levels = tuple(level for level in suite.levels if level in known)
    name, figures = f"{suite.name}-reference", tuple(name for name in suite.figures if name != "rounds")
    return replace(suite, name=name, attacks=(attack,), data=data, levels=levels, figures=figures)


def _quick(suite: Suite, reps: int | None) -> Suite:
    """A look at every part of the suite within a minute: two replications, two levels, small grids and data."""
    suite = _replications(suite, None, min(2, len(suite.seeds)) if reps is None else reps)
    grid = None
    if suite.grid is not None:
        grid = replace(QUICK_GRID, budgets=(10, 50), flips=()) if suite.grid.budgets else QUICK_GRID
    attacks = tuple(
        replace(attack, params=params(**dict(attack.params), **QUICK_ATTACKS.get(attack.name, {})))
        for attack in suite.attacks
    )
    rows = kind_of(suite.data[0]).quick
    data = tuple(Data(d.name, params(**(dict(d.params) | rows))) for d in suite.data)
    middle = [level for level in suite.levels if 0 < level <= 10][-1:]
    levels = (*(level for level in suite.levels if level == 0), *middle)
    methods = tuple(_shorter(method) for method in suite.methods)
    notes = suite.notes
    if suite.paper_table is not None:
        notes = (*notes, NOT_COMPARABLE)
    return replace(
        suite, name=f"{suite.name}-quick", grid=grid, attacks=attacks, data=data, levels=levels, methods=methods,
        paper_table=None, notes=notes,
    )  # fmt: skip


def _shorter(method: Method) -> Method:
    if method.name in ("nn", "nn-pgd"):
        return replace(method, params=params(**(dict(method.params) | {"epochs": 3})))
    if method.name in ("nn-head", "nn-turns"):
        return replace(method, params=params(**(dict(method.params) | {"epochs": 3, "n_rounds": 100})))
    if method.name == "floral-multiclass":
        return replace(method, params=params(**dict(method.params), n_rounds=100))
    return method
