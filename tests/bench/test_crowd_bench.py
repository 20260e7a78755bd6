"""floral bench crowd: problems, cells that resume, and tables that compare like with like."""

import numpy as np
import pytest

from floral_bench.crowds.card import card_text, complete, crowd_frame, groups, score_card
from floral_bench.crowds.cells import crowd_cells
from floral_bench.crowds.problems import KINDS, load_problem
from floral_bench.crowds.score import calibration_error, limit, run_cell
from floral_bench.experiments import experiment
from floral_bench.store import Store


@pytest.mark.parametrize("kind", KINDS)
def test_simulated_crowds_are_what_they_say(kind):
    problem = load_problem("wine", kind, 0)
    given = problem.votes >= 0
    assert abs(given.sum(axis=1).mean() - KINDS[kind].votes_per_item) < 0.2
    error = (problem.votes != problem.y[:, None])[given].mean()
    assert 0.1 < error < 0.4
    np.testing.assert_array_equal(problem.votes, load_problem("wine", kind, 0).votes)


def test_the_limit_is_that_of_the_formula():
    problem = load_problem("wine", "dense", 0)
    error = (problem.votes != problem.y[:, None])[problem.votes >= 0].mean()
    assert limit(problem, np.zeros(problem.votes.shape[1], dtype=bool)) == pytest.approx((1 - error) / (2 - error))


def test_calibration_error_is_zero_for_honest_coins():
    probability = np.array([[0.75, 0.25]] * 4)
    assert calibration_error(probability, np.array([0, 0, 0, 1])) == pytest.approx(0)
    assert calibration_error(probability, np.array([1, 1, 1, 1])) == pytest.approx(0.75)


def test_finished_cells_are_known_and_make_a_card(tmp_path):
    cells = [c for c in crowd_cells(quick=True, methods=["majority", "ours"]) if c.data.name == "wine"]
    assert len({cell.key for cell in cells}) == len(cells) == 10
    with Store(tmp_path / "store.sqlite") as store:
        for cell in cells:
            store.commit(run_cell(cell))
        assert set(store.status(c.key for c in cells).values()) == {"done"}
        frame = crowd_frame(cells, store)
    card = score_card(frame)
    assert card.index[0] == "ours"
    assert (groups(frame)["lead"] > 0).all()
    assert "5 problems" in card_text(frame)
    assert len(complete(frame[:-1])) == 8
    written = experiment("crowd", {"quick": True}).write(frame, tmp_path / "crowd", {"command": "floral bench crowd"})
    assert {path.name for path in written} == {"cells.csv", "card.md", "run.json"}


def test_an_unknown_method_is_named():
    with pytest.raises(ValueError, match="--methods 'nope' is unknown"):
        crowd_cells(methods=["nope"])


def test_a_failed_cell_says_why(monkeypatch):
    from floral_bench.crowds import peers

    def fails(*_):
        raise RuntimeError("no luck")

    monkeypatch.setitem(peers.METHODS, "majority", fails)
    result = run_cell(crowd_cells(quick=True, methods=["majority"])[0])
    assert "no luck" in result.error
