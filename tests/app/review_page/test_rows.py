"""Rows as people read them, and pictures from the table's folder only."""

import os

import numpy as np
import pandas as pd
import pytest

from floral_learn.app.review_page import ShownRows
from floral_learn.app.review_page.shown_rows import image_type, inside

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20


def shown(frame, folder, **other):
    labels = np.array(["no", "yes"] * (len(frame) // 2))
    return ShownRows(frame, labels, folder=folder, **other)


def test_a_number_says_where_it_lies_among_the_others(tmp_path):
    rows = shown(pd.DataFrame({"size": np.arange(100.0), "flag": [0, 1] * 50}), tmp_path)
    size, flag = rows.card(80)["fields"]
    assert (size["value"], size["note"]) == ("80", "higher than 80\u00a0%")
    assert 0.75 < size["place"] < 0.85
    assert len(size["ticks"]) == 99, "percentiles"
    assert min(size["ticks"]) >= 0
    assert max(size["ticks"]) <= 1
    assert flag["note"] == "the lowest, as in 50\u00a0% of the rows"
    assert rows.card(99)["fields"][0]["note"] == "the highest"
    assert rows.card(20)["fields"][0]["note"] == "lower than 79\u00a0%"


def test_texts_are_whole_and_missing_values_say_so(tmp_path):
    long = "word " * 2000
    frame = pd.DataFrame(
        {"review": [long, None, "short", "x"], "size": [1.0, np.nan, np.inf, 3], "colour": ["red"] * 4}
    )
    rows = shown(frame, tmp_path)
    assert rows.card(0)["fields"][0] == {"name": "review", "kind": "text", "value": long, "main": True}
    assert [field["note"] for field in rows.card(1)["fields"][:2]] == ["missing", "missing"]
    assert rows.card(2)["fields"][1]["value"] == "inf"
    assert rows.card(0)["fields"][2]["note"] == "as in 100\u00a0% of the rows"


def test_of_a_wide_table_the_telling_columns_come_first(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 30)), columns=[f"c{i}" for i in range(30)])
    frame["c17"] += np.tile([0, 5], 30)
    rows = shown(frame, tmp_path)
    main = [field["name"] for field in rows.card(0)["fields"] if field["main"]]
    assert len(main) == 8
    assert "c17" in main


def test_names_of_files_lead_nowhere_outside_the_folder(tmp_path):
    folder = tmp_path / "table"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.png").write_bytes(PNG)
    (tmp_path / "secret.png").write_bytes(PNG)
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "out").symlink_to(tmp_path)
    assert inside(folder, "sub/a.png") == (folder / "sub" / "a.png").resolve()
    assert inside(folder, "sub/../sub/a.png") is not None
    bad = [
        "../secret.png",
        str(tmp_path / "secret.png"),
        "link.png",
        "out/secret.png",
        "sub",
        "",
        "a\0b",
        "x" * 5000,
        "no.png",
    ]
    assert [name for name in bad if inside(folder, name) is not None] == []


def test_only_pictures_are_served_whatever_the_name_says(tmp_path):
    names = ["a.png", "b.png", "../c.png", "d.png"]
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.png").write_bytes(PNG)
    (tmp_path / "t" / "b.png").write_bytes(b"<svg onload='alert(1)'></svg>")
    (tmp_path / "c.png").write_bytes(PNG)
    rows = shown(pd.DataFrame({"picture": names, "size": [1.0, 2, 3, 4]}), tmp_path / "t")
    assert [column.kind for column in rows.columns] == ["image", "number"]
    assert rows.image(0, 0) == (PNG, "image/png")
    assert [rows.image(row, 0) for row in (1, 2, 3)] == [None] * 3
    assert rows.image(0, 1) is None
    assert rows.image(99, 0) is None
    assert rows.image(0, -1) is None
    assert [rows.card(row)["fields"][0]["image"] for row in range(4)] == [True, True, False, False]


@pytest.mark.skipif(os.name == "nt", reason="no named pipes")
def test_a_pipe_is_no_picture(tmp_path):
    os.mkfifo(tmp_path / "a.png")
    assert inside(tmp_path, "a.png") is None


def test_types_go_by_the_first_bytes():
    assert image_type(b"\xff\xd8\xff\xe0") == "image/jpeg"
    assert image_type(b"RIFF0000WEBPVP8 ") == "image/webp"
    assert image_type(b"GIF89a...") == "image/gif"
    assert image_type(b"<html>") is None


def test_of_a_row_that_is_nearly_the_same_the_difference_is_shown_in_full(tmp_path):
    long = "word " * 100
    frame = pd.DataFrame({"text": [long, long, long + "end", None], "size": [1.0, 1.0, 1.0, 2.0]})
    rows = shown(frame, tmp_path)
    said = [rows.difference(0, other) for other in (1, 2, 3)]
    assert said == ["the same in every column", f"text {long}end", "text ?, size 2"]
