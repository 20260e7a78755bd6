"""`floral poison`: only the label column changes, files come whole or not at all, bad input is one line and exit 2."""

import csv
import io
import os

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402
from commands import floral, refused  # noqa: E402

from floral_learn.app.tables import read_table  # noqa: E402
from floral_learn.attacks import ATTACKS  # noqa: E402
from floral_learn.base import files as atomic_files  # noqa: E402


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def data(tmp_path):
    """A CSV with all that a careless rewrite would spoil."""
    rng = np.random.default_rng(0)
    lines = ['id,size,"city, country",code,note,when,y']
    for i in range(80):
        spam = i % 2
        note = '"said ""hi"",\nthen left"' if i % 5 == 0 else "plain"
        code = "" if i % 7 == 0 else str(i)
        city = '"Rome, IT"' if i % 3 else "Oslo"
        label = '"spam"' if spam and i % 4 == 1 else "spam" if spam else "ham"
        lines.append(f"{i:05d},{rng.normal(2 * spam):.3f}0,{city},{code},{note},2024-01-{i % 28 + 1:02d},{label}")
    path = tmp_path / "in.csv"
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode())
    return path


def parse(path):
    return list(csv.reader(io.StringIO(path.read_bytes().decode(), newline="")))


def test_the_documented_command_changes_labels_and_nothing_else(data, tmp_path):
    before = data.read_bytes()
    done = floral(
        "poison", "in.csv", "--label", "y", "--attack", "alfa", "--budget", "0.1", "--seed", "0", "--out", "out.csv"
    )
    assert data.read_bytes() == before
    old, new = parse(data), parse(tmp_path / "out.csv")
    assert [row[:-1] for row in old] == [row[:-1] for row in new]
    changed = [i for i, (a, b) in enumerate(zip(old[1:], new[1:], strict=True)) if a[-1] != b[-1]]
    assert len(changed) == 8
    # putting the old labels back gives the old values
    listed = pd.read_csv(tmp_path / "out.csv.flips.csv")
    assert sorted(listed["row"]) == changed
    for row, was, now in zip(listed["row"], listed["old_label"], listed["new_label"], strict=True):
        assert (old[row + 1][-1], new[row + 1][-1]) == (was, now)
    table = read_table(tmp_path / "out.csv", label="y")
    restored = table.relabelled(listed["row"].to_numpy(), listed["old_label"].to_numpy())
    (tmp_path / "restored.csv").write_bytes(restored)
    assert parse(tmp_path / "restored.csv") == old
    assert "alfa: flipped 8 of 80 labels" in done.stdout
    assert "standardised" in done.stdout
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


@pytest.mark.parametrize("attack", ATTACKS)
def test_every_attack_runs_and_a_seed_repeats(data, tmp_path, attack):
    fast = {
        "lfa": ("n_check=2", "n_first=5"),
        "alfa-tilt": ("n_restarts=3",),
        "adaptive": ("n_regions=2", "n_steps=1", "n_draws=2"),
    }
    options = [word for value in fast.get(attack, ()) for word in ("-p", value)]
    for name in ("a.csv", "b.csv"):
        floral("poison", "in.csv", "-l", "y", "-a", attack, "-b", 4, "-s", 3, "-o", name, *options)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes() != data.read_bytes()
    assert len(pd.read_csv(tmp_path / "a.csv.flips.csv")) == 4


def test_parquet_keeps_schema_metadata_and_all_other_columns(tmp_path):
    table = pa.table(
        {
            "a": pa.array(np.random.default_rng(0).normal(size=40), pa.float32()),
            "b": pa.array([None if i % 9 == 0 else i for i in range(40)], pa.int16()),
            "code": pa.array([f"{i:03d}" for i in range(40)]),
            "y": pa.array(["u" if i % 2 else "v" for i in range(40)]).dictionary_encode(),
        }
    ).replace_schema_metadata({"who": "me"})
    pq.write_table(table, tmp_path / "in.parquet")
    floral("poison", "in.parquet", "-l", "y", "-b", "25%", "-o", "out.parquet")
    out = pq.read_table(tmp_path / "out.parquet")
    assert out.schema.equals(pq.read_table(tmp_path / "in.parquet").schema, check_metadata=True)
    for name in ("a", "b", "code"):
        assert out[name].equals(table[name])
    assert sum(a != b for a, b in zip(out["y"].to_pylist(), table["y"].to_pylist(), strict=True)) == 10


def test_numbers_keep_their_spelling_and_leading_zeros_stay_text(tmp_path):
    (tmp_path / "n.csv").write_text("x,y\n" + "".join(f"{i},{'1.0' if i % 2 else '0.0'}\n" for i in range(20)))
    floral("poison", "n.csv", "-l", "y", "-b", 3, "-o", "o.csv")
    assert {row[1] for row in parse(tmp_path / "o.csv")[1:]} == {"1.0", "0.0"}
    (tmp_path / "z.csv").write_text("x,y\n" + "".join(f"{i},{'007' if i % 2 else '7'}\n" for i in range(20)))
    floral("poison", "z.csv", "-l", "y", "-b", 3, "-o", "oz.csv")
    assert {row[1] for row in parse(tmp_path / "oz.csv")[1:]} == {"007", "7"}
    assert sum(a != b for a, b in zip(parse(tmp_path / "z.csv"), parse(tmp_path / "oz.csv"), strict=True)) == 3


def test_a_target_loses_only_its_own_labels(data, tmp_path):
    floral("poison", "in.csv", "-l", "y", "-o", "o.csv", "-b", "5", "--target", "spam")
    flips = list(csv.DictReader((tmp_path / "o.csv.flips.csv").open()))
    assert [row["old_label"] for row in flips] == ["spam"] * 5


def test_constraints_of_the_red_team(data, tmp_path):
    options = ("--only", "city, country=Rome, IT", "--target", "ham", "--drop", "size")
    floral("poison", "in.csv", "-l", "y", "-b", 10, "-o", "o.csv", *options)
    flips = pd.read_csv(tmp_path / "o.csv.flips.csv")
    rows = parse(data)[1:]
    assert len(flips) == 10
    assert all(rows[i][2] == "Rome, IT" for i in flips["row"])
    assert set(flips["old_label"]) == {"ham"}


WRONG = {
    "no such file": (("nope.csv", "-l", "y", "-o", "o.csv"), "cannot read nope.csv: No such file"),
    "missing column": (
        ("in.csv", "-l", "label", "-o", "o.csv"),
        "has no column 'label'; its columns are: 'id', 'size'",
    ),
    "other kind out": (("in.csv", "-l", "y", "-o", "o.parquet"), "must end in .csv"),
    "over the input": (("in.csv", "-l", "y", "-o", "in.csv"), "is an input; inputs are never overwritten"),
    "no folder": (("in.csv", "-l", "y", "-o", "deep/o.csv"), "folder of --out"),
    "unknown attack": (
        ("in.csv", "-l", "y", "-o", "o.csv", "-a", "magic"),
        f"--attack 'magic' is unknown; choose one of {', '.join(ATTACKS)}",
    ),
    "large budget": (("in.csv", "-l", "y", "-o", "o.csv", "-b", "81"), "--budget 81 must be at least 0 and at most 80"),
    "odd budget": (("in.csv", "-l", "y", "-o", "o.csv", "-b", "some"), "--budget 'some' must be"),
    "odd param": (("in.csv", "-l", "y", "-o", "o.csv", "-p", "C=1"), "--param 'C': farthest takes no parameters"),
    "bad param value": (("in.csv", "-l", "y", "-o", "o.csv", "-a", "alfa", "-p", "C=-1"), "C=-1 must be positive"),
    "param type": (("in.csv", "-l", "y", "-o", "o.csv", "-a", "alfa", "-p", "C=x"), "floral poison: "),
    "no such class": (("in.csv", "-l", "y", "-o", "o.csv", "--target", "x"), "--target 'x' is not a label of the file"),
    "no row matches": (("in.csv", "-l", "y", "-o", "o.csv", "--only", "id=x"), "matches no row"),
    "continuous label": (("in.csv", "-l", "size", "-o", "o.csv"), "different numbers"),
    "one class": (("one.csv", "-l", "y", "-o", "o.csv"), "at least 2 classes"),
    "nothing to learn from": (("only.csv", "-l", "y", "-o", "o.csv"), "no usable feature column"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_line_exit_code_two_and_nothing_written(data, tmp_path, case):
    files = {"one.csv": b"x,y\n1,a\n2,a\n", "only.csv": b"y\na\nb\n"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    arguments, message = WRONG[case]
    assert message in refused("poison", *arguments)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_failed_write_leaves_nothing(data, tmp_path, monkeypatch):
    def full(handle, mode):
        os.close(handle)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_files.os, "fdopen", full)
    assert "cannot write o.csv.flips.csv: No space left on device" in refused(
        "poison", "in.csv", "-l", "y", "-o", "o.csv"
    )
    assert os.listdir(tmp_path) == ["in.csv"]


def test_labels_that_a_float_would_merge_stay_apart(tmp_path):
    big = ["9007199254740992", "9007199254740993"]
    (tmp_path / "big.csv").write_text("x,y\n" + "".join(f"{i},{big[i % 2]}\n" for i in range(20)))
    floral("poison", "big.csv", "-l", "y", "-b", 4, "-o", "o.csv")
    before, after = parse(tmp_path / "big.csv"), parse(tmp_path / "o.csv")
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 4
    assert {row[1] for row in after[1:]} == set(big)
    huge = ["12345678901234567890", "12345678901234567891"]  # beyond 64 bits: text
    (tmp_path / "huge.csv").write_text("x,y\n" + "".join(f"{i},{huge[i % 2]}\n" for i in range(20)))
    floral("poison", "huge.csv", "-l", "y", "-b", 4, "-o", "h.csv")
    assert {row[1] for row in parse(tmp_path / "h.csv")[1:]} == set(huge)


@pytest.mark.parametrize("wrong", [["-p", "C=abc"], ["-p", "n_init=x"], ["-p", "gamma=[1]"], ["--seed", "-1"]])
def test_a_wrong_option_is_named_and_nothing_is_written(data, tmp_path, wrong):
    done = floral("poison", "in.csv", "-l", "y", "-a", "alfa", "-b", 4, "-o", "o.csv", *wrong, code=2)
    name = wrong[1].split("=")[0] if wrong[0] == "-p" else wrong[0]
    assert name in done.output
    assert not (tmp_path / "o.csv").exists()


def test_an_attack_for_two_classes_names_those_for_more(tmp_path):
    (tmp_path / "three.csv").write_text("x,y\n" + "".join(f"{i},{'abc'[i % 3]}\n" for i in range(30)))
    assert "--attack alfa is defined for two classes, 'y' has 3; for more: random" in refused(
        "poison", "three.csv", "-l", "y", "-a", "alfa", "-o", "o.csv"
    )
