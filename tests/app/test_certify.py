"""floral certify from files: numbers, page, and what is refused."""

import os

import numpy as np
import pandas as pd
import pytest
from commands import floral, refused

from floral_learn import CertifiedKernelClassifier
from floral_learn.app.tables import read_table
from floral_learn.base import TableEncoder


@pytest.fixture
def mail(tmp_path):
    rng = np.random.default_rng(0)
    kind = rng.choice(["ham", "<i>spam</i>"], size=120)
    frame = pd.DataFrame(
        {
            "id": [f"<m{i}>" for i in range(120)],
            "size": rng.normal(size=120).round(3) + 2 * (kind != "ham"),
            "colour": np.where(rng.random(120) < 0.7, np.where(kind == "ham", "red", "blue"), "red"),
            "kind": kind,
            "sure": np.where(np.arange(120) < 10, "yes", "no"),
            "weight": np.where(np.arange(120) % 5, 1.0, 2.0),
        }
    )
    frame.to_csv(tmp_path / "mail.csv", index=False)
    return tmp_path


def test_each_row_is_certified_as_if_it_had_not_been_there(mail):
    done = floral(
        "certify",
        mail / "mail.csv",
        "-l",
        "kind",
        "--id",
        "id",
        "--drop",
        "sure",
        "--drop",
        "weight",
        "-o",
        mail / "out",
    )
    found = pd.read_csv(mail / "out" / "certificates.csv")
    table = read_table(mail / "mail.csv", label="kind", ids="id", drop=["sure", "weight"])
    X = TableEncoder().fit_transform(table.features)
    for row in (0, 17, 63):  # a fit without the row says the same, with the ridge of all rows
        others = np.arange(120) != row
        whole = CertifiedKernelClassifier().fit(X, table.labels)
        clf = CertifiedKernelClassifier(gamma=whole.gamma_, ridge=whole.ridge_).fit(X[others], table.labels[others])
        alone = clf.certificate(X[[row]])
        assert found["prediction"][row] == alone.prediction[0]
        assert found["survives"][row] == alone.flips[0]
        first = np.flatnonzero(others)[alone.rows[0][0]]
        assert found["turned_by"][row].startswith(f"<m{first}> -> ")
    share = (found["survives"] >= 1).mean()
    assert f"{share:.0%}" in (mail / "out" / "page.html").read_text()
    assert "of the predictions on rows like yours survive" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 200


def test_the_page_is_whole_escaped_and_names_its_conditions(mail):
    floral("certify", mail / "mail.csv", "-l", "kind", "--id", "id", "--flip", "<i>spam</i>=ham", "-o", mail / "out")
    page = (mail / "out" / "page.html").read_text()
    assert "<i>spam</i>" not in page
    assert "&lt;i&gt;spam&lt;/i&gt;" in page
    assert "<script" not in page
    for word in ("gamma", "ridge", "fit_intercept", "only these labels can be wrong"):
        assert word in page
    found = pd.read_csv(mail / "out" / "certificates.csv")
    named = found["turned_by"].dropna()
    assert named.str.contains("-> ham").all()
    assert not named.str.contains("-> <i>").any()


def test_trusted_labels_are_never_named_and_weights_are_read(mail):
    options = ("--trusted", "sure", "--weight", "weight", "--id", "id")
    floral("certify", mail / "mail.csv", "-l", "kind", *options, "-o", mail / "out")
    found = pd.read_csv(mail / "out" / "certificates.csv")
    named = "; ".join(found["turned_by"].dropna())
    assert not any(f"<m{i}> ->" in named for i in range(10))
    assert "Of the 120 labels 10 are trusted" in (mail / "out" / "page.html").read_text()


def test_a_draw_of_rows_is_repeated_by_its_seed(mail):
    for out in ("a", "b"):
        floral("certify", mail / "mail.csv", "-l", "kind", "--rows", 30, "-s", 4, "-o", mail / out)
    found = pd.read_csv(mail / "a" / "certificates.csv")
    assert len(found) == 30
    assert (mail / "a" / "certificates.csv").read_bytes() == (mail / "b" / "certificates.csv").read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-l", "nothing"), "nothing"),
        (("-l", "kind", "--flip", "ham"), "--flip 'ham' must be LABEL=LABEL"),
        (("-l", "kind", "--flip", "ham=egg"), "--flip 'ham=egg' must be LABEL=LABEL"),
        (("-l", "kind", "--flip", "ham=ham"), "changes nothing"),
        (("-l", "id"), "different values"),
        (("-l", "kind", "--trusted", "size"), "size"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(mail, options, words):
    assert words in refused("certify", mail / "mail.csv", *options, "-o", mail / "out")
    assert not (mail / "out").exists()


def test_a_bad_folder_or_file_is_one_line_and_nothing_is_written(mail):
    (mail / "bad.csv").write_bytes(b"\x00\xff\xfe,kind\n1,")
    for source, out in ((mail / "mail.csv", mail / "mail.csv"), (mail / "mail.csv", mail / "no" / "out"),
                        (mail / "gone.csv", mail / "out"), (mail / "bad.csv", mail / "out")):  # fmt: skip
        before = sorted(os.listdir(mail))
        refused("certify", source, "-l", "kind", "-o", out)
        assert sorted(os.listdir(mail)) == before
