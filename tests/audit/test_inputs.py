"""What an audit can be given: tables, columns by name, other judges, decisions; and what it reports first."""

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from floral_learn import find_label_issues
from floral_learn.audit import read_decisions
from floral_learn.base import TableEncoder


@pytest.fixture(scope="module")
def customers():
    """300 rows, an index of names, mixed columns, 24 wrong labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    wrong = np.isin(np.arange(300), rng.choice(300, 24, replace=False))
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=300) + 4 * y,
            "site": np.where(rng.random(300) < 0.9, np.where(y, "north", "south"), None),
            "who": np.where(wrong, "zed", rng.choice(["ann", "bob"], 300)),
            "gold": np.isin(np.arange(300), np.flatnonzero(wrong)[:4]),
            "label": np.array(["leaves", "stays"])[np.where(wrong, 1 - y, y)],
        },
        index=[f"c{i}" for i in range(300)],
    )
    frame.loc[frame.index[:9], "size"] = np.nan
    return frame, wrong, np.array(["leaves", "stays"])[y]


def test_a_frame_is_audited_by_the_names_of_its_columns_and_keeps_its_index(customers):
    frame, wrong, _ = customers
    found = find_label_issues(frame, label="label", groups="who", trusted="gold", random_state=0)
    issues = found.to_frame()
    assert set(issues.index) == set(frame.index)
    assert (issues["given"] == frame.loc[issues.index, "label"]).all()
    assert (issues.index == [f"c{row}" for row in issues["row"]]).all()
    assert wrong[found.flagged.nonzero()[0]].mean() > 0.8
    assert found.group_ranking()["group"][0] == "zed"
    assert not np.isin(np.flatnonzero(frame["gold"]), found.flagged.nonzero()[0]).any()
    assert "who" not in " ".join(found.notes)  # a role is not a feature
    same = find_label_issues(frame.drop(columns=["label", "gold", "who"]), frame["label"], groups=frame["who"],
                 trusted=frame["gold"].to_numpy(), random_state=0)  # fmt: skip
    np.testing.assert_array_equal(same.score, found.score)


def test_ids_name_rows(customers):
    frame = customers[0].reset_index(names="name")
    issues = find_label_issues(frame, label="label", ids="name", drop=["who", "gold"], random_state=0).to_frame()
    assert (issues["id"] == [f"c{row}" for row in issues["row"]]).all()


def test_texts_are_read(customers):
    rng = np.random.default_rng(1)
    words = {"stays": ["great", "lovely", "superb", "warm"], "leaves": ["awful", "boring", "weak", "cold"]}
    truth, wrong = customers[2], customers[1]
    texts = [" ".join(rng.choice(words[t], 3)) + f" item {i}" for i, t in enumerate(truth)]
    frame = pd.DataFrame({"review": texts, "label": customers[0]["label"].to_numpy()})
    found = find_label_issues(frame, label="label", text="review", text_encoder="tfidf", random_state=0)
    assert wrong[found.flagged.nonzero()[0]].mean() > 0.9


@pytest.mark.parametrize(
    "judge",
    [
        RandomForestClassifier(50, min_samples_leaf=3, random_state=0),
        make_pipeline(TableEncoder(), StandardScaler(), LinearSVC()),
    ],
    ids=["forest", "pipeline without probabilities"],
)
def test_any_model_can_be_the_judge(customers, judge):
    frame, wrong, _ = customers
    rows = frame[["size", "site"]]
    rows = rows if hasattr(judge, "steps") else TableEncoder().fit_transform(rows)
    found = find_label_issues(rows, frame["label"].to_numpy(), model=judge, random_state=0)
    assert wrong[found.flagged.nonzero()[0]].mean() > 0.8
    assert len(found.flagged.nonzero()[0]) > 12


def test_probabilities_of_ones_own_can_be_the_judge(customers):
    frame, wrong, truth = customers
    X = TableEncoder().fit_transform(frame[["size", "site"]])
    p = LogisticRegression().fit(X, truth).predict_proba(X)
    found = find_label_issues(X, frame["label"].to_numpy(), pred_probs=p, random_state=0)
    assert wrong[found.flagged.nonzero()[0]].mean() > 0.9
    assert len(found.flagged.nonzero()[0]) > 15
    refuses("not both", find_label_issues, X, frame["label"].to_numpy(), pred_probs=p, model=LogisticRegression())


def test_columns_are_named_in_frames_only(customers):
    frame = customers[0]
    with pytest.raises(ValueError, match="groups='who' names a column; X must be a DataFrame"):
        find_label_issues(np.zeros((300, 2)), frame["label"], groups="who")
    refuses("y is missing", find_label_issues, np.zeros((300, 2)))
    refuses("either y=, the labels, or label=", find_label_issues, frame)
    refuses("nothing", find_label_issues, frame, label="nothing")


def test_one_row_classes_and_repeated_names_come_first_and_do_not_spoil_the_audit(customers):
    frame, wrong, _ = customers
    plain = find_label_issues(frame, label="label", drop=["who", "gold"], random_state=0)
    typos = frame.copy()
    stay = np.flatnonzero((frame["label"] == "stays").to_numpy() & ~wrong)
    typos.iloc[stay[0], typos.columns.get_loc("label")] = "Stays"
    typos.iloc[stay[1], typos.columns.get_loc("label")] = "rare"
    found = find_label_issues(typos, label="label", drop=["who", "gold"], random_state=0)
    assert found.summary()[:2] == found.class_notes
    assert "'Stays' (1 row) and" in found.class_notes[0]
    assert "class 'rare' (1 row) is too small to judge" in found.class_notes[1]
    assert abs(len(found.flagged.nonzero()[0]) - len(plain.flagged.nonzero()[0])) <= 4
    assert not np.isin(stay[:2], found.flagged.nonzero()[0]).any()
    assert "rare" not in found.classes[found.suggested]
    assert "Stays" not in found.classes[found.suggested]


def test_nearly_equal_rows_with_different_labels_are_listed(moons):
    X, y, _ = moons
    X = np.vstack([X, X[5] + 1e-7])
    found = find_label_issues(X, np.r_[y, 1 - y[5]], random_state=0)
    assert found.near_duplicate_pairs[0].tolist() == [5, 400]
    assert found.near_duplicates().iloc[0].tolist() == [5, y[5], 400, 1 - y[5]]
    assert "twin" in found.to_frame().set_index("row")["reasons"][400]
    assert len(found.near_duplicate_pairs) < 20  # near is not equal
    same = find_label_issues(X, np.r_[y, y[5]], random_state=0).near_duplicate_pairs
    assert 400 not in same


def test_decisions_close_the_loop(customers):
    frame, wrong, truth = customers
    roles = {"label": "label", "groups": "who", "drop": ["gold"], "random_state": 0}
    first = find_label_issues(frame, **roles)
    rows = first.flagged.nonzero()[0][:10]
    lines = [
        {
            "row": int(row),
            "given": frame["label"].iloc[row],
            "decision": "wrong" if wrong[row] else "right",
            "label": truth[row],
            "reviewer": "eve",
            "note": "",
        }
        for row in rows
    ]
    left = int(first.flagged.nonzero()[0][10])
    lines.append({"row": left, "given": frame["label"].iloc[left], "label": "", "decision": "unsure"})
    again = find_label_issues(frame, decisions=pd.DataFrame(lines), **roles)
    assert not np.isin(rows, again.flagged.nonzero()[0]).any()
    assert left in again.flagged.nonzero()[0]
    assert (again.classes[again.given][rows] == truth[rows]).all()
    assert again.decisions[0].reviewer == "eve"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"row": 9, "given": "a", "decision": "right", "label": ""}, "row '9' is not in the data"),
        ({"row": 0, "given": "b", "decision": "right", "label": ""}, "the data changed since"),
        ({"row": 0, "given": "a", "decision": "perhaps", "label": ""}, "must be 'wrong', 'right' or 'unsure'"),
        ({"row": 0, "given": "a", "decision": "wrong", "label": "c"}, "'c' is not a label of the data: a, b"),
        ({"row": 0, "decision": "wrong"}, "needs the columns row, given, decision and label"),
    ],
)
def test_decisions_that_do_not_fit_are_refused(line, message):
    refuses(message, read_decisions, [line], np.array(["a", "b"]))


def test_decisions_may_name_rows_by_their_number_in_the_file_and_the_last_word_counts(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("row,given,decision,label,reviewer\n7,a,right,a,ann\n7,a,wrong,b,bob\n")
    found = read_decisions(path, np.array(["a", "b"]), rows=np.array([7, 9]))
    assert [(d.position, d.kind, d.label, d.reviewer) for d in found] == [(0, "wrong", "b", "bob")]
    # The same file after `apply`: the label is what was decided, so the decision still stands.
    path.write_text("row,given,decision,label\n7,a,wrong,b\n")
    assert read_decisions(path, np.array(["b", "a"]), rows=np.array([7, 9]))[0].label == "b"
