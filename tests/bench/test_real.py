"""floral bench real: sets from a folder, cells that resume, tables and pages; on tiny made-up data."""

import json
import lzma

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from floral_bench.experiments import experiment
from floral_bench.real import sets
from floral_bench.real.card import by_source, complete, gains, interval, read_tables
from floral_bench.real.cells import ALONE, AUDIT, REVIEW, real_cells, run_cells
from floral_bench.real.judging import JUDGES, OURS, Judge, Judged, measures
from floral_bench.real.page import PAGES, pages, publish
from floral_bench.real.planted import KINDS, plant
from floral_bench.runner import run_cells as run_all
from floral_bench.store import Store

pytest.importorskip("cleanlab")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A music crowd, and labelled texts, in a folder of their own; every cache is empty."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 100)
    X = rng.normal(size=(300, 4)) + 3 * np.eye(3, 4)[y]
    votes = np.where(rng.random((300, 3)) < 0.7, y[:, None], rng.integers(3, size=(300, 3)))
    votes[:, 2] = -1
    made = {"X": X[::2], "y": y[::2], "answers": votes[::2], "X_test": X[1::2], "y_test": y[1::2]}
    (tmp_path / "tables").mkdir()
    np.savez(tmp_path / "tables" / "music_crowd.npz", **made)
    monkeypatch.setenv("FLORAL_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    sets.arrays.cache_clear()
    sets.problem.cache_clear()
    yield tmp_path
    sets.arrays.cache_clear()
    sets.problem.cache_clear()


def texts(path):
    rows = [
        {"split": "train" if i % 3 else "test", "text": f"{'buy now' if i % 2 else 'nice song'} {i % 7} word{i}",
         "label": i % 2, "votes": [-1 if i % 5 == 0 else i % 2, 1 if i % 4 == 0 else -1]}
        for i in range(360)
    ]  # fmt: skip
    (path / "real").mkdir()
    with lzma.open(path / "real" / "wrench_youtube.jsonl.xz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def test_one_vote_a_row_is_drawn_and_the_worst_one_is_wrong_where_any_is(folder):
    drawn = sets.problem("music", "vote", 0.0, 3, 1000)
    assert 0.05 < (drawn.given != drawn.y).mean() < 0.4
    np.testing.assert_array_equal(drawn.given, sets.problem("music", "vote", 0.0, 3, 1000).given)
    worst = sets.problem("music", "worst vote", 0.0, 3, 1000)
    data = sets.arrays("music")
    rows = np.random.default_rng(3).permutation(150)
    any_wrong = ((data["votes"] != data["y"][:, None]) & (data["votes"] >= 0)).any(axis=1)[rows]
    np.testing.assert_array_equal(worst.given != worst.y, any_wrong)


def test_texts_carry_the_majority_of_their_functions(folder, monkeypatch):
    monkeypatch.setattr(sets, "COMPONENTS", 5)
    texts(folder)
    data = sets.arrays("youtube")
    assert data["X"].shape[1] == 5
    assert len(data["X_test"]) == 120
    assert len(data["y"]) < 240, "rows without a vote are left out"
    assert 0 < (data["given functions"] != data["y"]).mean() < 0.3


def test_a_cache_serves_where_the_folder_is_missing(folder, monkeypatch):
    before = sets.problem("music", "vote", 0.0, 0, 1000)
    monkeypatch.setenv("FLORAL_DATA", "")
    sets.arrays.cache_clear()
    sets.problem.cache_clear()
    np.testing.assert_array_equal(sets.problem("music", "vote", 0.0, 0, 1000).X, before.X)
    assert "FLORAL_DATA" in sets.missing("labelme")


@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_planted_in_the_share_that_was_asked_for(kind):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [200, 60, 40])
    X = rng.normal(size=(300, 3)) + 2 * np.eye(3)[y]
    given = plant(kind, X, y, 0.2, rng)
    assert (given != y).mean() == pytest.approx(0.2)
    assert all((given[y == c] == c).mean() >= 0.2 for c in range(3)), "no class loses all of its labels"


def test_measures_of_a_known_case():
    wrong = np.array([True, True, False, False, True])
    found = measures(Judged(np.array([0.9, 0.5, 0.8, 0.1, 0.2]), np.array([1, 0, 1, 0, 0], bool), 0.5), wrong)
    assert (found["precision"], found["recall"], found["F1"]) == (0.5, pytest.approx(1 / 3), pytest.approx(0.4))
    assert found["read per error"] == pytest.approx(3 / 2), "two of three errors are among the first three"
    assert found["average precision"] == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)
    assert set(measures(Judged(np.zeros(5), np.zeros(5, bool)), np.zeros(5, bool))) == {"flagged", "wrong"}


def test_every_judge_finds_planted_errors_among_clouds():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 2)) + 5 * y[:, None]
    given = y.copy()
    given[:6] = 1
    judge = Judge(sets.Problem(X, y, given, X, y), 0)
    for name, rule in JUDGES.items():
        assert measures(rule(judge), given != y)["average precision"] > 0.8, name


def test_a_run_that_was_stopped_continues_and_makes_pages(folder):
    found = experiment("real", {"quick": True})
    cells = [
        cell for cell in found.cells if cell.method.title not in ("nobody to ask: forest", "nobody to ask: boosting")
    ]
    assert {dict(cell.method.params)["part"] for cell in cells} == {AUDIT, REVIEW, ALONE}
    found.ready(cells)
    with Store(folder / "store.sqlite") as store:
        first = cells[: len(cells) // 2]
        store.commit(*run_cells([cell for cell in first if cell.seed == 0 and cell.data == first[0].data][:1]))
        report = run_all(cells, store)
        assert (report.reused, report.computed, report.failed) == (1, len(cells) - 1, 0)
        frame = found.read(cells, store)
    found.write(frame, folder / "run", {"command": "x", "environment": {"system": "here"}, "started": "2026-01-01"})
    tables = read_tables(folder / "run")
    assert set(tables[AUDIT]["who"]) == set(JUDGES)
    after = gains(tables[REVIEW]).query("who == @OURS and answers == 50")
    assert after["left"].item() < 0.6
    publish(folder / "run", folder)
    assert (folder / PAGES[0]).read_text("utf-8") == (folder / "run" / PAGES[0]).read_text("utf-8")
    assert "average precision" in (folder / PAGES[0]).read_text("utf-8")
    assert len(frame[frame["who"] != OURS]) > len(complete(frame[frame["who"] != OURS].iloc[:-1]))


def test_means_are_over_sources_and_so_are_intervals():
    rows = [("a", "x", 0.0), ("a", "y", 1.0), ("b", "z", 1.0), ("b", "z", 1.0)]
    table = pd.DataFrame(rows, columns=["source", "set", "F1"]).assign(who="ours")
    values = by_source(table, "F1")["ours"]
    assert values.tolist() == [0.5, 1.0]
    mean, low, high = interval(values.to_numpy())
    assert (mean, low, high) == (0.75, 0.5, 1.0)


def test_without_data_the_command_says_where_it_belongs(tmp_path, monkeypatch):
    from floral_learn.app import make_app

    monkeypatch.setenv("FLORAL_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ended = CliRunner().invoke(make_app(), ["bench", "real", "--trial", "--out", str(tmp_path)])
    assert ended.exit_code == 2
    assert "FLORAL_DATA" in ended.output


def test_parts_and_people_are_chosen_by_name(folder):
    assert {dict(cell.method.params)["who"] for cell in real_cells(methods=["kNN vote"])} == {"kNN vote"}
    assert {dict(cell.method.params)["part"] for cell in real_cells(methods=[REVIEW])} == {REVIEW}
    with pytest.raises(ValueError, match="'nope' is unknown"):
        real_cells(methods=["nope"])


def test_published_pages_are_rendered_from_their_tables():
    from test_published_results import RESULTS

    if not (RESULTS / "real").is_dir():
        pytest.skip("docs are not part of the source archive")
    for name, text in pages(RESULTS / "real").items():
        assert (RESULTS / name).read_text("utf-8") == text, "python -m floral_bench.real.page writes it again"
