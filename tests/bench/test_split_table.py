"""A table of the user's own as a data set of the benchmarks: split, encoded on the training rows alone."""

import numpy as np
import pytest

from floral_bench.split_table import load_split_table


def write(path, n=80):
    lines = ["x,kind,y"] + [f"{i % 13},{'ab'[i % 2]},{'pn'[(i // 2) % 2]}" for i in range(n)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_table_is_split_by_seed_and_class(tmp_path):
    path = write(tmp_path / "t.csv")
    data = load_split_table(path, "y", seed=3)
    assert (len(data.y_train), len(data.y_test)) == (56, 24)
    assert data.X_train.shape[1] == 3  # a number and two categories
    for y in (data.y_train, data.y_test):
        assert (y == "p").mean() == pytest.approx(0.5)
    again, other = load_split_table(path, "y", seed=3), load_split_table(path, "y", seed=4)
    np.testing.assert_array_equal(again.X_train, data.X_train)
    assert not np.array_equal(other.X_train, data.X_train)


def test_the_encoding_is_learned_on_training_rows_alone(tmp_path):
    data = load_split_table(write(tmp_path / "t.csv"), "y", seed=0)
    np.testing.assert_allclose(data.X_train[:, 0].mean(), 0, atol=1e-12)
    np.testing.assert_allclose(data.X_train[:, 0].std(), 1)
    assert abs(data.X_test[:, 0].mean()) > 1e-6


@pytest.mark.parametrize(
    ("content", "label", "message"),
    [
        ("a,b\n1,2\n", "y", "no column 'y'"),
        ("x,y\n" + "1,p\n2,n\n" * 3, "y", "at least 4 are needed"),
        ("x,y\n" + "".join(f"{i},{i}\n" for i in range(40)), "y", "40 different values"),
        ("x,y\n" + "1,p\n2,n\n" * 8 + "3,\n", "y", "1 missing labels"),
    ],
)
def test_a_table_that_cannot_be_used_is_explained(tmp_path, content, label, message):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(ValueError, match=message):
        load_split_table(tmp_path / "t.csv", label)
    with pytest.raises(ValueError, match="No such file"):
        load_split_table(tmp_path / "none.csv", label)
