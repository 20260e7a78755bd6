"""One fit per cell: many cells may share a kernel matrix, and none may notice."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC

from floral_bench.cell_data import load
from floral_bench.families import single_fits
from floral_bench.families.single_fits import LIBSVM, SVCS, SharedKernel, run_fits
from floral_bench.spec import Cell, Data, Method, params

DATA = Data("moon", params(seed=1, n_train=80, n_val=10, n_test=60))


def cells(names=(*LIBSVM, *SVCS)):
    whole = Cell(DATA, None, 10, Method("svc"), 10.0, 1.0, None, 1)
    alone = {"svc-default": {"C": None, "gamma": None}}
    return [replace(whole, method=Method(name), **alone.get(name, {})) for name in names]


def test_one_kernel_matrix_for_all_fits_changes_no_number(monkeypatch):
    dataset = load(DATA)
    labels = [dataset.y_train_clean] * len(cells())
    own = run_fits(cells(), labels, dataset)
    monkeypatch.setattr(single_fits, "DENSE_ROWS", 10)
    shared = run_fits(cells(), labels, dataset)
    for mine, theirs in zip(own, shared, strict=True):
        assert (mine.error, theirs.error) == (None, None), mine.cell.method.name
        numbers = [np.array([value for *_, value in result.rows]) for result in (mine, theirs)]
        # libsvm stops at 1e-3: rounding decides where in there it does
        np.testing.assert_allclose(*numbers, atol=2e-4, err_msg=mine.cell.method.name)


def test_a_matrix_is_computed_once_for_the_same_rows(monkeypatch):
    dataset = load(DATA)
    shared, computed = SharedKernel(dataset.X_train), []
    between = shared.backend.numpy
    monkeypatch.setattr(type(shared.backend), "numpy", lambda self, x: computed.append(1) or between(x))
    for C in (0.1, 1.0, 10.0):
        model = shared.lend(SVC(C=C)).fit(dataset.X_train, dataset.y_train_clean)
        assert model.predict(dataset.X_test) == pytest.approx(
            SVC(C=C).fit(dataset.X_train, dataset.y_train_clean).predict(dataset.X_test)
        )
    assert len(computed) == 2, "training rows with themselves, test rows with these"


def test_another_kernel_is_left_alone():
    dataset = load(DATA)
    assert SharedKernel(dataset.X_train).lend(SVC(kernel="linear")).kernel == "linear"
