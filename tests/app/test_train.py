"""``floral train``: files in, a model file out, or one line that says why not."""

import re

import numpy as np
import pytest
from commands import floral, refused
from sklearn.datasets import make_moons

from floral_learn import load


@pytest.fixture
def table(tmp_path):
    """Numbers (some missing), a category, a text column, an identifier; the label follows the text and the numbers."""
    X, y = make_moons(160, noise=0.15, random_state=0)
    rng = np.random.default_rng(0)
    words = {
        0: ["awful dull boring film", "dull and awful plot"],
        1: ["lovely bright film", "bright lovely funny plot"],
    }
    lines = ["id,x1,x2,colour,review,constant,verdict"]
    for i, (row, label) in enumerate(zip(X, y, strict=True)):
        x2 = "" if i % 20 == 0 else f"{row[1]:.4f}"
        review = f"{words[label][i % 2]} number{i} seen{i % 5}"
        colour = rng.choice(["red", "green", ""])
        lines.append(f"u{i},{row[0]:.4f},{x2},{colour},{review},7,{'good' if label else 'bad'}")
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_training_says_what_it_encoded_and_the_model_works(tmp_path, table):
    done = floral("train", table, "--label", "verdict", "--out", tmp_path / "model.skops", "--text-encoder", "tfidf")
    for text in (
        "160 rows; 2 classes: bad (80), good (80)",
        "2 number columns standardised (8 missing or infinite values became the median): x1, x2",
        "1 category column as 3 indicators: colour",
        "text column review: tf-idf of",
        "ignored: id (160 different values), constant (constant)",
        "trained floral on 160 rows, budget 0.05",
        "on the labels as given, majority class 0.500 (32 rows, a fit on 128)",
    ):
        assert text in done.output
    assert float(re.search(r"held-out accuracy ([0-9.]+)", done.output)[1]) > 0.9
    assert "check on held-out rows ..." in done.output
    floral("predict", tmp_path / "model.skops", table, "--id", "id", "--out", tmp_path / "p.csv")
    rows = [line.split(",") for line in (tmp_path / "p.csv").read_text().splitlines()]
    assert rows[0] == ["row", "id", "prediction", "score"]
    assert rows[8][:2] == ["7", "u7"]
    found = [row[2] for row in rows[1:]]
    truth = [line.split(",")[-1] for line in table.read_text().splitlines()[1:]]
    assert np.mean(np.array(found) == np.array(truth)) > 0.95


def test_options_reach_the_classifier(tmp_path, table):
    options = (
        "--method",
        "floral",
        "--budget",
        "0.1",
        "--C",
        "3",
        "--gamma",
        "0.5",
        "--seed",
        "4",
        "--drop",
        "review",
        "--no-held-out",
    )
    done = floral("train", table, "--label", "verdict", "--out", tmp_path / "m.skops", *options)
    classifier = load(tmp_path / "m.skops").named_steps["classifier"]
    assert (classifier.budget, classifier.C, classifier.gamma, classifier.random_state) == (0.1, 3.0, 0.5, 4)
    assert "review" not in done.output


@pytest.mark.parametrize(("method", "encoder"), [("svm", "auto"), ("ls-svm", "tfidf"), ("rsrnn", "tfidf")])
def test_other_defenses_can_be_trained(tmp_path, table, method, encoder):
    options = ("--method", method, "--text-encoder", encoder)
    floral("train", table, "--label", "verdict", "--out", tmp_path / "m.skops", *options)
    floral("predict", tmp_path / "m.skops", table, "--out", tmp_path / "p.csv")


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (None, (), "cannot read"),
        ("a,y\n1,x\n2,x\n3,x\n", (), "has one value only"),
        ("a,y\n" + "".join(f"{i},{i}.5\n" for i in range(60)), (), "60 different numbers"),
        ("a,y\n1,x\n1,z\n1,x\n1,z\n", (), "no usable feature column"),
        (
            "a,y\ninf,x\ninf,z\ninf,x\ninf,z\n",
            (),
            "no usable feature column beside the label; ignored: 'a' (all missing)",
        ),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n", ("--budget", "many"), "--budget 'many' must be a share from 0 to 1"),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n", ("--method", "hope"), "--method 'hope' is unknown"),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n", ("--gamma", "wide"), "--gamma 'wide' must be a number"),
        (
            "a,y\n1,x\n2,z\n3,x\n4,z\n",
            ("--budget", "2.5"),
            "--budget '2.5' must be a share from 0 to 1 (0.1), a percentage (10%) or a count (25)",
        ),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n", ("--method", "svm", "--budget", "0.1"), "--budget is for floral"),
    ],
)
def test_a_bad_file_or_option_is_one_line_exit_2_and_no_model(tmp_path, content, options, message):
    path = tmp_path / "data.csv"
    if content is not None:
        path.write_text(content)
    assert message in refused("train", path, "--label", "y", "--out", tmp_path / "m.skops", *options)
    assert not (tmp_path / "m.skops").exists()


def test_the_data_file_is_never_overwritten(tmp_path, table):
    before = table.read_bytes()
    floral("train", table, "--label", "verdict", "--out", table, code=2)
    floral("train", table, "--label", "verdict", "--out", tmp_path / "no" / "m.skops", code=2)
    assert table.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "method", "message"),
    [("m.skops", "transformer", "reads texts, not columns"), ("m.pkl", "svm", "must end in .skops")],
)
def test_a_method_for_texts_and_a_pickle_are_refused(table, tmp_path, name, method, message):
    assert message in refused("train", table, "-l", "verdict", "-m", method, "-o", tmp_path / name)
    assert not (tmp_path / name).exists()


def test_trusted_rows_weights_and_decisions_reach_the_fit(tmp_path, table):
    lines = table.read_text().splitlines()
    flags = ["gold,heavy", *(f"{'yes' if i < 40 else 'no'},{1 + i % 3}" for i in range(160))]
    path = tmp_path / "more.csv"
    path.write_text("".join(f"{line},{extra}\n" for line, extra in zip(lines, flags, strict=True)))
    decisions = tmp_path / "decisions.csv"
    given = lines[51].rsplit(",", 1)[1]
    other = {"good": "bad", "bad": "good"}[given]
    decisions.write_text(
        f"row,given,decision,label\n50,{given},wrong,{other}\n60,{lines[61].rsplit(',', 1)[1]},right,\n"
    )
    out = tmp_path / "model.skops"
    columns = ("--drop", "review", "--label", "verdict", "--out", out, "--no-held-out", "--budget", "0.5")
    done = floral("train", path, *columns, "--trusted", "gold", "--weight", "heavy", "--decisions", decisions)
    assert "2 decisions: 1 labels replaced, all of them trusted" in done.output
    model = load(out)
    classifier = model.named_steps["classifier"]
    assert classifier.flip_rate_[:40].max() == 0  # trusted labels are never flipped by the attacker
    assert classifier.flip_rate_[[50, 60]].max() == 0
    assert classifier.flip_rate_.max() > 0
    floral("train", path, *columns, "--drop", "gold", "--drop", "heavy")
    assert load(out).named_steps["classifier"].flip_rate_[:40].max() > 0
    assert "--trusted: --method curie has no use for it" in refused(
        "train", path, *columns[:-2], "--trusted", "gold", "--method", "curie"
    )
    floral("train", path, *columns, "--trusted", "x1", "--drop", "gold", "--drop", "heavy", code=2)
