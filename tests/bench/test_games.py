"""A cell's column in a batch is the game that the cell would play alone."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from tiny import TINY

from floral_bench.cell_data import load, poisoned_labels
from floral_bench.families.games import (
    ScaledGram,
    configurations,
    run_games,
)
from floral_bench.families.plain_rounds import EarlyStoppedSVC, project_as_printed
from floral_bench.families.sanitise import prepare
from floral_bench.metrics import binary_scores, label_scores, multiclass_hinge
from floral_bench.plan import MAX_COLUMNS, jobs_for
from floral_bench.spec import Attack, Data, params
from floral_bench.suites import ABLATIONS, FOIL, PGD, SUITES
from floral_learn.game import DenseGram, Kernel, project, step_schedule
from floral_learn.paper.ln_svm import correct_gram

GAMES = (*PGD, FOIL, *ABLATIONS)


def cells_of(*names, level=10):
    suite = replace(TINY, methods=tuple(method for method in GAMES if method.name in names))
    return [c for c in suite.cells() if c.method.name in names and c.level == level and c.seed == 1]


def labels_for(cells):
    first = cells[0]
    if first.level == 0:
        return [load(first.data).y_train_clean for _ in cells]
    (y,) = poisoned_labels(first.data, Attack("farthest"), [first.level], first.seed)
    return [y for _ in cells]


def rows_of(result):
    return {(config, statistic, metric): value for config, statistic, metric, value in result.rows}


def test_a_batch_of_methods_gives_each_what_it_gets_alone():
    cells = cells_of("floral", "svm", "ln-svm", "curie", "ls-svm", "k-lid")
    dataset, labels = load(cells[0].data), labels_for(cells)
    together = run_games(cells, labels, dataset)
    for cell, y, result in zip(cells, labels, together, strict=True):
        (alone,) = run_games([cell], [y], dataset)
        assert rows_of(alone) == pytest.approx(rows_of(result), abs=1e-5), cell.method.name


def test_the_plain_column_is_projected_gradient_without_an_attacker():
    """Against the same rounds in plain numpy."""
    (cell,) = cells_of("svm")
    dataset, (y,) = load(cell.data), labels_for([cell])
    (result,) = run_games([cell], [y], dataset)
    rows = rows_of(result)
    K, test = (rbf_kernel(X, dataset.X_train, gamma=cell.gamma) for X in (dataset.X_train, dataset.X_test))
    signs, truth = (np.where(labels == dataset.classes[1], 1.0, -1.0) for labels in (y, dataset.y_test))
    for config, at in configurations(cell, len(y)).items():
        eta, decay = at.eta, at.decay
        dual = np.zeros(len(y))
        for step in step_schedule(eta, 12, decay and (0.1, decay)):
            dual = project(dual - step * (signs * (K @ (signs * dual)) - 1), signs, cell.C).dual
        free = (dual > 0) & (dual < cell.C)
        scores = test @ (signs * dual) + (signs - K @ (signs * dual))[free].mean()
        assert rows[config, "last", "accuracy"] == pytest.approx(((scores > 0) == (truth > 0)).mean(), abs=1e-6)
        hinge = np.maximum(0, 1 - truth * scores).mean()
        assert rows[config, "last", "hinge_loss"] == pytest.approx(hinge, abs=1e-4)


def test_the_projection_as_printed_swings_and_leaves_the_constraint_unmet():
    rng = np.random.default_rng(0)
    z, signs = rng.uniform(0.4, 1.0, (40, 3)), np.where(rng.random((40, 3)) < 0.4, 1.0, -1.0)
    exact = project(z, signs, 10.0).dual
    assert np.abs((signs * exact).sum(0)).max() < 1e-9
    # mu = 0, phi / n, 0, ...: after an even number of rounds nothing but the clipping is left
    found = project_as_printed(z, signs, np.full(z.shape, 10.0))
    printed, mu = found.dual, found.mu
    np.testing.assert_allclose(printed, z, atol=1e-9)
    np.testing.assert_allclose(mu, 0, atol=1e-9)
    assert np.abs(exact - z).max() > 0.05


def test_an_attack_on_early_duals_flips_the_largest_of_them():
    data = Data("moon", params(seed=1, n_train=60, n_val=10, n_test=40))
    (y,) = poisoned_labels(data, Attack("top-k", params(duals="early", eta=1e-3, C=10, gamma=1)), [10], 1)
    dataset = load(data)
    flipped = np.flatnonzero(y != dataset.y_train_clean)
    model = EarlyStoppedSVC(10, 1, 1e-3).fit(dataset.X_train, dataset.y_train_clean)
    duals = np.abs(model.dual_coef_[0])
    assert len(flipped) == 6
    assert duals[flipped].min() >= np.delete(duals, flipped).max()
    assert abs(model.dual_coef_.sum()) < 1e-6
    assert (duals > 0).mean() > 0.9, "stopped early, nearly every row still has a say"


def test_rows_that_curie_drops_have_no_say():
    (cell,) = cells_of("curie")
    dataset, (y,) = load(cell.data), labels_for([cell])
    kept = prepare(cell, dataset, y).cap > 0
    assert 0 < (~kept).sum() < len(y)
    (full,) = run_games([cell], [y], dataset)
    flipped = y.copy()
    flipped[~kept] *= -1
    without = replace(cell, method=replace(cell.method, name="svm"))
    smaller = replace(
        dataset,
        X_train=dataset.X_train[kept],
        y_train=y[kept],
        y_train_clean=dataset.y_train_clean[kept],
    )
    (expected,) = run_games([without], [y[kept]], smaller)
    assert rows_of(full) == pytest.approx(rows_of(expected), abs=1e-5)


def test_the_scaled_gram_is_the_corrected_matrix_of_ln_svm():
    rng = np.random.default_rng(0)
    X, columns = rng.normal(size=(30, 2)), np.asfortranarray(rng.normal(size=(30, 4)))
    gram = DenseGram.from_rows(X, Kernel("rbf", 0.7))
    noise = np.array([0.0, 0.1])
    product = ScaledGram(gram, 1 - 4 * noise * (1 - noise)).matmat(columns)
    for j, mu in enumerate([0.0, 0.1, 0.0, 0.1]):  # wider products repeat the scales
        np.testing.assert_allclose(product[:, j], correct_gram(gram.matrix, mu) @ columns[:, j], atol=1e-12)


def test_jobs_cover_every_cell_once_and_stay_narrow():
    cells = SUITES["moon"].cells()
    first, second = jobs_for(cells)
    covered = [cell.key for job in (*first, *second) for cell in job.cells]
    assert sorted(covered) == sorted(cell.key for cell in cells)
    games = [job for job in second if job.family == "games"]
    assert max(sum(len(configurations(c, 500)) for c in job.cells) for job in games) <= MAX_COLUMNS


def test_metrics_of_a_hand_made_case():
    scores = np.array([[2.0], [0.5], [-0.2], [-3.0]])
    truth = np.array([True, True, True, False])
    found = binary_scores(scores, truth)
    assert found["accuracy"][0] == 0.75
    assert found["balanced_accuracy"][0] == pytest.approx((2 / 3 + 1) / 2)
    assert found["hinge_loss"][0] == pytest.approx((0 + 0.5 + 1.2 + 0) / 4)
    assert label_scores(np.array([1, 1, 0]), np.array([1, 0, 0])) == {"accuracy": 2 / 3, "balanced_accuracy": 0.75}
    assert multiclass_hinge(np.array([[2.0, 0.5, 0.0]]), np.array([1])) == pytest.approx(2.5)
