"""Model files by an enemy, and by accident: refused with ModelFileError, or the same predictions; nothing runs."""

import copy
import io
import json
import random
import re
import zipfile

import numpy as np
import pytest
import skops.io
from archives import members, packed, places
from refusals import refuses
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.datasets import make_moons
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier, HistGradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, OneClassSVM

import floral_learn
from floral_learn import FloralClassifier, load, save
from floral_learn.base import ModelFileError, model_files
from floral_learn.paper import LabelNoiseSVC

X, Y = make_moons(60, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def model():
    return make_pipeline(StandardScaler(), LabelNoiseSVC()).fit(X, Y)


@pytest.fixture(scope="module")
def raw(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.skops"
    save(model, path)
    return path.read_bytes()


def with_schema(raw, change):
    files = members(raw)
    schema = json.loads(files["schema.json"])
    files["schema.json"] = json.dumps(change(schema) or schema).encode()
    return packed(files)


def refused(tmp_path, content, match, **options):
    path = tmp_path / "hostile.skops"
    path.write_bytes(content)
    said = refuses(match, load, path, **options, error=ModelFileError)
    assert str(path) in said


def test_a_walk_through_methods_to_os_system_is_refused(raw, tmp_path):
    def walk(schema):
        claim = {"__module__": "floral_learn.paper.ln_svm", "__class__": "LabelNoiseSVC", "__loader__": "MethodNode"}
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
        ("floral_learn.base.files", "write_atomically"),
        ("floral_learn.base.models", "Path"),
        ("floral_learn.base.models", "os"),
        ("floral_learn", "load"),
        ("floral_learn.paper.ln_svm", "SVC"),
        ("floral_learn.paper.ln_svm", "LabelNoiseSVC.fit"),
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

    refused(tmp_path, with_schema(content, rename), r"not trusted: numpy\.random\.seed")


def test_sizes_are_limited_before_anything_is_unpacked(raw, tmp_path, monkeypatch):
    files = members(raw)
    array = next(name for name in files if name.endswith(".npy"))
    stream = io.BytesIO()
    np.save(stream, np.zeros(4_000_000))
    bomb = packed(files | {array: stream.getvalue()}, zipfile.ZIP_DEFLATED)
    assert len(bomb) < 200_000
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("an array was unpacked"))
    refused(tmp_path, bomb, r"bytes when unpacked, more than the limit of 1,000,000.*max_bytes=", max_bytes=1_000_000)
    schema = files | {"schema.json": files["schema.json"] + b" " * 100_000}
    refused(tmp_path, packed(schema), r"bytes of schema, more than the limit of 65,536", max_bytes=2_000_000)
    refused(tmp_path, bomb, "more than max_bytes=10 bytes", max_bytes=10)


def test_an_array_must_be_as_large_as_its_header_says(raw, tmp_path):
    files = members(raw)
    array = next(name for name in files if name.endswith(".npy"))
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    refused(tmp_path, packed(files | {array: stream.getvalue()}), "damaged|more memory than there is")
    np.save(stream := io.BytesIO(), np.array([{}], dtype=object), allow_pickle=True)
    refused(tmp_path, packed(files | {array: stream.getvalue()}), "damaged")
    refused(tmp_path, packed(files | {array: b"\x80\x04cos\nsystem\n."}), "cannot be read")
    refused(tmp_path, packed(files | {array: packed({"a.npy": as_npy(X)})}), "cannot be read")


def as_npy(array):
    np.save(stream := io.BytesIO(), array, allow_pickle=False)
    return stream.getvalue()


def changed_array(raw, find, change):
    """The archive with every array changed that `find` accepts."""
    files = members(raw)
    arrays = {name: np.load(io.BytesIO(files[name])) for name in files if name.endswith(".npy")}
    changed = {name: as_npy(change(array)) for name, array in arrays.items() if find(array)}
    assert changed
    return packed(files | changed)


def changed_value(raw, key, value):
    """The archive with the number or word under `key` replaced everywhere, as a new object."""

    def replace(node):
        if isinstance(node, dict):
            for name, inner in node.items():
                if name == key and isinstance(inner, dict) and inner.get("__loader__") == "JsonNode":
                    inner |= {"content": value, "__id__": 10**9}
                replace(inner)
        elif isinstance(node, list):
            for inner in node:
                replace(inner)

    return with_schema(raw, replace)


def changed_sparse(raw, change):
    """The archive with the arrays of each sparse matrix changed by `change(dict) -> dict`."""
    files = members(raw)
    for name in [name for name in files if name.endswith(".npz")]:
        with np.load(io.BytesIO(files[name])) as arrays:
            parts = {key: np.asarray(value) for key, value in change(dict(arrays)).items()}
        files[name] = packed({f"{key}.npy": as_npy(value) for key, value in parts.items()}, zipfile.ZIP_DEFLATED)
    return packed(files, zipfile.ZIP_DEFLATED)


@pytest.fixture(scope="module")
def sparse_raw(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "sparse.skops"
    save(FloralClassifier(n_rounds=20, random_state=0).fit(sparse.csr_matrix(X), Y), path)
    return path.read_bytes()


def with_rows(count, raw):
    """A sparse model whose rows are `count` zeros, stored."""
    zeros = {"data": np.zeros(count), "indices": np.zeros(count, np.int32), "indptr": [0, count], "shape": [1, 2]}
    return changed_sparse(raw, lambda parts: parts | zeros)


def test_archives_in_the_archive_add_up_before_they_are_unpacked(sparse_raw, tmp_path, monkeypatch):
    files = members(with_rows(100_000, sparse_raw))
    first = next(name for name in files if name.endswith(".npz"))
    content = packed(files | {f"{k}.npz": files[first] for k in range(5)}, zipfile.ZIP_DEFLATED)
    assert len(content) < 100_000
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("an array was unpacked"))
    refused(tmp_path, content, "bytes when unpacked, more than the limit of 4,000,000", max_bytes=4_000_000)


def test_an_array_counts_once_for_each_object_that_names_it(raw, tmp_path):
    def name_often(schema):
        node = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode", "type": "numpy"}
        named = [node | {"file": "big.npy", "__id__": 10**6 + k} for k in range(4)]
        extra = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": named}
        schema["content"]["extra"] = extra

    content = packed(members(with_schema(raw, name_often)) | {"big.npy": as_npy(np.zeros(100_000))})
    refused(tmp_path, content, "bytes in the arrays that its objects name, more than", max_bytes=2_000_000)


def test_one_number_cannot_stand_for_two_objects(raw, tmp_path):
    """Eight lists of eight names of the list below them, 60 levels: a page of JSON that would never end."""

    def multiply(schema):
        node = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": [], "__id__": 10**6}
        for level in range(1, 60):
            again = {**node, "content": []}
            node = {**node, "content": [node] + 7 * [again], "__id__": 10**6 + level}
        schema["content"]["extra"] = node

    refused(tmp_path, with_schema(raw, multiply), "two different objects have the same number")


def test_an_object_that_is_named_twice_stays_one(tmp_path):
    shared = StandardScaler().fit(X)
    save({"model": [shared, shared, {"again": shared}]}, tmp_path / "m.skops")
    first, second, third = load(tmp_path / "m.skops")["model"]
    assert first is second is third["again"]


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p | {"indices": np.full_like(p["indices"], 2**30)},
        lambda p: p | {"indices": np.full_like(p["indices"], -5 * 10**8)},
        lambda p: p | {"indptr": np.append(p["indptr"][:-1], 10**6).astype(np.int32)},
        lambda p: p | {"indptr": p["indptr"][::-1].copy()},
        lambda p: p | {"indptr": np.full_like(p["indptr"], -3)},
        lambda p: p | {"indptr": np.append([0, 10**8], p["indptr"][2:]).astype(np.int32)},
        lambda p: p | {"data": p["data"][:1]},
        lambda p: p | {"data": np.full(p["data"].shape, "a")},
        lambda p: p | {"shape": np.array([10**9, 10**9])},
        lambda p: p | {"shape": np.array([-1, -1])},
        lambda p: p | {"format": np.array(b"dia")},
        lambda p: {key: value for key, value in p.items() if key != "indptr"},
    ],
    ids=["far", "negative", "end", "backwards", "below", "middle", "short", "text", "vast", "minus", "dia", "-"],
)
def test_sparse_rows_with_wrong_places_are_refused(sparse_raw, tmp_path, change):
    refused(tmp_path, changed_sparse(sparse_raw, change), "damaged")


def test_a_sparse_matrix_cannot_be_made_from_bare_attributes(sparse_raw, tmp_path):
    """As an object, its arrays would not be compared with each other."""

    def disguise(node):
        if isinstance(node, dict):
            if node.get("__loader__") == "SparseMatrixNode":
                node["__loader__"] = "ObjectNode"
            for value in node.values():
                disguise(value)

    refused(tmp_path, with_schema(sparse_raw, disguise), "not trusted: scipy.sparse.*csr_.* as ObjectNode")


def test_a_dtype_cannot_be_made_from_bare_attributes(raw, tmp_path):
    def claim(schema):
        schema["content"]["model"] |= {"__module__": "numpy", "__class__": "dtype"}

    refused(tmp_path, with_schema(raw, claim), "not trusted: numpy.dtype as ObjectNode")


def shapes(*wanted):
    return lambda array: array.shape in wanted


SVC_CHANGES = {
    "more support": (lambda a: a.dtype == np.int32 and a.shape not in ((2,), ()), lambda a: np.repeat(a, 7)),
    "support far": (lambda a: a.dtype == np.int32 and len(a) > 3, lambda a: np.full_like(a, 10**6)),
    "negative counts": (lambda a: a.dtype == np.int32 and a.shape == (2,), lambda a: np.array([-5, 20], np.int32)),
    "no vectors": (lambda a: a.dtype == float and a.ndim == 2 and a.shape[1] == 2, lambda a: a[:0]),
    "narrow vectors": (lambda a: a.dtype == float and a.ndim == 2 and a.shape[1] == 2, lambda a: a[:, :1]),
    "few weights": (lambda a: a.dtype == float and a.ndim == 2 and a.shape[0] == 1, lambda a: a[:, :1]),
    "no intercept": (lambda a: a.dtype == float and a.shape == (1,), lambda a: a[:0]),
    "class numbers": (
        lambda a: a.dtype.kind == "i" and a.shape == (2,) and a.tolist() == [0, 1],
        lambda a: np.arange(9),
    ),
}


@pytest.mark.parametrize("name", SVC_CHANGES)
def test_arrays_of_an_svc_that_contradict_each_other_are_refused(tmp_path, name):
    save(SVC().fit(X, Y), path := tmp_path / "svc.skops")
    refused(tmp_path, changed_array(path.read_bytes(), *SVC_CHANGES[name]), "its SVC does not fit the rest")


def test_an_svc_of_sparse_rows_keeps_to_its_rows(tmp_path):
    rows = sparse.csr_matrix(X)
    model = SVC().fit(rows, Y)
    save(model, path := tmp_path / "svc.skops")
    np.testing.assert_array_equal(load(path).predict(rows), model.predict(rows))
    refused(tmp_path, changed_value(path.read_bytes(), "_sparse", "false"), "of its SVC does not fit the rest")
    shorter = {"data": [1.0], "indices": np.zeros(1, np.int32), "indptr": [0, 1], "shape": [1, 2]}
    refused(tmp_path, changed_sparse(path.read_bytes(), lambda parts: parts | shorter), "of its SVC does not fit")


@pytest.mark.parametrize(
    "model",
    [
        SVC(kernel="precomputed").fit(np.eye(6), [0, 1] * 3),
        SVC(decision_function_shape="ovo").fit(X, np.arange(60) % 4),
        NuSVC(nu=0.2).fit(X, Y),
        SVR().fit(X, Y),
        OneClassSVM().fit(X),
        LabelNoiseSVC(kernel="precomputed").fit(X @ X.T, Y),
        KNeighborsClassifier(algorithm="brute").fit(X, Y),
        make_pipeline(OneHotEncoder(min_frequency=2, drop="first"), LogisticRegression()).fit(X.round(), Y),
        make_pipeline(CountVectorizer(), LogisticRegression()).fit(["a bc", "bc de", "de fg"] * 2, [0, 1, 0] * 2),
        SVC(),
    ],
    ids=lambda model: str(model)[:30],
)
def test_what_is_checked_is_loaded_as_it_was(model, tmp_path):
    save(model, path := tmp_path / "m.skops")
    kept, read = (
        sorted(
            part.tobytes()
            for part in model_files.every_part(one)
            if isinstance(part, np.ndarray) and not part.dtype.hasobject
        )
        for one in (model, load(path))
    )
    assert read == kept


def test_class_numbers_of_neighbours_stay_below_the_classes(tmp_path):
    save(KNeighborsClassifier(algorithm="brute").fit(X, Y), path := tmp_path / "m.skops")
    content = changed_array(path.read_bytes(), shapes((60,)), lambda a: a + 10**6)
    refused(tmp_path, content, "_y of its KNeighborsClassifier does not fit")


def test_categories_and_words_name_columns_that_exist(tmp_path):
    save(OneHotEncoder().fit(X.round()), path := tmp_path / "m.skops")
    content = changed_array(path.read_bytes(), lambda a: a.ndim == 1 and len(a) > 1, lambda a: np.arange(500.0))
    refused(tmp_path, content, "_n_features_outs of its OneHotEncoder does not fit")
    counter = CountVectorizer().fit(["some words"])
    for numbers in ({"some": 10**9, "words": 1}, {"some": -1, "words": 0}, {"some": 0, "words": 0}, {"some": 1.5}):
        counter.vocabulary_ = numbers
        path.write_bytes(skops.io.dumps({"format": 2, "floral_learn": floral_learn.__version__, "model": counter}))
        refuses("vocabulary_ of its CountVectorizer does not fit", load, path, error=ModelFileError)


def test_random_states_read_inside_their_tables(tmp_path):
    random_state = np.random.RandomState(0)
    for state in (random_state, np.random.Generator(np.random.Philox(0)), np.random.Generator(np.random.MT19937(0))):
        save({"model": state}, path := tmp_path / "m.skops")
        load(path)
        key = "buffer_pos" if "Philox" in str(state) else "pos"
        for place in ("1000000", "-3"):
            content = changed_value(path.read_bytes(), key, place)
            refused(tmp_path, content, "does not fit the rest|not a floral-learn model file, or damaged")


@pytest.mark.parametrize("model", [RandomForestClassifier(3), HistGradientBoostingClassifier(max_iter=2), KMeans(2)])
def test_compiled_models_must_be_named_whatever_skops_trusts(model, tmp_path):
    with pytest.warns(UserWarning, match=r"load will refuse this file: .*trusted=\['sklearn") as said:
        save(model.fit(X, Y), path := tmp_path / "m.skops")
    refuses(r"not trusted: .*sklearn", load, path, error=ModelFileError)
    named = re.findall(r"'([^']*)'", str(said[0].message))
    np.testing.assert_array_equal(load(path, trusted=named).predict(X), model.predict(X))


@pytest.mark.parametrize(
    "model",
    [
        SGDClassifier(random_state=0),
        MLPClassifier((4,), max_iter=3, random_state=0),
        GaussianNB(),
        LinearDiscriminantAnalysis(),
        make_pipeline(PCA(1), Nystroem(n_components=5, random_state=0), LinearSVC()),
        GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1, 10]}, cv=2),
        CalibratedClassifierCV(LabelNoiseSVC(), cv=2),
        VotingClassifier([("a", LogisticRegression()), ("b", RidgeClassifier())]),
        make_pipeline(KBinsDiscretizer(3, strategy="uniform"), LogisticRegression()),
        SelfTrainingClassifier(SVC()),
        BaggingClassifier(LogisticRegression(), 2, random_state=0),
    ],
    ids=lambda model: str(model).partition("(")[0],
)
@pytest.mark.filterwarnings("error:load will refuse")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:y contains no unlabeled samples")
def test_models_of_numpy_need_no_word(model, tmp_path):
    save(model.fit(X, Y), path := tmp_path / "m.skops")
    np.testing.assert_array_equal(load(path).predict(X), model.predict(X))


def test_a_model_over_the_limit_of_load_is_saved_with_a_word(tmp_path, monkeypatch, model):
    monkeypatch.setattr("floral_learn.base.models.MOST_BYTES", 1000)
    with pytest.warns(UserWarning, match=r"load will refuse this file: .*max_bytes=\d+"):
        save(model, tmp_path / "m.skops")


def test_a_deep_schema_is_one_error(raw, tmp_path):
    def deepen(schema):
        node = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": []}
        for _ in range(300):
            node = node | {"content": [node]}
        schema["content"]["model"] = node

    refused(tmp_path, with_schema(raw, deepen), "not a floral-learn model file|not trusted")
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
    path.write_bytes(skops.io.dumps({"format": 2, "floral_learn": floral_learn.__version__, "model": broken}))
    refuses("its LabelNoiseSVC has no kernel", load, path, error=ModelFileError)


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
    assert refusals > 200


def test_changed_schemas_raise_one_type_of_error(raw, tmp_path):
    """150 changes of one value of the schema: a model, or ModelFileError; never another exception."""
    rng, path = random.Random(1), tmp_path / "m.skops"
    original = json.loads(members(raw)["schema.json"])
    values = [None, 7, -1, "x", "", [], {}, True, 1e308, "ObjectNode", "builtins", "[[[", "../../etc/passwd", "0.npy"]
    for _ in range(150):
        schema = copy.deepcopy(original)
        item, key = rng.choice(places(schema))
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
