"""Inputs that nobody would write on purpose, and some that only an enemy would; every draw comes from one seed."""

import io
import json
import random
import re
import sqlite3
import string

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

CLOCK = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2} ")  # lines of progress
NAMES = [
    "",
    " ",
    "y",
    "Y",
    "y ",
    "y.1",
    "x",
    "x.1",
    "Unnamed: 0",
    "Unnamed: 1",
    "__index_level_0__",
    "index",
    "id",
    "0",
    "1",
    "nan",
    "None",
    "NA",
    "label",
    "target",
    "=1+1",
    "-y",
    "@y",
    "'y",
    '"',
    'a"b',
    "a,b",
    "a;b",
    "a\tb",
    "a\nb",
    "a\r\nb",
    "\0",
    "y\0",
    "\x07",
    "\ufeff",
    "\u200b",
    "\u202ey",
    "é",
    "e\u0301",
    "表",
    "🙂",
    "a" * 5000,
    "y=0",
    "(missing)",
    "row",
    "prediction",
    "score",
    "features",
    "__class__",
    "__loader__",
    "content",
    "../../x",
    "%s",
    "{0}",
    "<b>",
    "'; DROP",
]


def csv_of(names, columns, sep=","):
    """A CSV file with every cell quoted that needs it; columns are lists of texts."""

    def cell(text):
        text = str(text)
        quote = any(c in text for c in (sep, '"', "\n", "\r")) or text != text.strip() or not text
        return '"' + text.replace('"', '""') + '"' if quote else text

    rows = [names, *zip(*columns, strict=True)]
    return "".join(sep.join(map(cell, row)) + "\n" for row in rows).encode("utf-8", "surrogatepass")


def strange_table(rng, n=24):
    """(suffix, names, columns, place of the label): features do not depend on the label; its values start with Lqz."""
    width = rng.randint(2, 6)
    place = rng.randrange(width)
    names = [rng.choice(NAMES) for _ in range(width)]
    columns = []
    for j in range(width):
        kind = rng.choice(["number", "category", "date", "code"])
        if j == place:
            columns.append([f"Lqz{rng.randrange(2)}" for _ in range(n - 2)] + ["Lqz0", "Lqz1"])
        elif kind == "number":
            columns.append([f"{rng.gauss(0, 3):.3f}" for _ in range(n)])
        elif kind == "category":
            columns.append([rng.choice(["red", "green", ""]) for _ in range(n)])
        elif kind == "date":
            columns.append([f"2024-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}" for _ in range(n)])
        else:
            columns.append([f"{rng.randrange(900):03d}" for _ in range(n)])
    return rng.choice([".csv", ".tsv", ".parquet"]), names, columns, place


def written(suffix, names, columns):
    """The bytes of a table in a format."""
    if suffix == ".parquet":
        stream = io.BytesIO()
        table = pa.table([pa.array(column) for column in columns], names=[name.replace("\0", "0") for name in names])
        pq.write_table(table, stream)
        return stream.getvalue()
    return csv_of(names, columns, "\t" if suffix == ".tsv" else ",")


def good_table(rng, n=40):
    """A table that every command can use: (bytes, names)."""
    lines = ["id,size,colour,when,y"]
    for i in range(n):
        kind = i % 2
        when, colour = f"2024-01-{i % 28 + 1:02d}", rng.choice(["red", "blue"])
        lines.append(f"r{i},{rng.gauss(4 * kind, 1):.3f},{colour},{when},{['no', 'yes'][kind]}")
    return ("\n".join(lines) + "\n").encode()


def _parquet(**columns):
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


def _frame(frame):
    stream = io.BytesIO()
    frame.to_parquet(stream)
    return stream.getvalue()


def malformed_tables(rng):
    """Name -> (suffix, bytes); the label column, where there is one, is called y."""
    n = 40
    y = [["no", "yes"][i % 2] for i in range(n)]
    x = [f"{rng.gauss(0, 1):.3f}" for _ in range(n)]
    made = {
        "nothing": b"",
        "a newline": b"\n",
        "blanks": b"   \n  \n",
        "header only": b"a,y\n",
        "no newline": b"a,y",
        "one column": b"y\nno\nyes\n",
        "one row": b"a,y\n1,no\n",
        "two rows": b"a,y\n1,no\n2,yes\n",
        "nul": b"\0" * 50,
        "random bytes": rng.randbytes(400),
        "zip": b"PK\x03\x04" + rng.randbytes(40),
        "gzip": b"\x1f\x8b\x08" + b"0" * 40,
        "html": b"<html><body>404</body></html>",
        "json": b'[{"a": 1, "y": "no"}]',
        "latin-1": "a,y\né,no\nü,yes\n".encode("latin-1"),
        "utf-16": csv_of(["a", "y"], [x, y]).decode().encode("utf-16"),
        "bom": b"\xef\xbb\xbf" + csv_of(["a", "y"], [x, y]),
        "semicolons": csv_of(["a", "y"], [[t.replace(".", ",") for t in x], y], ";"),
        "bars": csv_of(["a", "y"], [x, y], "|"),
        "cr only": csv_of(["a", "y"], [x, y]).replace(b"\n", b"\r"),
        "crlf": csv_of(["a", "y"], [x, y]).replace(b"\n", b"\r\n"),
        "ragged": b"a,y\n1,no\n2\n3,yes,4\n",
        "open quote": b'a,y\n"1,no\n2,yes\n',
        "stray quote": b'a,y\n1"2,no\n"3"4,yes\n' * 10,
        "no label": csv_of(["a", "b"], [x, y]),
        "two labels": csv_of(["y", "y"], [x, y]),
        "empty name": csv_of(["", "y"], [x, y]),
        "nul name": csv_of(["a\0b", "y"], [x, y]),
        "newline name": csv_of(["a\nb", "y"], [x, y]),
        "one class": csv_of(["a", "y"], [x, ["no"] * n]),
        "all classes": csv_of(["a", "y"], [x, [f"c{i}" for i in range(n)]]),
        "regression": csv_of(["a", "y"], [x, x]),
        "blank label": csv_of(["a", "y"], [x, ["", *y[1:]]]),
        "blank labels": csv_of(["a", "y"], [x, [""] * n]),
        "NA labels": csv_of(["a", "y"], [x, ["NA", "nan"] * (n // 2)]),
        "mixed labels": csv_of(["a", "y"], [x, ["1", "one"] * (n // 2)]),
        "numbers and blanks": csv_of(["a", "y"], [x, ["1", "0", "", "1"] * (n // 4)]),
        "rare class": csv_of(["a", "y"], [x, ["rare", *y[1:]]]),
        "formula labels": csv_of(["a", "y"], [x, ["=1+1", "@SUM(A1)"] * (n // 2)]),
        "huge numbers": csv_of(["a", "y"], [[f"{float(t) * 1e300}" for t in x], y]),
        "tiny numbers": csv_of(["a", "y"], [[f"{float(t) * 1e-300}" for t in x], y]),
        "overflowing": csv_of(["a", "y"], [["1e400"] * n, y]),
        "infinite": csv_of(["a", "y"], [["inf", "-inf"] * (n // 2), y]),
        "one infinite": csv_of(["a", "y"], [["inf", *x[1:]], y]),
        "missing": csv_of(["a", "y"], [[""] * n, y]),
        "nan": csv_of(["a", "y"], [["nan"] * n, y]),
        "constant": csv_of(["a", "y"], [["7"] * n, y]),
        "identifiers": csv_of(["a", "y"], [[f"id{i}" for i in range(n)], y]),
        "row numbers": csv_of(["Unnamed: 0", "y"], [[str(i) for i in range(n)], y]),
        "categories": csv_of(["a", "y"], [["u", "v", "w", ""] * (n // 4), y]),
        "prose": csv_of(["a", "y"], [[f"words about thing {i} and {y[i]}" for i in range(n)], y]),
        "dates": csv_of(["a", "y"], [[f"{i % 28 + 1}.1.2024" for i in range(n)], y]),
        "bad dates": csv_of(["a", "y"], [["2024-02-31"] * n, y]),
        "long cell": csv_of(["a", "y"], [["z" * 300_000, *x[1:]], y]),
        "control characters": csv_of(["a", "y"], [["\x1b[31m\x07"] * n, y]),
        "formulas": csv_of(["a", "y"], [["=cmd|'/C calc'!A1", "+1+1"] * (n // 2), y]),
        "scripts": csv_of(
            ["<script>alert(1)</script>", "y"], [["<img src=x onerror=alert(1)>", "'><b>"] * (n // 2), y]
        ),
        "many columns": csv_of([*(f"c{j}" for j in range(600)), "y"], [*([x] * 600), y]),
        "codes": csv_of(["a", "y"], [[f"{i:05d}" for i in range(n)], y]),
        "big integers": csv_of(["a", "y"], [[str(10**30 + i) for i in range(n)], y]),
        "mixed types": csv_of(["a", "y"], [["1", "x", "2024-01-01", ""] * (n // 4), y]),
        "twenty classes": csv_of(["a", "y"], [x, [f"c{i % 20}" for i in range(n)]]),
        "thousands": csv_of(["a", "y"], [[f"{i},{i:03d}.5" for i in range(1, n + 1)], y]),
    }
    tables = {name: (".csv", content) for name, content in made.items()}
    numbers = np.arange(float(n))
    whole = _parquet(a=pa.array(numbers), y=pa.array(y))
    kinds = {
        "lists": _parquet(a=pa.array([[1, 2]] * n), x=pa.array(numbers), y=pa.array(y)),
        "only lists": _parquet(a=pa.array([[1, 2]] * n), y=pa.array(y)),
        "structs": _parquet(a=pa.array([{"p": 1}] * n), x=pa.array(numbers), y=pa.array(y)),
        "maps": _parquet(
            a=pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int64())), x=pa.array(numbers), y=pa.array(y)
        ),
        "list labels": _parquet(a=pa.array(numbers), y=pa.array([[1]] * n)),
        "binary": _parquet(a=pa.array([b"\xff\x00", b"ab"] * (n // 2)), x=pa.array(numbers), y=pa.array(y)),
        "binary labels": _parquet(a=pa.array(numbers), y=pa.array([b"\xff", b"a"] * (n // 2))),
        "nulls": _parquet(a=pa.nulls(n), x=pa.array(numbers), y=pa.array(y)),
        "null labels": _parquet(a=pa.array(numbers), y=pa.nulls(n)),
        "no rows": _parquet(a=pa.array([], pa.float64()), y=pa.array([], pa.string())),
        "decimals": _parquet(a=pa.array(range(n), pa.decimal128(9, 2)), y=pa.array(y)),
        "dictionary": _parquet(
            a=pa.array(y).dictionary_encode(), x=pa.array(numbers), y=pa.array(y).dictionary_encode()
        ),
        "far dates": _parquet(
            a=pa.array([2**62, 5] * (n // 2), pa.timestamp("ms")), x=pa.array(numbers), y=pa.array(y)
        ),
        "zoned dates": _parquet(a=pa.array(range(n), pa.timestamp("us", "Europe/Berlin")), y=pa.array(y)),
        "times": _parquet(a=pa.array(range(n), pa.time64("us")), x=pa.array(numbers), y=pa.array(y)),
        "durations": _parquet(a=pa.array(range(n), pa.duration("s")), y=pa.array(y)),
        "unsigned": _parquet(a=pa.array([2**64 - 1, 5] * (n // 2), pa.uint64()), y=pa.array(y)),
        "half floats": _parquet(a=pa.array(np.arange(n, dtype=np.float16)), y=pa.array(y)),
        "bool labels": _parquet(a=pa.array(numbers), y=pa.array([True, False] * (n // 2))),
        "date labels": _parquet(a=pa.array(numbers), y=pa.array([1, 2] * (n // 2), pa.date32())),
        "float labels": _parquet(a=pa.array(numbers), y=pa.array([0.5, float("nan")] * (n // 2))),
        "infinite labels": _parquet(a=pa.array(numbers), y=pa.array([float("inf"), 1.0] * (n // 2))),
        "index label": _frame(pd.DataFrame({"a": numbers}, index=pd.Index(y, name="y"))),
        "two indexes": _frame(
            pd.DataFrame({"a": numbers}, index=pd.MultiIndex.from_arrays([y, numbers], names=["y", "k"]))
        ),
        "half a file": whole[: len(whole) // 2],
        "no parquet": b"PAR1" + rng.randbytes(80) + b"PAR1",
        "text as parquet": b"a,y\n1,no\n",
    }
    return tables | {f"parquet {name}": (".parquet", content) for name, content in kinds.items()}


def mutated(rng, content):
    """`content` with a few bytes changed, cut out, doubled or added."""
    raw = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(max(len(raw), 1))
        kind = rng.randrange(5)
        if kind == 0 and raw:
            raw[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del raw[at : at + rng.randint(1, 30)]
        elif kind == 2:
            raw[at:at] = raw[at : at + rng.randint(1, 60)]
        elif kind == 3:
            raw[at:at] = rng.choice([b'"', b",", b"\n", b"\r", b"\0", b"\xff", b";", b"'", b"=", b"1e999", b"nan"])
        else:
            del raw[at:]
    return bytes(raw)


def changed_json(rng, text):
    """A JSON text with one value replaced or removed, cut, or nested without end."""
    kind = rng.randrange(6)
    if kind == 0:
        return mutated(rng, text.encode()).decode("utf-8", "replace")
    if kind == 1:
        return "[" * 100_000
    value = json.loads(text)
    places = []

    def collect(item):
        for key, inner in list(
            item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
        ):
            places.append((item, key))
            collect(inner)

    collect(value)
    item, key = rng.choice(places)
    if kind == 2 and isinstance(item, dict):
        del item[key]
    else:
        item[key] = rng.choice([None, 7, -1.5, "x", "", [], {}, [[]], {"a": {}}, True, 1e308, "<script>", "\0", 10**30])
    return json.dumps(value)


def changed_store(rng, path):
    """Damage an SQLite store: bytes, or values of other types in a table."""
    if rng.random() < 0.5:
        raw = bytearray(path.read_bytes())
        for _ in range(rng.randint(1, 200)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        path.write_bytes(raw if rng.random() < 0.8 else raw[: rng.randrange(len(raw))])
        return
    place = rng.choice(
        [
            ("traces", "data"),
            ("results", "value"),
            ("results", "metric"),
            ("cells", "seconds"),
            ("cells", "status"),
            ("runs", "info"),
            ("runs", "seconds"),
            ("results", "config"),
        ]
    )
    value = rng.choice([b"\0\1", "x", 3, 1e400, "<script>alert(1)</script>", "{", b"x\x9c" + rng.randbytes(20), ""])
    with sqlite3.connect(path) as store:
        store.execute(f"UPDATE {place[0]} SET {place[1]} = ?", (value,))
    if rng.random() < 0.2:
        with sqlite3.connect(path) as store:
            store.execute(f"DROP TABLE {place[0]}")


def words(rng, n):
    """Random letters, for names that nothing else has."""
    return "".join(rng.choice(string.ascii_lowercase) for _ in range(n))


def seeded(seed):
    """The one source of randomness."""
    return random.Random(seed)


def invoke(arguments):
    """Run a command in this process; (exit code, stdout, stderr, what was wrong with how it ended)."""
    from typer.testing import CliRunner

    from floral_learn.app import make_app

    result = CliRunner().invoke(make_app(), [str(a) for a in arguments])
    problem = ""
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        problem = f"{type(result.exception).__name__}: {result.exception}"
    elif "Traceback" in result.output:
        problem = "a traceback"
    elif result.exit_code == 2 and len(said := [s for s in result.stderr.splitlines() if not CLOCK.match(s)]) != 1:
        problem = f"{len(said)} lines of error"
    elif "FLORAL_DEBUG" in result.stderr or "unexpected keyword" in result.stderr:
        problem = f"no words for it: {result.stderr.strip()}"
    elif result.exit_code not in (0, 1, 2):
        problem = f"exit code {result.exit_code}"
    elif "Warning" in result.stderr:
        problem = "a warning of a library"
    return result.exit_code, result.stdout, result.stderr, problem


class Count:
    """What happened in one part."""

    def __init__(self):
        self.done, self.refused, self.failures = 0, 0, []

    def fail(self, what):
        self.failures.append(what)

    @property
    def tried(self):
        return self.done + self.refused + len(self.failures)


def table_with_a_copy(rng):
    """A table whose column `copy` repeats the label `y`, in one of many kinds of cell; (suffix, content)."""
    import datetime
    import decimal

    import pyarrow as pa

    n = rng.randint(30, 60)
    codes = [rng.randrange(2) for _ in range(n)]
    codes[:2] = [0, 1]
    numbers = [rng.gauss(0, 1) for _ in range(n)]
    if rng.random() < 0.5:
        sep = rng.choice([",", ";", "\t"])
        base = rng.randrange(10 ** rng.randint(1, 18))
        comma = rng.randrange(1000)
        pairs = [
            ("True", "False"), ("yes", "no"), (str(base), str(base + 2)), (f"0{base}", f"0{base + 1}"),
            (f"{base}.10", f"{base}.20"), (f"{base}e3", f"{base + 1}e3"),
            ("2020-01-01T00:00:00+02:00", "2021-01-01T00:00:00+02:00"),
            (f"{base} days", f"{base + 1} days"), ("'=a", "=b"), (words(rng, 5), words(rng, 6)),
        ]  # fmt: skip
        if sep != ",":
            pairs += [(f"{comma},0", f"{comma + 1},0"), ("1.000", "2.000")]
        one, other = rng.choice(pairs)
        lines = [sep.join(("x", "copy", "y"))]
        for number, code in zip(numbers, codes, strict=True):
            label = other if code else one
            lines.append(sep.join((f"{number:.3f}".replace(".", "," if sep == ";" else "."), label, label)))
        return (".tsv" if sep == "\t" else ".csv"), ("\n".join(lines) + "\n").encode()
    shift = rng.randrange(2 ** rng.randint(1, 62))
    day = rng.randint(1, 20)
    kinds = [
        pa.array([bool(c) for c in codes]),
        pa.array([c + shift for c in codes]),
        pa.array([c + shift for c in codes], pa.uint64()),
        pa.array(["ab"[c] for c in codes]),
        pa.array(["ab"[c] for c in codes]).dictionary_encode(),
        pa.array([decimal.Decimal(f"{shift % 1000}.{c}5") for c in codes]),
        pa.array([datetime.date(2020, 1, day + c) for c in codes]),
        pa.array([datetime.time(day + c) for c in codes]),
        pa.array([datetime.datetime(2020, 1, day + c) for c in codes]),
        pa.array(
            [datetime.datetime(2020, 1, day + c) for c in codes],
            pa.timestamp("us", tz=rng.choice(["UTC", "Asia/Tokyo"])),
        ),
        pa.array([datetime.timedelta(day + c) for c in codes]),
        pa.array(np.array(codes, np.float32) + np.float32(day / 10)),
        pa.array(np.array(codes, np.float16) + np.float16(day)),
    ]
    column = rng.choice(kinds)
    return ".parquet", _parquet(x=pa.array(numbers), copy=column, y=column)


def strange_request(rng):
    """An ASGI scope and a body that the page would not send."""
    good = rng.random() < 0.7  # of the token and the headers: else nothing gets past the guard
    paths = [
        "api/answer", "api/answer", "api/answer", "api/undo", "api/question", "api/state", "api/about", "", "page.js",
        "image/0/0", "image/" + "9" * 5000 + "/0", "image/-1/x", "file/../../etc/passwd", "file/answers.sqlite",
        "file/model.skops", "../", "%00", "api/answer/" * 50, "\u0663", "x" * 3000,
    ]  # fmt: skip
    path = rng.choice(paths)
    method = rng.choice(["GET", "POST", "POST", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "\u00fc"])
    if path in ("api/undo", "api/answer") and rng.random() < 0.7:
        method = "POST"
    odd = [
        "\ud800" * 9,
        "x" * 500,
        "",
        None,
        -1,
        10**400,
        1.5,
        True,
        [],
        {},
        "a request",
        "line\nline line",
        2**63,
        "label",
    ]
    sent = {name: rng.choice(odd) for name in ("reviewer", "request", "kind", "label", "seen")}
    sent["row"] = rng.choice([-1, 10**6, None, "x", 10**400, 1.5, True, 2**63])
    if rng.random() < 0.5:
        sent |= {"reviewer": "ann", "request": "a request", "kind": rng.choice(["label", "unsure", "skip", "x"])}
    body = rng.choice(
        [
            json.dumps(sent).encode(),
            json.dumps(sent).encode(),
            b"[" * rng.randint(10, 60_000),
            b'{"a":' * 9000,
            b"",
            b"nan",
            b"\xff\xfe",
            b'{"row":' + b"9" * 5000 + b"}",
            rng.randbytes(50),
            b" " * 70_000,
            b"[]",
            b"null",
        ]
    )
    headers = [(b"host", b"localhost:80"), (b"origin", b"http://localhost:80"), (b"content-type", b"application/json")]
    headers.append((b"content-length", str(len(body)).encode()))
    if not good:
        extra = [
            (b"host", b"evil"), (b"origin", b"null"), (b"transfer-encoding", b"chunked"), (b"content-length", b"5"),
            (b"content-length", b"9" * 5000), (b"sec-fetch-site", b"cross-site"), (b"content-type", b"text/plain"),
            (b"\xff\xff", b"\xff"),
        ]  # fmt: skip
        headers = rng.sample(headers, rng.randint(0, 4)) + rng.sample(extra, rng.randint(1, 3))
    token = "secret" if good or rng.random() < 0.5 else rng.choice(["", "Secret", "secre", "\ud7ff", "secret\0"])
    query = rng.choice([b"", b"reviewer=ann", b"reviewer=%ff", b"reviewer=" + b"x" * 5000, b"=&&&%"])
    scope = {
        "type": "http", "method": method, "path": f"/{token}/{path}", "raw_path": b"/", "query_string": query,
        "headers": headers, "client": ("127.0.0.1", 5), "server": ("localhost", 80), "scheme": "http",
        "root_path": "", "http_version": "1.1", "leaves": rng.random() < 0.1,
    }  # fmt: skip
    return scope, body
