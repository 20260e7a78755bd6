"""``floral predict``: a model file and new rows in, predictions out."""

import csv

import numpy as np
import pytest
from commands import floral, refused
from sklearn.datasets import make_blobs
from sklearn.svm import SVC

from floral_learn import save


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    X, y = make_blobs(90, centers=3, random_state=1)
    rows = "".join(f"{a},{b},{'pqr'[label]}\n" for (a, b), label in zip(X, y, strict=True))
    (folder / "data.csv").write_text("a,b,y\n" + rows)
    floral("train", folder / "data.csv", "--label", "y", "--out", folder / "m.skops")
    return folder


def test_three_classes_have_three_scores_and_the_largest_wins(tmp_path, model):
    floral("predict", model / "m.skops", model / "data.csv", "--out", tmp_path / "p.csv")
    with open(tmp_path / "p.csv") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["row"] for row in rows] == [str(i) for i in range(90)]
    for row in rows:
        scores = {name: float(row[f"score_{name}"]) for name in "pqr"}
        assert row["prediction"] == max(scores, key=scores.get)


def test_order_and_extra_columns_do_not_matter(tmp_path, model):
    (tmp_path / "new.csv").write_text("b,extra,a\n1.5,x,-2\n-8,y,0\n")
    (tmp_path / "same.csv").write_text("a,b\n-2,1.5\n0,-8\n")
    for name in ("new", "same"):
        floral("predict", model / "m.skops", tmp_path / f"{name}.csv", "--out", tmp_path / f"{name}.out.csv")
    assert (tmp_path / "new.out.csv").read_text() == (tmp_path / "same.out.csv").read_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [("a\n1\n", "there is no column 'b'"), ("a,b\n1,x\n", "column 'b' was numbers in training"), ("", "is empty")],
)
def test_rows_that_do_not_fit_are_one_line_exit_2_and_no_file(tmp_path, model, content, message):
    (tmp_path / "new.csv").write_text(content)
    assert message in refused("predict", model / "m.skops", tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    assert not (tmp_path / "p.csv").exists()


def test_what_is_no_model_is_named(tmp_path, model):
    (tmp_path / "fake.skops").write_text("no archive")
    for path in (tmp_path / "fake.skops", tmp_path / "none.skops"):
        assert path.name in refused("predict", path, model / "data.csv", "--out", tmp_path / "p.csv")


def test_a_model_of_another_make_is_refused(tmp_path, model):
    save(SVC().fit(np.eye(4), [0, 1, 0, 1]), tmp_path / "plain.skops")
    assert "is not a model of floral train" in refused(
        "predict", tmp_path / "plain.skops", model / "data.csv", "--out", tmp_path / "p.csv"
    )


def test_inputs_are_never_overwritten(model):
    before = (model / "data.csv").read_bytes()
    for target in ("data.csv", "m.skops"):
        floral("predict", model / "m.skops", model / "data.csv", "--out", model / target, code=2)
    assert (model / "data.csv").read_bytes() == before
