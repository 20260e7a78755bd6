"""Heads on the features of networks: the cells are what the public estimators give, and the suite goes through."""

from dataclasses import replace

import numpy as np
import pytest
from tiny import TINY

torch = pytest.importorskip("torch")

from floral_bench.cell_data import load  # noqa: E402
from floral_bench.families.network_heads import gradient_labels  # noqa: E402
from floral_bench.families.networks import network_of  # noqa: E402
from floral_bench.mlp import NeuralNetClassifier  # noqa: E402
from floral_bench.reporting.page import render  # noqa: E402
from floral_bench.reporting.results import Results  # noqa: E402
from floral_bench.reporting.write import write_outputs  # noqa: E402
from floral_bench.runner import run_suite  # noqa: E402
from floral_bench.spec import Attack, Data, attack_cell, params  # noqa: E402
from floral_bench.store import Store  # noqa: E402
from floral_bench.suites import nn_methods  # noqa: E402
from floral_learn import FloralClassifier, poison  # noqa: E402
from floral_learn.paper import FloralHead  # noqa: E402
from floral_learn.paper.network import build_mlp  # noqa: E402

GRADIENT = Attack("gradient", params(surrogate="nn", epochs=5))
SUITE = replace(
    TINY,
    name="tiny-heads",
    attacks=(Attack("farthest"), GRADIENT),
    methods=nn_methods(epochs=6, n_rounds=40),
    grid=None,
    paper_table=None,
    figures=("heads",),
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


def test_a_head_is_floral_on_the_features_of_the_nn_cell(results):
    from floral_bench.batched_mlp import NetworkSettings
    from floral_learn.paper.network import Rows, train

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
    assert {"accuracy.md", "heads.png", "rows.csv", "run.json"} == written
    table = (tmp_path / "accuracy.md").read_text()
    assert "| nn+floral (B = level), 3 turns |" in table
    page = render(results, {"environment": {}, "command": "floral bench tiny", "seeds": [1, 2]})
    assert "heads on its features" in page
    side_by_side = table.split("## Methods side by side")[1]
    place = next(p for p in results.cells if p.method.title == "nn+svm" and p.level == 10 and p.attack == "farthest")
    assert "| farthest | 10\u00a0% |" in side_by_side
    assert f"{results.values(place, 'last').mean():.3f}" in side_by_side
