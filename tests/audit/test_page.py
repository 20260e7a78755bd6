"""The page as text: self-contained, with the right numbers, and with data that cannot break out of it."""

import json
import re

import numpy as np
import pandas as pd

from floral_learn import find_label_issues
from floral_learn.app.audit_page import render

HOSTILE = '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1"><!-- & \u2028'


def text_of(html):
    return re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)[1]


def data_of(html):
    return json.loads(text_of(html))


def test_nothing_is_loaded_from_anywhere(found):
    html = render(found)
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", html)
    assert "@import" not in html
    assert "default-src 'none'" in html


def test_the_page_holds_every_row_and_the_summary_counts_them(found):
    html = render(found, title="moons & stars", notes=["2 number columns <standardised>"])
    data = data_of(html)
    assert len(data["given"]) == len(data["x"]) == 400
    assert data["classes"] == ["no", "yes"]
    np.testing.assert_allclose(data["score"], found.score, atol=1e-6)
    assert "moons &amp; stars" in html
    assert "2 number columns &lt;standardised&gt;" in html
    assert f"<strong>{len(found.flagged.nonzero()[0])} of 400 labels" in html
    assert sum(map(sum, data["confusion"])) == len(found.flagged.nonzero()[0])
    assert data["groups"][0]["group"] == "careless"


def test_hostile_labels_ids_titles_and_cells_stay_data(blobs):
    X, given, _, _ = blobs
    labels = np.where(given == "red", HOSTILE, given)
    result = find_label_issues(X, labels, groups=np.full(300, HOSTILE), random_state=0)
    frame = pd.DataFrame({HOSTILE: [HOSTILE] * 300})
    html = render(result, title=HOSTILE, frame=frame, ids=[HOSTILE] * 300, notes=[HOSTILE])
    assert html.count("<script") == 2  # the data and our own code
    assert html.count("</script>") == 2
    assert "<img" not in html
    assert not set("<&\u2028") & set(text_of(html))
    data = data_of(html)
    assert HOSTILE in data["classes"]
    assert data["cells"][0][0] == HOSTILE


def test_long_texts_are_cut_where_there_are_many_rows(found, monkeypatch):
    frame = pd.DataFrame({"text": ["word " * 1000] * 400, "number": np.linspace(0, 1, 400)})
    data = data_of(render(found, frame=frame))
    assert data["cells"][0][0] == "word " * 1000
    assert data["cells"][1][-1] == "1"
    monkeypatch.setattr("floral_learn.app.audit_page._CHARACTERS", 60_000)
    shorter = data_of(render(found, frame=frame))["cells"]
    assert sum(map(len, shorter[0] + shorter[1])) <= 60_000
    assert 60 < len(shorter[0][0]) < 150
    assert shorter[0][0].endswith("…")
    assert shorter[1][-1] == "1"


def test_a_stop_sign_stands_first(moons):
    rng = np.random.default_rng(0)
    html = render(find_label_issues(rng.normal(size=(300, 4)), rng.integers(0, 2, 300), random_state=0))
    assert "<strong>Stop: the columns used here do not predict the label" in html


def test_only_so_many_rows_go_into_the_page_with_neighbours_and_decided_rows_among_them(moons):
    X, y, _ = moons
    last = find_label_issues(X, y, random_state=0).ranking[-1]
    lines = [
        {"row": int(last), "given": str(y[last]), "decision": "right", "label": "", "reviewer": "eve", "note": "!"}
    ]
    result = find_label_issues(X, y, decisions=lines, random_state=0)
    data = data_of(render(result, most_rows=60))
    assert len(data["rows"]) == len(data["given"]) == len(data["x"]) == 60
    assert set(result.ranking[:30]) <= set(data["rows"])
    assert max(max(near, default=0) for near in data["neighbours"]) < 60
    place, kind, _, who, note, given = data["decisions"][0]
    assert (data["rows"][place], kind, who, note, given) == (last, "right", "eve", "!", str(y[last]))
    assert "This page holds 60 of 400 rows" in render(result, most_rows=60)
    first = data["neighbours"][data["rows"].index(int(result.ranking[0]))]
    assert [data["rows"][j] for j in first] == result.neighbours[result.ranking[0]].tolist()


def test_the_list_shows_first_the_columns_that_say_most_about_the_label():
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=240)
    frame = pd.DataFrame(
        {
            "noise": rng.normal(size=240),
            "constant": 1.0,
            "name": [f"n{i}" for i in range(240)],
            "place": np.where(rng.random(240) < 0.8, np.array(list("abc"))[label], "d"),
            "size": label + rng.normal(scale=0.3, size=240),
        }
    )
    frame.loc[::9, "size"] = np.nan
    found = find_label_issues(frame, label, random_state=0)
    data = data_of(render(found, frame=frame))
    assert {data["columns"][i] for i in data["first"][:2]} == {"size", "place"}
    assert sorted(data["first"]) == list(range(5)), "the order of the opened row stays that of the file"
