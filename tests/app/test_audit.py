"""``floral audit`` from a file to a report and back: what is written, what is refused, and what stays as it was."""

import csv
import json
import re

import numpy as np
import pandas as pd
import pytest
from commands import floral, refused
from typer.testing import CliRunner

from floral_learn.app import make_app

WORDS = {"pos": ["great", "lovely", "superb", "warm"], "neg": ["awful", "boring", "weak", "cold"]}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Numbers, a category, a text, an annotator and an id; 24 wrong labels, most by one annotator."""
    rng = np.random.default_rng(0)
    n = 200
    y = np.repeat([0, 1], n // 2)
    wrong = np.zeros(n, dtype=bool)
    wrong[rng.choice(np.arange(1, n), 24, replace=False)] = True
    label = np.array(["neg", "pos"])
    frame = pd.DataFrame(
        {
            "key": [f"k{i:03d}" for i in range(n)],
            "width": np.round(rng.normal(size=n) + 5 * y, 3),
            "height": np.round(rng.normal(size=n) - 5 * y, 3),
            "site": rng.choice(["north", "south"], n),
            "note": [", ".join(rng.choice(WORDS[label[c]], 3)) for c in y],
            "who": np.where(wrong & (np.arange(n) % 4 > 0), "zed", rng.choice(["ann", "bob"], n)),
            "label": label[np.where(wrong, 1 - y, y)],
        }
    )
    frame.loc[:3, "width"] = np.nan
    path = tmp_path_factory.mktemp("data") / "data.csv"
    frame.to_csv(path, index=False)
    return path, wrong, frame


@pytest.fixture(scope="module")
def report(table, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "report"
    options = ("--label", "label", "--text", "note", "--text-encoder", "tfidf", "--id", "key", "--group", "who")
    done = floral("audit", table[0], *options, "--write-cleaned", "--out", out)
    return out, done.output


def test_the_report_has_a_page_a_list_a_cleaned_copy_and_the_sources(report, table):
    out, said = report
    path, wrong, frame = table
    assert sorted(p.name for p in out.iterdir()) == sorted(["cleaned.csv", "groups.csv", "issues.csv", "page.html"])
    issues = pd.read_csv(out / "issues.csv")
    assert list(issues.columns) == ["row", "id", "given", "suggested", "score", "flagged", "contradicted", "reasons"]
    assert wrong[issues["row"][:20]].mean() > 0.9
    assert (issues["id"] == [f"k{i:03d}" for i in issues["row"]]).all()
    cleaned = pd.read_csv(out / "cleaned.csv")
    truth = np.repeat(["neg", "pos"], 100)
    assert (cleaned["label"] == truth).mean() > (frame["label"] == truth).mean()
    pd.testing.assert_frame_equal(cleaned.drop(columns="label"), pd.read_csv(path).drop(columns="label"))
    assert pd.read_csv(out / "groups.csv")["group"][0] == "zed"
    assert "2 number columns standardised (4 missing or infinite values became the median)" in said
    assert "text column note: tf-idf" in said
    assert "site" in said
    page = (out / "page.html").read_text(encoding="utf-8")
    assert "text column note: tf-idf" in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert data["ids"][7] == "k007"
    assert data["columns"] == ["width", "height", "site", "note", "who"]


def decisions(path, rows):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["row", "id", "given", "decision", "label"])
        writer.writerows(rows)
    return path


def test_apply_changes_exactly_the_labels_marked_wrong(table, tmp_path):
    path, _, frame = table
    given = frame["label"].tolist()
    other = {"pos": "neg", "neg": "pos"}
    rows = [[3, "k003", given[3], "wrong", other[given[3]]], [9, "k009", given[9], "right", given[9]]]
    out = tmp_path / "clean.csv"
    done = floral("audit", "apply", path, decisions(tmp_path / "d.csv", rows), "--label", "label", "--out", out)
    assert "replaced 1 labels, left 1" in done.output
    before, after = path.read_text().splitlines(), out.read_text().splitlines()
    assert [i for i in range(len(before)) if before[i] != after[i]] == [4]  # the header is line 0
    assert after[4].endswith(other[given[3]])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([999, "", "pos", "wrong", "neg"], "row '999' is not in the data, whose rows are 0 to 199"),
        ([0, "", "other", "wrong", "pos"], "the data changed since"),
        ([0, "", None, "perhaps", "pos"], "must be 'wrong', 'right' or 'unsure'"),
        ([0, "", None, "wrong", "maybe"], "'maybe' is not a label of the data"),
    ],
)
def test_apply_refuses_decisions_that_do_not_fit(table, tmp_path, row, message):
    path, _, frame = table
    row[2] = row[2] or frame["label"][0]
    out = tmp_path / "clean.csv"
    assert message in refused(
        "audit", "apply", path, decisions(tmp_path / "d.csv", [row]), "--label", "label", "--out", out
    )
    assert not out.exists()


def test_apply_never_writes_over_the_data(table, tmp_path):
    path = table[0]
    chosen = decisions(tmp_path / "d.csv", [[0, "", table[2]["label"][0], "right", "pos"]])
    assert "never overwritten" in refused("audit", "apply", path, chosen, "--label", "label", "--out", path)
    assert "must end in .csv" in refused(
        "audit", "apply", path, chosen, "--label", "label", "--out", tmp_path / "x.parquet"
    )
    to = ("--label", "label", "--out", tmp_path / "x.csv")
    assert "is not a list of decisions" in refused("audit", "apply", path, path, *to)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--label": "lable"}, "has no column 'lable'; its columns are: 'key', 'width'"),
        ({"--text": "label"}, "cannot be both label and text"),
        ({"--text": "nothing"}, "has no column 'nothing'"),
        ({"--label": "key"}, "200 different labels in 200 rows"),
    ],
)
def test_wrong_options_are_one_line_and_write_nothing(table, tmp_path, change, message):
    options = {"--label": "label", "--out": tmp_path / "report"} | change
    assert message in refused("audit", table[0], *(part for pair in options.items() for part in pair))
    assert not (tmp_path / "report").exists()


def test_wrong_files_and_folders_are_refused(table, tmp_path):
    assert "cannot read" in refused("audit", tmp_path / "none.csv", "--label", "y", "--out", tmp_path / "r")
    assert "does not exist" in refused("audit", table[0], "--label", "label", "--out", tmp_path / "no" / "where")
    taken = tmp_path / "taken"
    taken.write_text("")
    assert "is a file; name a folder" in refused("audit", table[0], "--label", "label", "--out", taken)
    holes = tmp_path / "holes.csv"
    holes.write_text("a,y\n" + "1,0\n2,1\n" * 20 + "3,\n")
    assert "has 1 missing labels (first: row 40)" in refused("audit", holes, "--label", "y", "--out", tmp_path / "r")


def test_help_shows_the_options():
    for args in (["--help"], []):
        said = floral("audit", *args).output
        assert "--decisions" in said
        assert "--trusted" in said
        assert "audit apply" in said


def test_columns_that_do_not_predict_the_label_are_a_stop_sign_and_leave_no_cleaned_copy(table, tmp_path):
    rng = np.random.default_rng(0)
    noise = tmp_path / "noise.csv"
    frame = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd")).assign(y=rng.choice(["p", "q"], 200))
    frame.to_csv(noise, index=False)
    out = tmp_path / "report"
    out.mkdir()
    (out / "cleaned.csv").write_text("of an earlier audit")
    done = floral("audit", noise, "--label", "y", "--write-cleaned", "--out", out)
    assert "no cleaned copy is written: the labels cannot be judged" in done.output
    assert "Stop: the columns used here do not predict the label" in done.output
    assert sorted(p.name for p in out.iterdir()) == ["issues.csv", "page.html"]
    assert not pd.read_csv(out / "issues.csv")["flagged"].any()


def test_a_cleaned_copy_is_written_on_request_only(table, tmp_path):
    done = floral("audit", table[0], "--label", "label", "--drop", "key", "--drop", "note", "--out", tmp_path / "r")
    assert "no cleaned copy" not in done.output
    assert not list((tmp_path / "r").glob("cleaned*"))


def test_where_classes_overlap_no_cleaned_copy_is_written(tmp_path):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 600)
    X = rng.normal(size=(600, 4)) + 1.2 * np.eye(3, 4)[y]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=np.array(["low", "mid", "top"])[y])
    frame.to_csv(tmp_path / "overlap.csv", index=False)
    done = floral("audit", tmp_path / "overlap.csv", "--label", "y", "--write-cleaned", "--out", tmp_path / "r")
    assert len([line for line in done.output.splitlines() if "no cleaned copy is written" in line]) == 1
    assert not list((tmp_path / "r").glob("cleaned*"))


def test_decisions_are_taken_into_account_and_kept_on_the_next_page(table, report, tmp_path):
    path, wrong, frame = table
    truth = np.repeat(["neg", "pos"], 100)
    issues = pd.read_csv(report[0] / "issues.csv")
    rows = issues["row"][issues["flagged"]].tolist()
    lines = [[r, "", frame["label"][r], "wrong" if wrong[r] else "right", truth[r]] for r in rows]
    chosen = decisions(tmp_path / "d.csv", lines)
    args = ("--label", "label", "--text", "note", "--id", "key", "--group", "who", "--out", tmp_path / "again")
    done = floral("audit", path, *args, "--decisions", chosen)
    assert f"{len(rows)} decisions taken into account" in done.output
    after = pd.read_csv(tmp_path / "again" / "issues.csv")
    assert not after.set_index("row")["flagged"][rows].any()
    data = json.loads(
        re.search(r'id="data">(.*?)</script>', (tmp_path / "again" / "page.html").read_text("utf-8"), re.S)[1]
    )
    assert [(data["rows"][d[0]], d[1], d[5]) for d in data["decisions"]] == sorted(
        (line[0], line[3], line[2]) for line in lines
    )
    decisions(tmp_path / "d.csv", [[0, "", "other", "right", ""]])
    refused = floral("audit", path, *args, "--decisions", tmp_path / "d.csv", code=2)
    assert refused.output.count("\n") == 2  # the number of rows, and the reason


def test_rows_of_skipped_labels_keep_their_numbers(table, tmp_path):
    lines = table[0].read_text().splitlines()
    lines[3] = lines[3].rsplit(",", 1)[0] + ","  # row 2 loses its label
    path = tmp_path / "holes.csv"
    path.write_text("\n".join(lines) + "\n")
    floral("audit", path, "--label", "label", "--skip-blank", "--drop", "who", "--out", tmp_path / "r")
    assert sorted(pd.read_csv(tmp_path / "r" / "issues.csv")["row"]) == [0, 1, *range(3, 200)]
    given = table[2]["label"][5]
    other = {"pos": "neg", "neg": "pos"}[given]
    chosen = decisions(tmp_path / "d.csv", [[5, "", given, "wrong", other]])
    out = tmp_path / "clean.csv"
    floral("audit", "apply", path, chosen, "--label", "label", "--skip-blank", "--out", out)
    assert [i for i, (a, b) in enumerate(zip(lines, out.read_text().splitlines())) if a != b] == [6]


@pytest.mark.parametrize("arguments", [["audit", "x.csv"], ["audit", "--help"], ["audit"], ["audit", "run", "x.csv"]])
def test_usage_calls_the_command_as_people_type_it(arguments):
    done = CliRunner().invoke(make_app(), arguments)
    assert "audit run" not in done.output
    assert "audit [OPTIONS]" in done.output
