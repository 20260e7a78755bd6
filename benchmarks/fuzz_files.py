"""Attacks on files that are loaded, on sets of files, on copies of the label and on scales: parts of fuzz.py.

Whatever could die in compiled code is loaded and used in a child process; a child that a signal ended is a failure.
"""

import contextlib
import copy
import io
import json
import os
import pickle
import shutil
import signal
import sqlite3
import warnings
import zipfile

import fuzz_cases as cases
import numpy as np
from fuzz_cases import Count
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from floral_learn import FloralClassifier, LabelReview, load, save
from floral_learn.app.tables import read_table
from floral_learn.base import ModelFileError
from floral_learn.base.files import unfinished, write_set

X, Y = make_moons(50, noise=0.2, random_state=0)
IN_A_CHILD = 40  # attacks per process
SECONDS = 120  # for each of these processes


def members(raw):
    """Name -> content of a zip."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(files, compression=zipfile.ZIP_STORED):
    """A zip without a digest."""
    with zipfile.ZipFile(stream := io.BytesIO(), "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def npy(array):
    """An array as a file."""
    np.save(stream := io.BytesIO(), array, allow_pickle=False)
    return stream.getvalue()


def in_children(count, attacks, use):
    """Count how `use(content)` ends for each (what, content), some of them per process.

    `use` returns "refused" or "done"; whatever it raises, and a process that a signal ended, is a failure.
    """
    attacks = list(attacks)
    for begin in range(0, len(attacks), IN_A_CHILD):
        part = attacks[begin : begin + IN_A_CHILD]
        while part:
            ended, status = _child(part, use)
            for (what, _), outcome in zip(part, ended, strict=False):
                if outcome == "refused":
                    count.refused += 1
                elif outcome == "done":
                    count.done += 1
                else:
                    count.fail(f"{what}: {outcome}")
            part = part[len(ended) :]
            if part and status:  # the first that has no outcome ended the process
                count.fail(f"{part[0][0]}: the process ended with {status}")
                part = part[1:]


def _child(part, use):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:  # pragma: no cover - the child
        os.close(read)
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        signal.alarm(SECONDS)
        with os.fdopen(write, "wb") as stream:
            for _, content in part:
                try:
                    outcome = use(content)
                except BaseException as error:
                    outcome = f"{type(error).__name__}: {str(error)[:150]}"
                pickle.dump(outcome, stream)
                stream.flush()
        os._exit(0)
    os.close(write)
    ended = []
    with os.fdopen(read, "rb") as stream, contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:
            ended.append(pickle.load(stream))  # of our own child
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return ended, "" if code == 0 else signal.Signals(-code).name if code < 0 else f"exit code {code}"


def retyped(rng, array):
    """The same array with other values, another type, or another shape."""
    kind = rng.randrange(12)
    if kind == 0:
        return np.full(array.shape, 2**40 if array.dtype.kind in "iu" else 1e300).astype(array.dtype)
    if kind == 1:
        return np.full(array.shape, -1000).astype(array.dtype) if array.dtype.kind in "if" else np.atleast_1d(array)[:0]
    if kind == 2:
        return np.full(array.shape, np.nan)
    if kind == 3:
        return np.repeat(np.atleast_1d(array), rng.randint(2, 9), axis=0)
    if kind == 4:
        return np.atleast_1d(array)[: rng.randint(0, 3)]
    if kind == 5:
        return np.full(array.shape, "abc")
    if kind == 6:
        return np.array(rng.choice([3.0, -1, 2**62, np.inf]))
    if kind == 7:
        return array.astype("i4" if array.dtype.kind == "f" else "f8") if array.dtype.kind in "iuf" else array.ravel()
    if kind == 8:
        return np.ones(array.shape, bool)
    if kind == 9:
        return array.T.copy() if array.ndim > 1 else np.atleast_1d(array)[:, None]
    if kind == 10:
        return np.zeros((0, *array.shape), array.dtype)
    changed = np.array(array, copy=True).reshape(-1)
    if changed.size and changed.dtype.kind in "iuf":
        changed[rng.randrange(changed.size)] = rng.choice([-1, 10**6, 0])
    return changed.reshape(array.shape)


def retyped_archive(rng, raw):
    """An archive with one array changed, sealed; in half of the cases one inside a sparse matrix where there is one."""
    files = members(raw)
    nested = [name for name in files if name.endswith(".npz")]
    if nested and rng.random() < 0.5:
        name = rng.choice(nested)
        inner = members(files[name])
        part = rng.choice(sorted(set(inner) - {"format.npy", "_is_array.npy"}))
        inner[part] = npy(retyped(rng, np.load(io.BytesIO(inner[part]))))
        return packed(files | {name: packed(inner)})
    arrays = [name for name in files if name.endswith(".npy")]
    if len(arrays) > 1 and rng.random() < 0.1:
        one, other = rng.sample(arrays, 2)
        return packed(files | {one: files[other], other: files[one]})
    name = rng.choice(arrays)
    return packed(files | {name: npy(retyped(rng, np.load(io.BytesIO(files[name]))))})


def rewritten(rng, raw):
    """An archive with its schema changed, sealed."""
    files = members(raw)
    return packed(files | {"schema.json": cases.changed_json(rng, files["schema.json"].decode()).encode()})


def small_models():
    """Name -> (model, rows) of every kind whose prediction runs compiled code on stored numbers, and of our own."""
    rows, texts = sparse.csr_matrix(X), [f"word{i % 7} other{i % 3}" for i in range(50)]
    quick = {"n_rounds": 20, "random_state": 0}
    return {
        "floral": (FloralClassifier(**quick).fit(X, Y), X),
        "floral, sparse": (FloralClassifier(**quick).fit(rows, Y), rows),
        "floral, three classes": (FloralClassifier(**quick).fit(X, np.arange(50) % 3), X),
        "SVC": (SVC().fit(X, Y), X),
        "SVC, sparse": (SVC().fit(rows, np.arange(50) % 3), rows),
        "SVC, probability": (SVC(kernel="precomputed").fit(X @ X.T, Y), X @ X.T),
        "neighbours": (KNeighborsClassifier(algorithm="brute").fit(X, Y), X),
        "one-hot": (
            make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()).fit(X.round(), Y),
            X.round(),
        ),
        "words": (make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, Y), texts),
        "pipeline": (make_pipeline(StandardScaler(), FloralClassifier(**quick)).fit(X, Y), X),
    }


def files(rng, scale, work):
    """Model files: arrays of other types and sizes, schemas rewritten, bombs."""
    path = work / "attack.skops"
    models = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # twenty rounds are few
        made = small_models()
    for name, (model, rows) in made.items():
        save(model, path)
        models[name] = (path.read_bytes(), rows)

    def use_model(attack):
        content, rows = attack
        path.write_bytes(content)
        try:
            model = load(path)
        except ModelFileError:
            return "refused"
        with contextlib.suppress(Exception):  # a wrong model may say so in Python
            model.predict(rows)
        return "done"

    def attacks(change, number):
        names = sorted(models)
        for k in range(max(20, int(number * scale))):
            raw, rows = models[names[k % len(names)]]
            yield f"{names[k % len(names)]} {k}", (change(rng, raw), rows)

    confused, schemas, bombs = Count(), Count(), Count()
    in_children(confused, attacks(retyped_archive, 1500), use_model)
    in_children(schemas, attacks(rewritten, 1000), use_model)
    in_children(bombs, list(_bombs(rng, models, max(20, int(150 * scale)))), _use_bomb(path))
    return {
        "model files, arrays of other types and sizes, loaded and used": confused,
        "model files, schema rewritten, loaded and used": schemas,
        "files that unpack to more than the limit": bombs,
    }


def _bombs(rng, models, number):
    """Archives that unpack to more than two million bytes, in one of three ways."""
    for k in range(number):
        raw, _ = models[rng.choice(["floral", "floral, sparse"])]
        files, many = members(raw), rng.randint(3, 30)
        schema = json.loads(files["schema.json"])
        if k % 3 == 0:
            files |= {f"bomb{i}.npy": npy(np.zeros(2_200_000 // 8 // many + 1)) for i in range(many)}
        elif k % 3 == 1:
            inner = packed({f"{part}.npy": npy(np.zeros(60_000, np.int32)) for part in ("data", "indices", "indptr")})
            files |= {f"bomb{i}.npz": inner for i in range(many + 1)}
        else:
            files["bomb.npy"] = npy(np.zeros(2_200_000 // 8 // many + 1))
            node = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode", "type": "numpy"}
            named = [node | {"file": "bomb.npy", "__id__": 10**7 + i} for i in range(many)]
            listed = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": named}
            schema["content"]["extra"] = listed
            files["schema.json"] = json.dumps(schema).encode()
        yield f"bomb {k}", (packed(files, zipfile.ZIP_DEFLATED))


def _use_bomb(path):
    def use(content):
        path.write_bytes(content)
        try:
            load(path, max_bytes=2_000_000)
        except ModelFileError:
            return "refused"
        return "it was loaded"

    return use


def reviews(rng, scale, work):
    """Review files, loaded and asked for questions."""
    path, review = work / "review.skops", LabelReview(X, Y, random_state=0)
    review.answer([1, 2, 3], [Y[1], Y[2], 1 - Y[3]])
    review.save(path)
    raw = path.read_bytes()

    def use(content):
        path.write_bytes(content)
        try:
            back = LabelReview.load(path)
        except ModelFileError:
            return "refused"
        back.ask(2)
        back.guarantee()
        return "done"

    accidents, changes = Count(), Count()
    in_children(accidents, [(f"bytes {k}", cases.mutated(rng, raw)) for k in range(max(20, int(600 * scale)))], use)
    made = [(retyped_archive if k % 2 else rewritten)(rng, raw) for k in range(max(20, int(500 * scale)))]
    in_children(changes, [(f"change {k}", content) for k, content in enumerate(made)], use)
    return {"review files, bytes changed": accidents, "review files, values and schema changed": changes}


def stores(rng, scale, work):
    """Stores of answers with other values, tables, views and bytes, opened as `floral review` opens them."""
    from floral_learn.app.review_page.store import FILE, KINDS, AnswerStore, StoreError

    count, about, rows = Count(), {"another label column": "y"}, 30
    store = AnswerStore(work / "store", about=about)
    store.put("secret", json.dumps({"order": list(range(rows)), "seed": 5, "random_state": None}).encode())
    store.put("port", b"8000")
    for k in range(8):
        kind = KINDS[k % 3]
        label = "yes" if kind == "label" else None
        store.add(request=f"request {k}", row=k, kind=kind, label=label, reviewer="ann")
    store.close()
    raw = (work / "store" / FILE).read_bytes()
    values = [None, -1, 10**6, 2**62, 1.5, "x", "", "maybe", b"\xff", b"", "[" * 5000, '{"order": []}', "yes"]
    places = [
        ("answers", "row"),
        ("answers", "kind"),
        ("answers", "label"),
        ("answers", "reviewer"),
        ("answers", "time"),
    ]
    places += [("answers", "seen"), ("undone", "answer"), ("about", "value"), ("about", "key"), ("answers", "request")]

    def use(content):
        folder = work / "attacked"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / FILE).write_bytes(content)
        try:
            opened = AnswerStore(folder, about=about)
            try:
                opened.check_answers(rows, {"yes", "no"})
                opened.secret(rows)
                opened.port()
                opened.add(request="another", row=20, kind="unsure", label=None, reviewer="bob")
            finally:
                opened.close()
        except StoreError:
            return "refused"
        return "done"

    def changed(k):
        if k % 4 == 0:
            return cases.mutated(rng, raw)
        path = work / "made.sqlite"
        path.write_bytes(raw)
        base = sqlite3.connect(path, isolation_level=None)
        with contextlib.suppress(sqlite3.Error):
            base.execute("PRAGMA ignore_check_constraints = ON")
            if k % 4 == 1:
                name = rng.choice(["answers", "undone", "about"])
                base.execute(f"ALTER TABLE {name} RENAME TO other{rng.randrange(9)}")
                endless = "WITH RECURSIVE c(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM c) SELECT a, a, a FROM c"
                base.execute(f"CREATE VIEW {name} AS {endless}")
            else:
                table, column = rng.choice(places)
                base.execute(
                    f"UPDATE {table} SET {column} = ? WHERE rowid % ? = 0", (rng.choice(values), rng.randint(1, 3))
                )
                base.execute(f"UPDATE {table} SET {column} = ?", (rng.choice(values),)) if table == "about" else None
        base.close()
        return path.read_bytes()

    in_children(count, [(f"store {k}", changed(k)) for k in range(max(20, int(800 * scale)))], use)
    return {"stores of answers, values, tables and bytes changed": count}


def sets(rng, scale, work):
    """A process that ends before any of its renames: files are old or new, and a mixed set is told."""
    count = Count()
    for k in range(max(10, int(250 * scale))):
        folder = work / f"set{k}"
        names = [f"{i}.csv" for i in range(rng.randint(2, 6))]
        old, new = ({folder / name: f"{age} {name}" for name in names} for age in ("old", "new"))
        if rng.random() < 0.8:
            folder.mkdir()
            if rng.random() < 0.8:
                write_set(old, "floral fuzz")
        _ended_at(rng.randrange(4 * len(names)), lambda new=new: write_set(new, "floral fuzz"))
        found = {path: path.read_text() for path in new if path.exists()}
        whole = all(found.get(p) == new[p] for p in new) or all(found.get(p) == old[p] for p in old)
        if any(text not in (old[path], new[path]) for path, text in found.items()):
            count.fail(f"set {k}: half a file")
        elif found and not whole and unfinished(next(iter(found))) is None:
            count.fail(f"set {k}: mixed, and nobody is told")
        else:
            write_set(new, "floral fuzz") if folder.exists() else None
            count.done += whole
            count.refused += not whole
        shutil.rmtree(folder, ignore_errors=True)
    return {"processes ended between two renames (mixed sets are told)": count}


def _ended_at(number, call):
    pid = os.fork()
    if pid == 0:  # pragma: no cover - the child
        made = 0

        def counted(function):
            def step(*args, **kwargs):
                nonlocal made
                if made == number:
                    os._exit(9)
                made += 1
                return function(*args, **kwargs)

            return step

        try:
            for name in ("replace", "rename", "link", "unlink"):
                setattr(os, name, counted(getattr(os, name)))
            call()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def copies(rng, scale, work):
    """Tables with a copy of the label in any kind of cell: it must not become a feature."""
    count = Count()
    for k in range(max(20, int(1000 * scale))):
        suffix, content = cases.table_with_a_copy(rng)
        path = work / f"copy{suffix}"
        path.write_bytes(content)
        try:
            table = read_table(path, label="y")
        except ValueError:
            count.refused += 1
            continue
        except Exception as error:
            count.fail(f"table {k}: {error!r}"[:200])
            continue
        if "copy" in table.features.columns or not any("copy" in note for note in table.notes):
            count.fail(f"table {k} ({suffix}): the copy is a feature")
        else:
            count.done += 1
    return {"copies of the label in other kinds of cells": count}


def numbers(rng, scale, work):
    """Fits at scales from 1e-300 to 1e300: predictions, or an error in words; no warning of numpy."""
    count = Count()
    for _ in range(max(20, int(400 * scale))):
        factor = 10.0 ** rng.uniform(-300, 300)
        options = rng.choice([{}, {"budget": 0}, {"kernel": "linear"}, {"kernel": "poly"}, {"kernel": "laplacian"}])
        rows = X * factor + (rng.choice([0, 1e3, 1e9]) * factor)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            try:
                scores = FloralClassifier(n_rounds=15, random_state=0, **options).fit(rows, Y).decision_function(rows)
            except ValueError as error:
                count.refused += 1 if str(error) else 0
                continue
            except Exception as error:
                count.fail(f"{options} at {factor:.0e}: {error!r}"[:200])
                continue
        if np.isfinite(scores).all():
            count.done += 1
        else:
            count.fail(f"{options} at {factor:.0e}: scores are not finite")
    return {"fits at scales from 1e-300 to 1e300": count}


def requests(rng, scale, work):
    """Requests to the page that no browser sends: one answer below 500 each, and nothing is stored."""
    import asyncio

    from floral_learn.app.review_page.guard import Guard
    from floral_learn.app.review_page.server import make_app
    from floral_learn.app.review_page.session import ReviewSession
    from floral_learn.base.encoder import TableEncoder

    (work / "t.csv").write_bytes(cases.good_table(cases.seeded(0)))
    table = read_table(work / "t.csv", label="y")
    session = ReviewSession(table, TableEncoder(), path=work / "t.csv", out=work / "out", options={}).start()
    app = make_app(session, title="t.csv", reviewer="ann", folder=work / "out")
    guard, count = Guard(app, token="secret", port=80, hosts=["localhost"]), Count()
    try:
        for k in range(max(50, int(5000 * scale))):
            scope, body = cases.strange_request(rng)
            status = asyncio.run(_answered(guard, copy.deepcopy(scope), body))
            if status is None or status >= 500:
                count.fail(f"request {k}: {status} for {scope['method']} {scope['path'][:60]!r} {body[:60]!r}")
            else:
                count.done += status < 400
                count.refused += status >= 400
        if session.store.active():
            count.fail("an answer was stored")
    finally:
        session.close()
    return {"requests to the page": count}


async def _answered(guard, scope, body):
    """The status of the reply to one request."""
    parts = [body[:10], body[10:]] if len(body) > 10 else [body]
    messages = [{"type": "http.request", "body": p, "more_body": i + 1 < len(parts)} for i, p in enumerate(parts)]
    if scope.pop("leaves"):
        messages = [*messages[:-1], {"type": "http.disconnect"}]
    found = []

    async def receive():
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message):
        if message["type"] == "http.response.start":
            found.append(message["status"])

    await guard(scope, receive, send)
    return found[0] if len(found) == 1 else None


PARTS = {
    "files": files,
    "reviews": reviews,
    "stores": stores,
    "sets": sets,
    "copies": copies,
    "numbers": numbers,
    "requests": requests,
}
