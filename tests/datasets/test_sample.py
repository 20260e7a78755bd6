"""The sample table of the guide: drawn from a seed, with the mistakes that it promises, over no file of yours."""

import pandas as pd
import pytest
from refusals import refuses

from floral_learn.datasets import sample_table


def test_the_same_seed_writes_the_same_bytes_and_another_seed_others(tmp_path):
    first, again, other = (
        sample_table(tmp_path / f"{i}.csv", random_state=seed).read_bytes() for i, seed in enumerate((0, 0, 1))
    )
    assert first == again
    assert first != other


def test_the_careless_worker_makes_most_of_the_mistakes(tmp_path):
    table = pd.read_csv(sample_table(tmp_path / "parts.csv", truth=True))
    wrong = table["quality"] != table["truth"]
    assert len(table) == 600
    # The guide says so, in numbers.
    assert wrong.sum() == 46
    assert (table["worker"][wrong] == "eli").sum() == 35
    assert not wrong[table["gold"] == "yes"].any()
    assert (table["gold"] == "yes").any()
    assert table["weight"].isna().any()


def test_the_truth_is_added_and_nothing_else_changes(tmp_path):
    plain, told = (pd.read_csv(sample_table(tmp_path / f"{truth}.csv", truth=truth)) for truth in (False, True))
    pd.testing.assert_frame_equal(plain, told.drop(columns="truth"))


def test_a_file_with_other_content_is_never_overwritten(tmp_path):
    mine = tmp_path / "parts.csv"
    sample_table(mine)
    assert sample_table(mine) == mine  # the same table again is no harm
    mine.write_text("mine")
    refuses("exists and is not this table", sample_table, mine, error=FileExistsError)
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("n_rows", [29, 40.0, True, "many"])
def test_a_wrong_number_of_rows_is_named(tmp_path, n_rows):
    refuses(r"n_rows=.* must be an integer of at least 30", sample_table, tmp_path / "parts.csv", n_rows=n_rows)
