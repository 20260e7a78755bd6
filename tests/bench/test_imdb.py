"""The IMDB suites: a tiny RoBERTa on a few reviews goes from texts to tables, once for every kind of cell."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="text models need torch: pip install '.[text]'")
pytest.importorskip("transformers", reason="text models need transformers")
sys.path.insert(0, str(Path(__file__).parents[1] / "text"))

from tiny_text import make_reviews, make_roberta

from floral_bench import cell_data, data_kinds
from floral_bench.families import text_data
from floral_bench.families.text_data import draw_of
from floral_bench.reporting.paper import paper_value
from floral_bench.reporting.results import Results
from floral_bench.reporting.write import write_outputs
from floral_bench.runner import run_suite
from floral_bench.spec import Data, attack_cell, params
from floral_bench.store import Store
from floral_bench.suites import SUITES
from floral_learn.datasets import Dataset

SIZES = {"n_train": 60, "n_val": 10, "n_test": 40}


def little_reviews(n_train, n_val, n_test, seed):
    texts, y = make_reviews(n_train + n_val + n_test, seed)
    cuts = np.cumsum([n_train, n_val])
    (a, b, c), (u, v, w) = np.split(np.array(texts, object), cuts), np.split(y, cuts)
    return Dataset("imdb", a, u, b, v, c, w, u)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A run of both suites on little reviews: (suites, store path, folder of the encoder)."""
    folder = tmp_path_factory.mktemp("imdb")
    encoder = make_roberta(folder / "roberta")
    patch = pytest.MonkeyPatch()
    patch.setitem(data_kinds.KINDS, "imdb", replace(data_kinds.KINDS["imdb"], load=little_reviews))
    patch.setenv("FLORAL_WORK", str(folder / "work"))
    cell_data.load.cache_clear()
    draw_of.cache_clear()
    suites = {}
    for name in ("imdb", "imdb-influence"):
        suite = SUITES[name]
        data = tuple(
            Data("imdb", params(seed=s, encoder=encoder, max_length=16, epochs=4, **SIZES)) for s in suite.seeds[:1]
        )
        suite = replace(suite, data=data, seeds=suite.seeds[:1], levels=(0, 25, 40))
        suites[name] = suite if suite.grid is None else replace(suite, grid=replace(suite.grid, rounds=30))
    with Store(folder / "store.sqlite") as store:
        reports = {name: run_suite(suite, store) for name, suite in suites.items()}
        yield suites, store, reports, folder
    patch.undo()
    cell_data.load.cache_clear()
    draw_of.cache_clear()


def rows_of(store, cell):
    return {(config, statistic, metric): value for config, statistic, metric, value in store.rows(cell)}


def cell_at(suite, level, title):
    return next(c for c in suite.cells() if c.level == level and c.method.title == title)


def test_every_cell_of_both_suites_is_done(place):
    suites, store, reports, _ = place
    for name, suite in suites.items():
        assert reports[name].failed == 0, store.errors(c.key for c in suite.cells())
        assert set(store.status(c.key for c in suite.cells()).values()) == {"done"}
    assert reports["imdb-influence"].reused == 2  # the attacks


def test_flips_of_a_level_are_the_largest_input_gradients_and_nested(place):
    suites, store, _, _ = place
    suite = suites["imdb"]
    data, seed = suite.data[0], suite.seeds[0]
    clean = draw_of(data).y_train
    norms = text_data.encode(data, clean, seed, None).norms
    flipped = {}
    for level in (25, 40):
        labels = store.trace(attack_cell(data, suite.attacks[0], level, seed), "labels")
        flipped[level] = set(np.flatnonzero(labels != clean))
        assert flipped[level] == set(np.argsort(-norms, kind="stable")[: int(60 * level / 100)])
    assert flipped[25] < flipped[40]


def test_the_transformers_rows_are_its_own_predictions(place):
    suites, store, _, _ = place
    suite = suites["imdb"]
    cell = cell_at(suite, 25, "minilm, fine-tuned")
    rows = rows_of(store, cell)
    labels = store.trace(attack_cell(cell.data, suite.attacks[0], 25, cell.seed), "labels")
    encoded = text_data.encode(cell.data, labels, cell.seed, None)
    draw = draw_of(cell.data)
    assert rows["", "last", "accuracy"] == pytest.approx(((encoded.scores > 0) == (draw.y_test > 0)).mean())
    hinge = np.maximum(0, 1 - draw.y_test * encoded.scores).mean()
    assert rows["", "last", "hinge_loss"] == pytest.approx(hinge, rel=1e-5)
    assert rows["", "best", "accuracy"] == encoded.accuracy.max() >= rows["", "last", "accuracy"]
    assert len(store.trace(cell, "accuracy")) == 4


def test_influence_is_the_overlap_of_duals_and_gradients(place):
    suites, store, _, _ = place
    suite = suites["imdb-influence"]
    cell = cell_at(suite, 25, "overlap with minilm, clean labels")
    rows = rows_of(store, cell)
    encoded = text_data.encode(cell.data, draw_of(cell.data).y_train, cell.seed, None)
    top = np.argsort(-encoded.norms, kind="stable")[:5]
    np.testing.assert_array_equal(store.trace(cell, "top_network"), top)
    assert 0 <= rows["", "final", "overlap"] <= 1
    # the attack flipped the rows with the largest norms: all of the network's quarter is poisoned
    assert rows["", "final", "poisoned_share_network"] == 1


def test_tables_do_not_show_the_papers_roberta_beside_minilm(place, tmp_path):
    pd = pytest.importorskip("pandas", reason="tables need pandas")
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    suites, store, _, _ = place
    for suite in suites.values():
        write_outputs(Results(suite, store), tmp_path / suite.name, {"command": "-"})
    rows = pd.read_csv(tmp_path / "imdb" / "rows.csv").set_index("method")
    assert rows.loc["minilm, fine-tuned", "paper"].isna().all()
    assert rows.loc["floral, own encoder", "paper"].notna().any()
    for name in ("imdb", "imdb_heads"):
        assert (tmp_path / "imdb" / f"{name}.png").stat().st_size > 1000
    overlap = (tmp_path / "imdb-influence" / "accuracy.md").read_text()
    assert "## Overlap" in overlap
    assert "**" not in overlap  # more is not better there
    assert (tmp_path / "imdb-influence" / "overlap.png").stat().st_size > 1000
    setting = (10, 0.005)
    assert paper_value("comp-imdb-additional", 40, setting, "floral, own encoder", "hinge_loss", "last") is not None
    assert (
        paper_value("comp-imdb-additional", 40, setting, "curie told the level, own encoder", "accuracy", "last")
        is None
    )
