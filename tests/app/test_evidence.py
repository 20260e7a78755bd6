"""`floral evidence`: what the files know, what nobody knows, and nothing from them as markup."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC
from typer.testing import CliRunner

from floral_learn import LabelReview, save
from floral_learn.app import make_app
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
    assert 0 < known["drawn at random"] <= 12
    assert known["drawn at random"] + known["chosen by the model"] >= 12  # a row may be both
    assert ("in the random order too" in done.output) == (known["drawn at random"] + known["chosen by the model"] > 12)
    assert "12 checked" in done.output
    assert "ann (12)" in done.output
    assert f"{100 * review.guarantee().low:.1f} % to" in done.output
    page = (tmp_path / "e.html").read_text()
    assert "<script" not in page
    assert "<b>" not in page


def test_evidence_in_a_model_file_becomes_a_page_and_a_card_without_markup(tmp_path, review):
    model = review.train(SVC())
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


@pytest.fixture
def trained(tmp_path):
    rows = [f"{i},{i % 7},{'ab'[i > 30]}\n" for i in range(60)]
    (tmp_path / "t.csv").write_text("x,z,y\n" + "".join(rows))
    assert run("train", tmp_path / "t.csv", "-l", "y", "-o", tmp_path / "m.skops").exit_code == 0
    return tmp_path


def test_a_certificate_comes_in_with_its_data(trained):
    assert run("certify", trained / "t.csv", "-l", "y", "-o", trained / "cert").exit_code == 0
    done = run("evidence", trained / "m.skops", "--with", trained / "cert", "-o", trained / "card.md")
    assert done.exit_code == 0, done.output
    survives = pd.read_csv(trained / "cert" / "certificates.csv")["survives"]
    assert f"survive 1 wrong of 60: {100 * (survives >= 1).mean():.0f} % of 60 predictions" in done.output
    assert "t.csv, the model's own data" in done.output
    assert "Certificate" in (trained / "card.md").read_text()
    (trained / "t.csv").write_text((trained / "t.csv").read_text() + "60,1,b\n")
    assert run("certify", trained / "t.csv", "-l", "y", "-o", trained / "other").exit_code == 0
    assert "t.csv, not the model's data" in run("evidence", trained / "m.skops", "--with", trained / "other").output


def test_attack_curves_come_in_with_their_data(trained):
    pytest.importorskip("floral_bench")
    few = ("--methods", "svm-libsvm", "--reps", "1", "--levels", "0", "--levels", "10", "--attack", "random")
    bench = run("bench", "--data", trained / "t.csv", "--label", "y", "--out", trained / "runs", *few)
    assert bench.exit_code == 0, bench.output
    done = run("evidence", trained / "m.skops", "--with", trained / "runs" / "t")
    assert done.exit_code == 0, done.output
    assert "the model's own data" in done.output
    assert re.search(r"random: 0 %: [01]\.\d{3}, 10 %: [01]\.\d{3}", done.output)
    assert "floral bench --data tells" not in done.output


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "neither certificate.json of floral certify nor a run"),
        ({"certificate.json": "["}, "is not a JSON object"),
        ({"certificate.json": "[" * 10**5}, "is not a JSON object"),
        ({"certificate.json": '{"data": 3}'}, "cannot be read"),
        ({"run.json": "{}", "rows.csv": "a,b\n1,2"}, "cannot be read"),
    ],
)
def test_a_folder_that_is_neither_is_one_line(trained, files, said):
    for name, text in files.items():
        (trained / "made" / name).parent.mkdir(parents=True, exist_ok=True)
        (trained / "made" / name).write_text(text)
    done = run("evidence", trained / "m.skops", "--with", trained / "made", "-o", trained / "e.html")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr
    assert not (trained / "e.html").exists()


@pytest.mark.parametrize(
    "stored", [{"review": {"rows": 3}}, {"data": "x"}, {"attacks": 3}, {"certificate": {"data": {}}}]
)
def test_evidence_that_somebody_rewrote_is_one_line(tmp_path, stored):
    model = SVC().fit([[0.0], [1.0]], [0, 1])
    model.evidence_ = stored
    save(model, tmp_path / "m.skops")
    done = run("evidence", tmp_path / "m.skops")
    assert done.exit_code == 2
    assert "what is stored in it about its labels cannot be read" in done.stderr
