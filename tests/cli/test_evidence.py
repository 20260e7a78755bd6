"""`floral evidence`: what the files know, what nobody knows, and nothing from them as markup."""

import numpy as np
import pytest
from typer.testing import CliRunner

from floral_learn import LabelReview, save
from floral_learn.cli import make_app
from floral_learn.review.evidence import review_evidence

app = make_app()


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def review():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, "<b>yes</b>", "no")
    given = y.copy()
    given[:6] = np.where(given[:6] == "no", "<b>yes</b>", "no")
    made = LabelReview(X, given)
    for _ in range(12):
        rows = made.ask(1)
        made.answer(rows, y[rows], reviewer="ann")
    return made


def test_a_trained_model_says_its_data_and_what_is_not_known(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i},{'ab'[i > 30]}\n" for i in range(60)))
    assert run("train", tmp_path / "t.csv", "-l", "y", "-o", tmp_path / "m.skops").exit_code == 0
    done = run("evidence", tmp_path / "m.skops")
    assert done.exit_code == 0, done.output
    for part in ("t.csv", "rows: 60", "held-out accuracy", "nobody checked labels drawn at random", "AML.T0020"):
        assert part in done.output
    assert "no answers are stored" in done.output


def test_a_review_says_who_checked_what_and_the_guarantee(tmp_path, review):
    review.save(tmp_path / "r.skops")
    done = run("evidence", tmp_path / "r.skops", "-o", tmp_path / "e.html")
    assert done.exit_code == 0, done.output
    known = review_evidence(review)
    assert known["checked"] == 12
    assert known["drawn at random"] + known["chosen by the model"] <= 12
    assert "12 checked" in done.output
    assert "ann (12)" in done.output
    assert f"{100 * review.guarantee().low:.1f} % to" in done.output
    page = (tmp_path / "e.html").read_text()
    assert "<script" not in page
    assert "<b>" not in page


def test_evidence_in_a_model_file_becomes_a_page_and_a_card_without_markup(tmp_path, review):
    model = review.train(__import__("sklearn.svm", fromlist=["SVC"]).SVC())
    model.evidence_ = {"review": review_evidence(review), "data": {"file": "<i>[x](y)</i>"}}
    save(model, tmp_path / "m.skops")
    for name in ("e.html", "card.md"):
        done = run("evidence", tmp_path / "m.skops", "-o", tmp_path / name)
        assert done.exit_code == 0, done.output
        written = (tmp_path / name).read_text()
        assert "<i>" not in written
        assert "[x](y)" not in written or name == "e.html"
        assert "by the model" in written


def test_what_cannot_be_read_or_written_is_one_line(tmp_path):
    (tmp_path / "bad.skops").write_bytes(b"nothing")
    assert run("evidence", tmp_path / "bad.skops").exit_code == 2
    assert run("evidence", tmp_path / "none.skops").exit_code == 2
    refused = run("evidence", tmp_path / "bad.skops", "-o", tmp_path / "e.pdf")
    assert "must end in .html" in refused.stderr
    assert not (tmp_path / "e.pdf").exists()
