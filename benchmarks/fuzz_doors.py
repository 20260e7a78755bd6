"""Attacks on every door through which a table comes in, and on the pages of certify and evidence: parts of fuzz.py.

Exports of Label Studio, JSON Lines, workbooks, frames of polars, packed files: each is made well, then one thing is
wrong with it. What is read must keep the label away from the features; what is refused is one line that names the file.
"""

import contextlib
import copy
import datetime
import decimal
import gzip
import io
import json
import resource
import zipfile

import fuzz_cases as cases
import numpy as np
from fuzz_cases import Count, invoke
from fuzz_files import in_children, members, packed, rewritten

from floral_learn import save
from floral_learn.app.tables import read_table
from floral_learn.app.tables.label_studio import read_export, read_label_studio
from floral_learn.base import TableEncoder, TableError

ODD = [
    None, True, 0, -1, 2**53 + 1, 10**30, 1.5, 1e308, "", " ", "x", "=1+1", "\0", "\u202e", "<script>", "nan", "\ud800",
    [], {}, [[]], ["up"], ["up", "down"], {"choices": ["up"]}, {"choices": "up"}, [{"start": 0, "end": 3}], "9" * 400,
]  # fmt: skip
MEMORY = 4 * 2**30  # bytes that a child may ask for


def looked_at(source, label, name=None):
    """Read a table and encode it; "refused", "done", or what was wrong."""
    try:
        table = read_table(source, label=label)
        made = TableEncoder(text_encoder="tfidf").fit(table.features)
    except TableError as error:
        words = str(error)
        if not words or "\n" in words or (name and name not in words and len(words) < 15):
            return f"no words for it: {words[:100]!r}"
        return "refused"
    if label in table.features.columns or any("Lqz" in str(found) for found in made.get_feature_names_out()):
        return "the label is a feature"
    if len(table.labels) != len(table.features):
        return "labels and rows differ in number"
    return "done"


def counted(count, what, outcome):
    """Count an outcome of `looked_at`."""
    if outcome == "refused":
        count.refused += 1
    elif outcome == "done":
        count.done += 1
    else:
        count.fail(f"{what}: {outcome}"[:300])


def each(count, attacks, use):
    """Count how `use(content)` ends for each (what, content) in this process."""
    for what, content in attacks:
        try:
            outcome = use(content)
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
        counted(count, what, outcome)


# -- Label Studio ---------------------------------------------------------------------------------------------------


def studio_tasks(rng):
    """A good export: tasks, people, choices, ground truths, skipped annotations."""
    labels = [cases.words(rng, 4) + str(k) for k in range(rng.randint(2, 4))]
    people = [1, 7, {"id": 3, "email": "a@b.c"}, "ann", None]
    keys = rng.sample(["text", "n", "image", "w 1", "\u00fc", "id"], rng.randint(1, 4))
    tasks = []
    for number in range(rng.randint(2, 12)):
        gold = rng.random() < 0.1
        annotations = [
            {
                "completed_by": rng.choice(people), "ground_truth": gold and k == 0, "lead_time": rng.random(),
                "was_cancelled": rng.random() < 0.1,
                "result": [{"from_name": "mood", "to_name": "text", "type": "choices",
                            "value": {"choices": [rng.choice(labels)]}}],
            }
            for k in range(rng.randint(1, 3))
        ]  # fmt: skip
        data = {key: rng.choice([1.5, "words here", None, True, "https://x/y.png", 7, "\u2028"]) for key in keys}
        tasks.append({"id": 100 + number, "data": data, "annotations": annotations, "predictions": []})
    tasks[0]["annotations"][0]["was_cancelled"] = False
    return labels, tasks


def studio_min(tasks):
    """The same as JSON-MIN."""
    return [
        {**{k: v for k, v in task["data"].items() if k != "id"}, "id": task["id"], "annotator": str(a["completed_by"]),
         "mood": a["result"][0]["value"]["choices"][0]}
        for task in tasks for a in task["annotations"] if not a["was_cancelled"]
    ]  # fmt: skip


def changed_tree(rng, value):
    """A copy of a JSON value with one to three places replaced, removed or doubled."""
    value = json.loads(json.dumps(value))
    for _ in range(rng.randint(1, 3)):
        places = []

        def collect(item, places=places):
            inner = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
            for key, child in list(inner):
                places.append((item, key))
                collect(child)

        collect(value)
        if not places:
            break
        item, key = rng.choice(places)
        kind = rng.randrange(5)
        if kind == 0:
            del item[key]
        elif kind == 1 and isinstance(item, list):
            item.append(item[key])
        elif kind == 2:
            item[key] = rng.choice(["rectanglelabels", "labels", "taxonomy", "mood", "other"])
        else:
            item[key] = copy.deepcopy(rng.choice(ODD))  # a list of ours must not come to hold itself
    return value


def label_studio(rng, scale, work):
    """Exports there and back without a changed label, and exports with anything replaced."""
    trips, changes, path = Count(), Count(), work / "export.json"

    def trip(made):
        labels, tasks = made
        source = read_label_studio("e.json", json.dumps(tasks), "mood")
        at = source.columns.index("mood")
        if json.loads(source.relabelled(at, np.array([], int), np.array([]))) != tasks:
            return "an export changed by itself"
        given = source.cells(at)
        rows = [row for row, label in enumerate(given) if label is not None]
        new = [labels[(labels.index(given[row]) + 1) % len(labels)] for row in rows]
        back = read_label_studio("e.json", source.relabelled(at, np.array(rows), np.array(new)).decode(), "mood")
        if [back.cells(at)[row] for row in rows] != new or list(back.export.tasks.values()) != [
            t["data"] for t in tasks
        ]:
            return "other labels or data came back"
        return "done"

    each(trips, ((f"trip {k}", studio_tasks(rng)) for k in range(max(20, int(1000 * scale)))), trip)

    def use(text):
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        with contextlib.suppress(TableError):
            read_export(str(path), text, "mood")
        return looked_at(path, "mood", "export.json")

    def attacks():
        for k in range(max(20, int(2000 * scale))):
            tasks = studio_tasks(rng)[1]
            tasks = studio_min(tasks) if k % 3 == 0 else tasks
            if k % 10 == 0:
                yield f"bytes {k}", cases.mutated(rng, json.dumps(tasks).encode()).decode("utf-8", "replace")
            elif k % 50 == 1:
                yield f"deep {k}", rng.choice(['[{"data":', "[", '{"a":', '[{"id":1,"data":{"x":[']) * 50_000
            else:
                yield f"export {k}", json.dumps(changed_tree(rng, tasks))

    each(changes, attacks(), use)
    return {"Label Studio exports, there and back": trips, "Label Studio exports, anything replaced": changes}


# -- JSON Lines, packed files, workbooks, frames --------------------------------------------------------------------


def json_lines(rng, scale, work):
    """Objects with odd values, names and line ends; what is relabelled differs in its lines alone."""
    count, path = Count(), work / "data.jsonl"

    def content(k):
        names = ["x", rng.choice(cases.NAMES), "label"] if k % 2 else ["text", "label", "_annotator_id", "answer"]
        rows = []
        for i in range(rng.randint(2, 20)):
            row = {name: rng.choice([i, i / 7, f"w{i}", None, True]) for name in names}
            row["label"] = rng.choice([["up"], ["down"]]) if k % 2 == 0 else rng.choice(["up", "down"])
            rows.append(row)
        if k % 3:
            rows = [changed_tree(rng, row) if rng.random() < 0.3 else row for row in rows]
        lines = [json.dumps(row, ensure_ascii=rng.random() < 0.5) for row in rows]
        text = rng.choice(["\n", "\r\n", "\r", "\n\n"]).join(lines).encode("utf-8", "surrogatepass")
        return cases.mutated(rng, text) if k % 10 == 0 else text

    def use(raw):
        path.write_bytes(raw)
        outcome = looked_at(path, "label", "data.jsonl")
        if outcome == "done":
            table = read_table(path, label="label")
            if table.relabelled([], []) != raw:
                return "a copy without changes differs"
            if len(table.classes) > 1:
                other = next(label for label in table.classes if label != table.labels[0])
                before, after = raw.splitlines(), table.relabelled([0], [other]).splitlines()
                if len(before) != len(after) or sum(a != b for a, b in zip(before, after, strict=True)) > 1:
                    return "more than one line changed"
        return outcome

    each(count, ((f"lines {k}", content(k)) for k in range(max(20, int(2000 * scale)))), use)
    return {"JSON Lines, odd values, names and lines": count}


def packed_files(rng, scale, work):
    """Packed tables: bombs of one and of many members, cuts, other content, under a limit of a megabyte."""
    from floral_learn.app.tables import source

    count, good = Count(), cases.good_table(rng)

    def content(k):
        if k % 4 == 0:
            return gzip.compress(b"0" * rng.randint(1_100_000, 9_000_000), 1), "bomb"
        if k % 4 == 1:
            part = gzip.compress(b"y,x\n" + b"1,2\n" * 50_000, 1)
            return part * rng.randint(6, 40), "bomb"
        if k % 4 == 2:
            return cases.mutated(rng, gzip.compress(good)), ""
        return rng.choice([gzip.compress(gzip.compress(good)), good, b"", gzip.compress(b""), gzip.compress(good)]), ""

    def use(attack):
        (raw, kind), suffix = attack
        path = work / f"data{suffix}.gz"
        path.write_bytes(raw)
        _few_bytes()
        source.MOST_BYTES = 1_000_000
        outcome = looked_at(path, "y", path.name)
        return "a bomb was read" if kind and outcome == "done" else outcome

    suffixes = [".csv", ".tsv", ".jsonl", ".json", ".csv"]
    made = [(f"packed {k}", (content(k), rng.choice(suffixes))) for k in range(max(20, int(300 * scale)))]
    in_children(count, made, use)
    if scale >= 1:  # the limit as it is, once
        in_children(count, [("a gigabyte", (work / "big.csv.gz", _gigabyte()))], _use_big)
    return {"packed tables, bombs and damaged ones": count}


def _few_bytes():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _gigabyte():
    with gzip.GzipFile(fileobj=(stream := io.BytesIO()), mode="wb", compresslevel=1) as packer:
        for _ in range(1100):
            packer.write(bytes(2**20))
    return stream.getvalue()


def _use_big(attack):
    path, raw = attack
    path.write_bytes(raw)
    _few_bytes()
    return looked_at(path, "y", path.name)


def workbooks(rng, scale, work):
    """Workbooks with odd cells, parts replaced or missing, entities and bombs."""
    import openpyxl

    count, path = Count(), work / "data.xlsx"

    def good():
        book = openpyxl.Workbook()
        sheet = book.active
        sheet.append(["x", rng.choice(["when", "=1+1", "x", 5, None]), "y"])
        odd = [1, 2.5, "w", True, None, datetime.datetime(2024, 1, 2), datetime.time(3), "=SUM(A1:A9)", "#N/A", 1e300]
        for i in range(rng.randint(2, 12)):
            sheet.append([i, rng.choice(odd), ["no", "yes"][i % 2]])
        if rng.random() < 0.3:
            book.create_sheet("other").append([1])
        book.save(stream := io.BytesIO())
        return stream.getvalue()

    swaps = [
        (b"</row>", b"</rox>"), (b't="s"', b't="b"'), (b"<v>1</v>", b"<v>99999999999</v>"), (b"<v>0</v>", b"<v></v>"),
        (b'r="A1"', b'r="XFD1048576"'), (b'r="A2"', b'r="ZZZZ9"'), (b"<row", b'<row r="9999999999"'),
        (b"<sheetData>", b"<sheetData>" + b"<row/>" * 5000), (b"UTF-8", b"UTF-16"), (b"<v>", b"<v>nan"),
        (b"<sheets>", b""), (b'"s"', b'"e"'), (b"<c ", b'<c s="4000" '), (b"dimension", b"dimensiox"),
        (b"sheet1.xml", b"../../../etc/passwd"), (b"sharedStrings.xml", b"nothing.xml"),
    ]  # fmt: skip
    laugh = b'<!DOCTYPE a [<!ENTITY a "' + b"ha" * 500 + b'">' + b"".join(
        b'<!ENTITY %c "%s">' % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(8)
    ) + b"]>"  # fmt: skip

    def content(k):
        raw = good()
        if k % 10 == 0:
            return cases.mutated(rng, raw)
        files = members(raw)
        name = rng.choice(sorted(files))
        sheet = "xl/worksheets/sheet1.xml"
        if k % 10 == 1:
            del files[name]
        elif k % 10 == 2:
            files[name] = cases.mutated(rng, files[name])
        elif k % 10 == 3:
            files[sheet] = files[sheet].replace(b"<worksheet", laugh + b"<worksheet").replace(b"<v>", b"<v>&i;", 1)
        elif k % 10 == 4:
            return packed(files | {"xl/media/zero.bin": bytes(2**20 * rng.randint(260, 300))}, zipfile.ZIP_DEFLATED)
        else:
            for old, new in rng.sample(swaps, rng.randint(1, 3)):
                for part in files:
                    files[part] = files[part].replace(old, new, rng.randint(1, 3))
        return packed(files, zipfile.ZIP_DEFLATED)

    def use(raw):
        path.write_bytes(raw)
        _few_bytes()
        outcome = looked_at(path, "y", "data.xlsx")
        if outcome == "done":
            with contextlib.suppress(TableError):
                read_table(path, label="y").relabelled([0], ["no"])
        return outcome

    number = max(20, int(200 * scale))
    # A bomb takes a second to make: a few are enough.
    kinds = [k if k % 10 != 4 or k < 10 else 10 * k + 7 for k in range(number)]
    in_children(count, [(f"workbook {k}", content(k)) for k in kinds], use)
    return {"workbooks, odd cells, parts, entities and bombs": count}


def frames(rng, scale, work):
    """Frames of polars with every kind of column, also as labels."""
    import polars as pl

    count = Count()

    def column(n):
        day = datetime.datetime(2024, 1, 1)
        kinds = [
            lambda: pl.Series([rng.gauss(0, 1) for _ in range(n)]),
            lambda: pl.Series([rng.choice([None, float("nan"), float("inf"), 1.0]) for _ in range(n)]),
            lambda: pl.Series([rng.choice(["a", "b", None, "\ud7ff", "=1"]) for _ in range(n)]),
            lambda: pl.Series([rng.choice(["a", "b"]) for _ in range(n)], dtype=pl.Categorical),
            lambda: pl.Series([rng.choice(["a", "b"]) for _ in range(n)], dtype=pl.Enum(["a", "b"])),
            lambda: pl.Series([rng.random() < 0.5 for _ in range(n)]),
            lambda: pl.Series([2**62 + i for i in range(n)]),
            lambda: pl.Series([2**64 - 1 - i for i in range(n)], dtype=pl.UInt64),
            lambda: pl.Series([decimal.Decimal(f"{i}.25") for i in range(n)]),
            lambda: pl.Series([day + datetime.timedelta(hours=i) for i in range(n)]),
            lambda: pl.Series([day] * n, dtype=pl.Datetime).dt.replace_time_zone(rng.choice(["UTC", "Asia/Tokyo"])),
            lambda: pl.Series([datetime.timedelta(seconds=i) for i in range(n)]),
            lambda: pl.Series([datetime.time(i % 24) for i in range(n)]),
            lambda: pl.Series([datetime.date(2024, 1, i % 28 + 1) for i in range(n)]),
            lambda: pl.Series([b"\xff\0", b"a"] * n)[:n],
            lambda: pl.Series([[1, 2]] * n),
            lambda: pl.Series([{"p": 1}] * n),
            lambda: pl.Series([None] * n),
            lambda: pl.Series([object() for _ in range(n)], dtype=pl.Object),
            lambda: pl.Series([i % 3 for i in range(n)], dtype=pl.Int8),
        ]
        return rng.choice(kinds)()

    def made(k):
        n = rng.choice([0, 1, 2, 7, 30])
        names = dict.fromkeys(rng.choice(cases.NAMES) or "e" for _ in range(rng.randint(1, 4)))
        data = {name: column(n) for name in names if name != "y"}
        label = pl.Series([f"Lqz{i % 2}" for i in range(n)], dtype=pl.String) if k % 3 else column(n)
        frame = pl.DataFrame({**data, "y": label})
        # In fewer rows a column may equal the label by chance.
        return frame.with_columns(pl.col("y").alias("copy")) if k % 4 == 0 and n == 30 else frame

    def use(frame):
        outcome = looked_at(frame, "y")
        if outcome == "done":
            table = read_table(frame, label="y")
            if "copy" in table.features.columns:
                return "a copy of the label is a feature"
            if len(table.classes) > 1 and type(table.relabelled([0], [table.classes[-1]])) is not pl.DataFrame:
                return "another kind of frame came back"
        return outcome

    each(count, ((f"frame {k}", made(k)) for k in range(max(20, int(1500 * scale)))), use)
    return {"frames of polars": count}


# -- certify and evidence -------------------------------------------------------------------------------------------

MARKUP = ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "'\"><b>", "=1+1", "@SUM(A1)", "{{7*7}}"]


def certificates(rng, scale, work):
    """`floral certify` of hostile and damaged tables, with options that do not fit; no markup of the data in pages."""
    count = Count()
    kinds = [raw for suffix, raw in cases.malformed_tables(rng).values() if suffix == ".csv" and len(raw) < 50_000]

    def content(k):
        if k % 3 == 0:
            return rng.choice(kinds)
        if k % 3 == 1:
            return cases.mutated(rng, cases.good_table(rng))
        n, (one, other) = rng.randint(4, 40), rng.sample(MARKUP, 2)
        cells = [[f"{rng.gauss(0, 1):.3f}" for _ in range(n)], [rng.choice(MARKUP) + str(i) for i in range(n)]]
        return cases.csv_of(["x", "id", "y"], [*cells, [(one, other)[i % 2] for i in range(n)]])

    for k in range(max(10, int(150 * scale))):
        source, out = work / "t.csv", work / f"c{k}"
        source.write_bytes(content(k))
        more = rng.choice([(), (), ("--flip", "yes=no"), ("--flip", "="), ("--rows", "3"), ("--id", "id")])
        code, _, _, problem = invoke(("certify", source, "-l", "y", "-o", out, *more))
        if not problem and code == 0:
            page, listed = (out / "page.html").read_text(), (out / "certificates.csv").read_text()
            if any(mark in page for mark in MARKUP[:3]):
                problem = "markup of the data in the page"
            elif any(cell[:1] in ("=", "@") for line in listed.splitlines() for cell in line.split(",")):
                problem = "a formula in the list"
        elif not problem and out.exists():
            problem = f"refused, but {out.name} is there"
        counted(count, f"certify {k}", problem or ("done" if code == 0 else "refused"))
    return {"certificates of hostile tables": count}


def evidence(rng, scale, work):
    """`floral evidence` of model files whose evidence was rewritten."""
    from sklearn.svm import SVC

    count, path = Count(), work / "m.skops"
    model = SVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    review = {
        "rows": 60, "classes": ["a", "<b>"], "trusted before": 0, "checked": 12, "drawn at random": 6, "not sure": 0,
        "chosen by the model": 6, "reviewers": {"ann": 12}, "changed by answers": 2, "changed by the model": 1,
        "wrong among the drawn": 1, "guaranteed low": 0.1, "guaranteed high": 0.4, "confidence": 0.95,
        "guarantee valid": True,
    }  # fmt: skip
    data = {"file": MARKUP[0], "rows": "60", "SHA-256": "0" * 64}
    attacks = {"data": {"file": "t.csv"}, "curves": {MARKUP[1]: "0 %: 0.9"}}
    certificate = {
        "data": {"file": "t.csv", "SHA-256": "1"}, "labels": 60, "rows": 60, "survive": [[0, 1.0], [1, 0.5]],
        "exact": True, "flips": [], "assumed": {"gamma": "0.5"},
    }  # fmt: skip

    def content(k):
        if k % 3 == 0:
            save(model, path)
            return rewritten(rng, path.read_bytes())
        facts = {"data": data, "review": review, "measured": {"held-out accuracy": "0.9"}}
        facts |= {"attacks": attacks, "certificate": certificate}
        model.evidence_ = changed_tree(rng, facts)
        try:
            save(model, path)
        except Exception:  # what cannot be saved is not loaded either
            model.evidence_ = facts
            save(model, path)
        return path.read_bytes()

    for k in range(max(10, int(200 * scale))):
        (work / "attacked.skops").write_bytes(content(k))
        out = work / rng.choice(["e.html", "e.md"])
        out.unlink(missing_ok=True)
        code, _, _, problem = invoke(("evidence", work / "attacked.skops", "-o", out))
        if not problem and code == 0 and any(mark in out.read_text() for mark in MARKUP[:2]):
            problem = "markup of the file in the page"
        counted(count, f"evidence {k}", problem or ("done" if code == 0 else "refused"))
    return {"evidence in model files, rewritten": count}


PARTS = {
    "label_studio": label_studio,
    "json_lines": json_lines,
    "packed_files": packed_files,
    "workbooks": workbooks,
    "frames": frames,
    "certificates": certificates,
    "evidence": evidence,
}
