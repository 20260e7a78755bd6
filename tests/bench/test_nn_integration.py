"""Heads on the features of networks: the cells are what the public estimators give, and the suite goes through."""

from dataclasses import replace

import numpy as np
import pytest
from tiny import TINY

torch = pytest.importorskip("torch")

from floral_bench.adapt_suite import adapt  # noqa: E402
from floral_bench.cell_data import load  # noqa: E402
from floral_bench.families.network_heads import BUDGETS, gradient_labels  # noqa: E402
from floral_bench.families.networks import network_of  # noqa: E402
from floral_bench.mlp import NeuralNetClassifier  # noqa: E402
from floral_bench.reporting import details  # noqa: E402
from floral_bench.reporting.page import render  # noqa: E402
from floral_bench.reporting.results import Results  # noqa: E402
from floral_bench.reporting.write import write_outputs  # noqa: E402
from floral_bench.runner import run_suite  # noqa: E402
from floral_bench.spec import Attack, Data, attack_cell, params  # noqa: E402
from floral_bench.store import Store  # noqa: E402
from floral_bench.suites import DEFAULTS, SUITES, nn_methods  # noqa: E402
from floral_learn import FloralClassifier, poison  # noqa: E402
from floral_learn.paper import FloralHead, NeuralFloralClassifier  # noqa: E402
from floral_learn.paper.mlp_network import build_mlp  # noqa: E402

GRADIENT = Attack("gradient", params(surrogate="nn", epochs=5))
SUITE = replace(
    TINY,
    name="tiny-heads",
    attacks=(Attack("farthest"), GRADIENT),
    methods=nn_methods(epochs=6, n_rounds=40),
    grid=None,
    paper_table=None,
    figures=("epochs", "heads"),
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("heads") / "s.sqlite") as store:
        assert run_suite(SUITE, store).failed == 0
        yield Results(SUITE, store)


def found(results, title, attack="farthest", level=10):
    """The cell of the first replication, its rows and its labels."""
    place = next(p for p in results.cells if (p.method.title, p.attack, p.level) == (title, attack, level))
    cell = results.cells[place][0]
    rows = {(statistic, metric): value for _, statistic, metric, value in results.store.rows(cell)}
    labels = results.store.trace(attack_cell(cell.data, cell.attack, level, cell.seed), "labels")
    return cell, rows, labels


def network(cell):
    """The network of a cell as the estimator builds and trains it, from the same first weights."""
    dataset, stream = load(cell.data), torch.Generator().manual_seed(cell.seed)
    return build_mlp((dataset.X_train.shape[1], *network_of(Data("moon")).hidden, 1), stream), stream


def test_every_cell_is_there_and_has_its_numbers(results):
    for place, cells in results.cells.items():
        assert len(cells) == 2, place
        assert len(results.values(place, "last")) == 2, place
        if dict(place.method.params).get("head") == "grid":
            continue
        curve = results.traces(place, "accuracy", "last")
        assert [len(c) for c in curve] == {"nn": [6, 6], "nn-head": [4, 4], "nn-turns": []}[place.method.name]
        if place.method.name == "nn-head":
            assert [c.tolist() for c in results.traces(place, "epochs", "last")] == [[1, 2, 3, 6]] * 2


def test_a_head_is_floral_on_the_features_of_the_nn_cell(results):
    from floral_bench.batched_mlp import NetworkSettings
    from floral_learn.paper.training import Rows, train

    cell, rows, y = found(results, "nn+floral (B = level)")
    dataset = load(cell.data)
    module, stream = network(cell)
    one_hot = np.eye(2, dtype=np.float32)[(y == 1).astype(int)]
    train(module, Rows(dataset.X_train, one_hot), NetworkSettings(epochs=6), stream)
    head = FloralHead(module, head=FloralClassifier(budget=0.1, n_rounds=40, random_state=cell.seed))
    head.fit(dataset.X_train, y)
    assert rows["last", "accuracy"] == pytest.approx(head.score(dataset.X_test, dataset.y_test), abs=0.03)
    # the plain network is the nn cell
    _, plain, _ = found(results, "nn")
    with torch.no_grad():
        odds = module(torch.tensor(dataset.X_test, dtype=torch.float32))[:, 0].numpy()
    assert plain["last", "accuracy"] == pytest.approx(((odds > 0) == (dataset.y_test == 1)).mean(), abs=0.03)


def test_turns_are_those_of_the_estimator(results):
    cell, rows, y = found(results, "nn+floral (B = level), 1 turn")
    dataset = load(cell.data)
    module, _ = network(cell)
    clf = NeuralFloralClassifier(
        module, epochs=6, alternations=1, head=FloralClassifier(budget=0.1, n_rounds=40, random_state=cell.seed)
    )
    clf.fit(dataset.X_train, y)
    # other batches than the cell's: the estimator draws them from a seed of its own
    assert rows["last", "accuracy"] == pytest.approx(clf.score(dataset.X_test, dataset.y_test), abs=0.1)
    assert not np.array_equal(clf.soft_labels_, np.round(clf.soft_labels_))


def test_on_clean_labels_told_and_default_budgets_are_the_same_head(results):
    _, told, _ = found(results, "nn+floral (B = level)")
    assert told != found(results, "nn+floral")[1]
    place = {p.method.title: p for p in results.cells if p.level == 0}
    for statistic in ("best", "last"):
        np.testing.assert_array_equal(
            results.values(place["nn+floral (B = level)"], statistic), results.values(place["nn+floral"], statistic)
        )


def test_the_budget_that_is_best_on_the_test_set_is_shown(results):
    grid = next(p for p in results.cells if p.method.title == "nn+floral (B on test labels)" and p.level == 10)
    means = {B: results.values(grid, "last", config=f"B={B:g}").mean() for B in BUDGETS}
    assert results.values(grid, "last").mean() == max(means.values())
    plain = next(p for p in results.cells if p.method.title == "nn+floral" and p.level == 10)
    assert results.values(plain, "last").mean() == pytest.approx(means[0.02])


def test_the_gradient_attack_goes_against_a_network_on_clean_labels(results):
    cell, _, y = found(results, "nn", "gradient")
    dataset = load(cell.data)
    nn = NeuralNetClassifier(network_of(Data("moon")).hidden, epochs=5, random_state=cell.seed)
    nn.fit(dataset.X_train, dataset.y_train_clean)
    own = poison(
        dataset.X_train, dataset.y_train_clean, attack="gradient", budget=6, surrogate=nn, random_state=cell.seed
    )
    np.testing.assert_array_equal(y, own.y)
    (again,) = gradient_labels(cell.data, GRADIENT, [10], cell.seed, None)
    np.testing.assert_array_equal(again, y)


def test_tables_figures_and_page_are_written(results, tmp_path):
    written = {path.name for path in write_outputs(results, tmp_path, {})}
    assert {"accuracy.md", "epochs.png", "heads.png", "rows.csv", "run.json"} == written
    table = (tmp_path / "accuracy.md").read_text()
    assert "| nn+floral (B = level), 3 turns |" in table
    page = render(results, {"environment": {}, "command": "floral bench tiny", "seeds": [1, 2]})
    assert "heads fitted on its features" in page
    side_by_side = table.split("## Methods side by side")[1]
    place = next(p for p in results.cells if p.method.title == "nn+svm" and p.level == 10 and p.attack == "farthest")
    assert "| farthest | 10\u00a0% |" in side_by_side
    assert f"{results.values(place, 'last').mean():.3f}" in side_by_side


def test_what_turns_change_is_taken_split_by_split(results):
    wide = details.heads(results)
    here = wide.loc[("farthest", 10)]
    apart = (here["nn+floral (B = level), 1 turn"] - here["nn+floral (B = level)"]).mean()
    table = details.turns(results).set_index(["attack", "poisoned"])
    shown = table.loc[("farthest", "10\u00a0%"), "head after 1 turn - head"]
    assert shown.split("±")[0].strip() == f"{apart:+.3f}"
    assert set(wide.index.get_level_values("attack")) >= {"none", "farthest"}


def test_a_second_run_finds_everything(results):
    again = run_suite(SUITE, results.store)
    assert (again.computed, again.reused) == (0, again.cells)


@pytest.mark.parametrize("name", ["nn-integration", "nn-integration-mnist"])
def test_the_quick_version_is_short(name):
    suite = adapt(SUITES[name], quick=True)
    for method in suite.methods:
        if method in DEFAULTS:
            continue
        given = dict(method.params)
        assert given["epochs"] == 3
        assert method.name == "nn" or given["n_rounds"] == 100
