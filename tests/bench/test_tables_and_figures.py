from dataclasses import replace

import numpy as np
import pytest
from tiny import GRID, TINY

from floral_bench.figures import CAPTIONS, write_figures
from floral_bench.reporting import tables
from floral_bench.reporting.paper import paper_value, paper_values
from floral_bench.reporting.results import Results
from floral_bench.reporting.tables import by_level, comparable
from floral_bench.reporting.write import rows_of
from floral_bench.runner import run_suite
from floral_bench.spec import CellResult, params
from floral_bench.store import Store
from floral_bench.suites import FIXED, PGD, SUITES

ELSEWHERE = ("imdb", "imdb_heads", "overlap", "heads")  # these have suites and tests of their own
DRAWN = tuple(name for name in CAPTIONS if name not in ELSEWHERE)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("results") / "store.sqlite") as store:
        run_suite(TINY, store)
        yield store


@pytest.fixture(scope="module")
def results(store):
    return Results(TINY, store)


def test_the_papers_numbers_are_all_there():
    assert len(paper_values()) == 816
    assert paper_value("comp-moon", 10, (10, 1), "floral", "accuracy", "best") == 0.924
    assert paper_value("comp-moon", 10, (10, 1), "no such method", "accuracy", "best") is None


def planted(tmp_path, numbers):
    """A store in which FLORAL has two configurations with the given (best, last) for two seeds."""
    suite = replace(TINY, methods=PGD[:1], levels=(0,), paper_table="comp-moon")
    store = Store(tmp_path / "s.sqlite")
    for cell, values in zip(suite.cells(), numbers, strict=True):
        result = CellResult(cell)
        for config, (best, last) in values.items():
            result.add("accuracy", best, "best", config)
            result.add("accuracy", last, "last", config)
        store.commit(result)
    return Results(suite, store)


def test_each_column_shows_the_configuration_with_the_highest_mean(tmp_path):
    results = planted(
        tmp_path,
        [{"a": (0.9, 0.5), "b": (0.8, 0.7)}, {"a": (0.8, 0.6), "b": (0.7, 0.9)}],
    )
    rows = tables.comparison(results).set_index("statistic")
    assert rows.configuration.to_dict() == {"best": "a", "last": "b"}
    assert rows["mean"].to_list() == pytest.approx([0.85, 0.8])
    assert rows.deviation["last"] == pytest.approx(np.std([0.7, 0.9], ddof=1))
    assert rows.paper["last"] == 0.966


@pytest.mark.parametrize(("metric", "sign"), [("accuracy", 1), ("hinge_loss", -1)])
def test_the_best_of_each_level_is_marked(results, metric, sign):
    rows = tables.comparison(results, metric)
    told = {method.title for method in TINY.methods if method.told}
    for level in TINY.levels:
        final = rows[(rows.level == level) & (rows.statistic == "final")]
        assert (final[final.method.isin(told)].best == "").all(), "alone: nobody else is told the level"
        untold = final[~final.method.isin(told)]
        means = [sign * round(mean, 3) for mean in untold["mean"]]
        level_all = len(set(means)) == 1
        assert [best == "yes" for best in untold.best] == [mean == max(means) and not level_all for mean in means]


def test_a_number_is_compared_with_those_that_know_as_much():
    suite, users = SUITES["moon"], replace(SUITES["moon"], default_setting=True)
    by_title = {method.title: method for method in (*suite.methods, *SUITES["nn-integration"].methods)}

    def words(title, statistic="final", suite=suite):
        return comparable(suite, by_title[title], statistic)

    assert words("floral", "last") == words("curie", "last") == words("nn", "best") == "chosen on test labels"
    assert words("nn", "last") == words("SVC()") == words("FloralClassifier()") == "told nothing, own settings"
    assert words("svm (libsvm)") == words("floral (budget 2 %)") == "told nothing, C of the suite"
    assert words("curie (libsvm)") == words("floral (budget = level)") == "told the level, C of the suite"
    assert words("svm (libsvm)", suite=users) == words("SVC()", suite=users), "their C is that of SVC()"
    assert words("nn+floral (B on test labels)", "last") == "chosen on test labels"
    assert words("nn of 3 turns", "last") == "told the level, own settings"
    heads = {method.title: comparable(SUITES["imdb"], method, "last") for method in SUITES["imdb"].methods}
    assert heads["svm, own encoder"] != heads["svm, clean encoder"], "one of the encoders saw clean labels"


def test_every_form_of_a_table_marks_the_same_numbers(results):
    rows = tables.comparison(results)
    marked = (rows.best == "yes").sum()
    assert marked
    assert rows.compared.all()
    small = by_level(rows)
    assert sum(tables.level_markdown(part).count("**") for part in small) == 2 * marked
    shown = [line for part in small for _, found in part.rows for line in found if line is not None]
    assert sum(line.best == "yes" for line in shown) == marked, "the page and the terminal show these"
    for part in small:
        lines = tables.level_markdown(part).splitlines()
        assert len({line.count("|") for line in lines}) == 1
        assert all(f"{line.mean:.3f}" in "".join(lines) for _, found in part.rows for line in found)
        assert " ± " not in "".join(lines), "a number and its deviation do not break"


def test_settings_that_the_paper_does_not_have_are_rows_that_say_so(tmp_path):
    grid = replace(GRID, etas=(1e-3,), decays=(5,), more_decays=(None,), flips=(0.05,))
    suite = replace(TINY, methods=PGD[:2], levels=(0,), grid=grid)
    with Store(tmp_path / "s.sqlite") as store:
        run_suite(suite, store)
        results = Results(suite, store)
        rows = tables.comparison(results)
        floral, svm = (rows[rows.method == name].set_index("statistic") for name in ("floral", "svm"))
        for statistic in ("best", "last", "average"):
            assert "decay=5" in floral.configuration[statistic]
            assert floral["mean"][f"{statistic} (wider grid)"] >= floral["mean"][statistic]
            assert f"{statistic} (wider grid)" not in svm.index, "an extension of FLORAL's grid alone"
        assert [name for name, _ in by_level(rows, grid)[0].rows] == ["floral", "floral (also without decay)", "svm"]
        settings = rows_of(results).query("statistic == 'last, at one setting'").configuration
        assert set(settings) == {"eta=0.001 decay=none", "eta=0.001 decay=5"}
        steps = replace(suite, grid=replace(grid, more_decays=(), more_etas=(3e-3,)))
        run_suite(steps, store)
        assert (tables.comparison(Results(steps, store)).statistic == "last (wider grid)").sum() == 2


def test_every_figure_is_drawn_and_is_not_empty(tmp_path):
    from matplotlib.image import imread

    suite = replace(
        TINY,
        methods=(PGD[0], PGD[1], FIXED, replace(FIXED, params=params(map=True), label="mapped")),
        figures=DRAWN,
        data=TINY.data[:1],
        seeds=TINY.seeds[:1],
        grid=replace(GRID, rounds=15),
    )
    with Store(tmp_path / "s.sqlite") as store:
        assert run_suite(suite, store).failed == 0
        written = write_figures(Results(suite, store), tmp_path / "figures")
    assert {path.name for path in written} == {f"{name}.png" for name in DRAWN}
    for path in written:
        picture = imread(path)
        assert picture.shape[1] > 400
        assert picture[..., :3].std() > 0.05
