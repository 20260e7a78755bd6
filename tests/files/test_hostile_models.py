"""Model files by an enemy, and by accident: refused with ModelFileError, or the same predictions; nothing runs."""

import copy
import io
import json
import random
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from floral_learn import LabelNoiseSVC, load, save
from floral_learn.files import ModelFileError
from floral_learn.files.model_archive import sealed

X, Y = make_moons(60, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def model():
    return make_pipeline(StandardScaler(), LabelNoiseSVC()).fit(X, Y)


@pytest.fixture(scope="module")
def raw(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.skops"
    save(model, path)
    return path.read_bytes()


def members(raw):
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(files, compression=zipfile.ZIP_STORED):
    """A whole archive with a digest that fits: what an enemy would write."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return sealed(stream.getvalue())


def with_schema(raw, change):
    files = members(raw)
    schema = json.loads(files["schema.json"])
    files["schema.json"] = json.dumps(change(schema) or schema).encode()
    return packed(files)


def refused(tmp_path, content, match, **options):
    path = tmp_path / "hostile.skops"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path, **options)
    assert str(path) in str(caught.value)


def test_a_walk_through_methods_to_os_system_is_refused(raw, tmp_path):
    def walk(schema):
        claim = {
            "__module__": "floral_learn.baselines.ln_svm",
            "__class__": "LabelNoiseSVC",
            "__loader__": "MethodNode",
        }
        node = schema["content"]["model"]
        for number, name in enumerate(("ctypes", "_ctypes", "_os", "system")):
            node = claim | {"content": {"func": name, "obj": node}, "__id__": 10_000 + number}
        schema["content"]["model"] = node

    refused(tmp_path, with_schema(raw, walk), "not trusted: .*LabelNoiseSVC as MethodNode, which could run code")


@pytest.mark.parametrize("loader", ["MethodNode", "OperatorFuncNode", "PartialNode", "ReduceNode", "NoNode", 7, None])
def test_nodes_that_could_call_something_are_refused_whatever_they_claim(raw, tmp_path, loader):
    def claim(schema):
        schema["content"]["model"]["__loader__"] = loader

    refused(tmp_path, with_schema(raw, claim), "not trusted")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("floral_learn.files.atomic_files", "write_atomically"),
        ("floral_learn.files.persistence", "Path"),
        ("floral_learn.files.persistence", "os"),
        ("floral_learn", "load"),
        ("floral_learn.baselines.ln_svm", "SVC"),
        ("floral_learn.baselines.ln_svm", "LabelNoiseSVC.fit"),
        ("os", "system"),
        ("builtins", "eval"),
        ("subprocess", "Popen"),
    ],
)
def test_our_names_stand_for_our_classes_only(raw, tmp_path, module, name):
    def claim(schema):
        schema["content"]["model"] |= {"__module__": module, "__class__": name}

    refused(tmp_path, with_schema(raw, claim), "not trusted")


def test_a_random_generator_cannot_name_a_function_of_numpy(tmp_path):
    save({"model": {"rng": np.random.default_rng(0)}}, tmp_path / "rng.skops")
    content = (tmp_path / "rng.skops").read_bytes()

    def rename(schema):
        text = json.dumps(schema)
        assert '\\"PCG64\\"' in text
        return json.loads(text.replace('\\"PCG64\\"', '\\"seed\\"'))

    refused(tmp_path, with_schema(content, rename), "unknown random generator")


def test_sizes_are_limited_before_anything_is_unpacked(raw, tmp_path, monkeypatch):
    files = members(raw)
    array = next(name for name in files if name.endswith(".npy"))
    stream = io.BytesIO()
    np.save(stream, np.zeros(4_000_000))
    bomb = packed(files | {array: stream.getvalue()}, zipfile.ZIP_DEFLATED)
    assert len(bomb) < 200_000
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("an array was unpacked"))
    refused(tmp_path, bomb, r"bytes when unpacked, more than the limit of 1,000,000.*max_bytes=", max_bytes=1_000_000)
    many = files | {f"extra{i}": b"" for i in range(600)}
    refused(tmp_path, packed(many), r"members, more than the limit of 488.*max_bytes=", max_bytes=2_000_000)
    schema = files | {"schema.json": files["schema.json"] + b" " * 100_000}
    refused(tmp_path, packed(schema), r"bytes of schema, more than the limit of 65,536", max_bytes=2_000_000)
    refused(tmp_path, bomb, "more than max_bytes=10 bytes", max_bytes=10)


def test_an_array_must_be_as_large_as_its_header_says(raw, tmp_path):
    files = members(raw)
    array = next(name for name in files if name.endswith(".npy"))
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    refused(tmp_path, packed(files | {array: stream.getvalue()}), "announces 8,000,000,000,000,000 bytes and holds 0")
    np.save(stream := io.BytesIO(), np.array([{}], dtype=object), allow_pickle=True)
    refused(tmp_path, packed(files | {array: stream.getvalue()}), "its array")
    refused(tmp_path, packed(files | {array: b"\x80\x04cos\nsystem\n."}), "cannot be read")


def test_an_archive_in_an_archive_is_limited_too(tmp_path):
    inner = io.BytesIO()
    sparse.save_npz(inner, sparse.csr_matrix(np.eye(3)))
    bomb = {**members(inner.getvalue()), "data.npy": b"\0" * 5_000_000}
    save({"model": sparse.csr_matrix(np.eye(3))}, tmp_path / "sparse.skops")
    files = members((tmp_path / "sparse.skops").read_bytes())
    name = next(name for name in files if name.endswith(".npz"))
    content = packed(files | {name: packed(bomb, zipfile.ZIP_DEFLATED)}, zipfile.ZIP_DEFLATED)
    refused(tmp_path, content, "bytes in .*npz, more than the limit", max_bytes=1_000_000)


def test_a_deep_schema_is_one_error(raw, tmp_path):
    def deepen(schema):
        node = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": []}
        for _ in range(300):
            node = node | {"content": [node]}
        schema["content"]["model"] = node

    refused(tmp_path, with_schema(raw, deepen), "nested more than 150 levels")
    files = members(raw)
    refused(tmp_path, packed(files | {"schema.json": b"[" * 50_000 + b"]" * 50_000}), "not a floral-learn model file")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda s: s["content"].pop("floral_learn") and None, "not a floral-learn model file"),
        (lambda s: s["content"]["format"].update(content="null"), "its stamp has no version"),
        (lambda s: s["content"]["floral_learn"].update(content="3"), "its stamp has no version"),
        (lambda s: s.update(protocol=0), "not one that floral-learn writes"),
        (lambda s: s.pop("protocol") and None, "not one that floral-learn writes"),
    ],
    ids=["no version", "null format", "number as version", "old protocol", "no protocol"],
)
def test_a_stamp_that_is_none_is_one_error(raw, tmp_path, change, match):
    def apply(schema):
        change(schema)

    content = with_schema(raw, apply)
    refused(tmp_path, content, match)


def test_an_estimator_without_a_parameter_is_refused(tmp_path):
    broken = LabelNoiseSVC().fit(X, Y)
    del broken.kernel
    path = tmp_path / "m.skops"
    import skops.io

    path.write_bytes(skops.io.dumps({"format": 1, "floral_learn": "0.1.0", "model": broken}))
    with pytest.raises(ModelFileError, match="its LabelNoiseSVC has no kernel"):
        load(path)


def test_accidents_are_refused_or_change_nothing(model, raw, tmp_path):
    """300 flipped bits, cut ends and swapped blocks, fixed seed."""
    rng, path = random.Random(0), tmp_path / "m.skops"
    expected = model.decision_function(X)
    refusals = 0
    for number in range(300):
        content = bytearray(raw)
        if number % 3 == 0:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        elif number % 3 == 1:
            del content[rng.randrange(len(content)) :]
        else:
            begin = rng.randrange(len(content))
            content[begin : begin + 50] = rng.randbytes(50)
        path.write_bytes(content)
        try:
            back = load(path)
        except ModelFileError:
            refusals += 1
        else:
            np.testing.assert_array_equal(back.decision_function(X), expected)
    assert refusals > 290


def test_changed_schemas_raise_one_type_of_error(raw, tmp_path):
    """150 changes of one value of the schema, sealed again: a model, or ModelFileError; never another exception."""
    rng, path = random.Random(1), tmp_path / "m.skops"
    original = json.loads(members(raw)["schema.json"])
    values = [None, 7, -1, "x", "", [], {}, True, 1e308, "ObjectNode", "builtins", "[[[", "../../etc/passwd", "0.npy"]
    for _ in range(150):
        schema = copy.deepcopy(original)
        places = []

        def collect(item, places=places):
            keys = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
            for key, value in list(keys):
                places.append((item, key))
                collect(value)

        collect(schema)
        item, key = rng.choice(places)
        if rng.random() < 0.3 and isinstance(item, dict):
            del item[key]
        else:
            item[key] = rng.choice(values)
        path.write_bytes(packed(members(raw) | {"schema.json": json.dumps(schema).encode()}))
        try:
            load(path)
        except ModelFileError:
            pass
        except FileNotFoundError:
            pytest.fail("a name inside the archive reached the file system")
