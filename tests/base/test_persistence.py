"""Models go through a file unchanged, and a file runs no code."""

import json
import zipfile

import numpy as np
import pytest
import skops.io
from archives import members, packed
from refusals import refuses
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import floral_learn
from floral_learn import FloralClassifier, LabelReview, load, save
from floral_learn.base import ModelFileError, TableEncoder, files, models

X, Y = make_moons(120, noise=0.2, random_state=0)


@pytest.mark.parametrize("params", [{}, {"gram": 40}, {"kernel": "laplacian"}])
def test_a_model_comes_back_the_same(tmp_path, params):
    names = np.array(["no", "yes"])[Y]
    clf = FloralClassifier(n_rounds=50, budget=0.1, random_state=0, **params).fit(X, names)
    save(clf, tmp_path / "model.skops")
    back = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(back.decision_function(X), clf.decision_function(X))
    np.testing.assert_array_equal(back.predict(X), clf.predict(X))
    assert str(back) == str(clf)  # every parameter that is not its default, those of the engine too
    assert back.gram_ == clf.gram_
    np.testing.assert_array_equal(back.history_["flips"], clf.history_["flips"])
    assert back.label_issues().equals(clf.label_issues())


def test_a_table_of_many_columns_is_a_small_file_that_loads(tmp_path):
    """Each name in a list of names was an object of its own: from 13,000 columns on, load refused what save wrote."""
    pd = pytest.importorskip("pandas")
    names = [f"c{i}" for i in range(2000)]
    rows = np.random.default_rng(0).normal(size=(5, len(names)))
    encoder = TableEncoder().fit(pd.DataFrame(rows, columns=names))
    save(encoder, tmp_path / "wide.skops")
    with zipfile.ZipFile(tmp_path / "wide.skops") as archive:
        assert archive.getinfo("schema.json").file_size < 50 * len(names)
    back = load(tmp_path / "wide.skops")
    assert back.feature_names_in_.tolist() == names
    assert back.columns_ == encoder.columns_


def test_pipelines_and_multi_class(tmp_path):
    P, labels = make_blobs(90, centers=3, random_state=0)
    pipe = make_pipeline(StandardScaler(), FloralClassifier(n_rounds=40)).fit(P, labels)
    save(pipe, tmp_path / "model.skops")
    np.testing.assert_array_equal(load(tmp_path / "model.skops").decision_function(P), pipe.decision_function(P))


def test_a_function_in_the_model_is_refused_and_nothing_is_written(tmp_path):
    clf = FloralClassifier(kernel=lambda A, B: A @ B.T, n_rounds=5).fit(X, Y)
    refuses("kernel is a function", save, clf, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


def test_foreign_types_are_not_created_unless_trusted(tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(
        skops.io.dumps({"format": models.FORMAT, "floral_learn": floral_learn.__version__, "model": _Bomb()})
    )
    refuses(r"types that are not trusted: .*_Bomb", load, path)
    assert not _Bomb.went_off
    pipe = make_pipeline(FunctionTransformer(np.sinc), FloralClassifier(n_rounds=5)).fit(X, Y)
    with pytest.warns(UserWarning, match="load will refuse this file: .*trusted=.'numpy.sinc'"):
        save(pipe, path)
    refuses(r"not trusted: numpy\.sinc", load, path)
    assert load(path, trusted=["numpy.sinc"]).predict(X).shape == Y.shape


@pytest.mark.filterwarnings("ignore:load will refuse this file")
def test_a_file_cannot_call_a_function_of_ours(tmp_path):
    target, path = tmp_path / "written.txt", tmp_path / "model.skops"
    save({"model": (str(target), b"by load")}, path)
    files = members(path.read_bytes())
    schema = json.loads(files["schema.json"])
    call = schema["content"]["model"]["content"]["model"]
    arguments = dict(call)
    nothing = {"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode", "content": {}, "__id__": 1}
    nothing["key_types"] = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": []}
    call.clear()
    call.update(
        {
            "__class__": "write_atomically",
            "__module__": "floral_learn.base.files",
            "__loader__": "LossNode",
            "__reduce__": {"args": arguments},
            "content": nothing,
            "__id__": 2,
        }
    )
    files["schema.json"] = json.dumps(schema).encode()
    path.write_bytes(packed(files))
    refuses(r"not trusted: floral_learn\.base\.files\.write_atomically", load, path)
    assert not target.exists()


def test_searches_and_calibrated_classifiers_come_back(tmp_path):
    search = GridSearchCV(FloralClassifier(n_rounds=20, random_state=0), {"C": [1.0, 10.0]}, cv=3).fit(X, Y)
    calibrated = CalibratedClassifierCV(FloralClassifier(n_rounds=20, random_state=0), cv=3).fit(X, Y)
    for model in (search, calibrated):
        save(model, tmp_path / "model.skops")
        np.testing.assert_array_equal(load(tmp_path / "model.skops").predict(X), model.predict(X))


class _Bomb:
    went_off = False

    def __setstate__(self, state):
        type(self).went_off = True

    def __getstate__(self):
        return {"a": 1}


def test_wrong_files_are_named(tmp_path):
    refuses("no model file at", load, tmp_path / "none.skops", error=FileNotFoundError)
    (tmp_path / "text.skops").write_text("hello")
    refuses("is not a floral-learn model file", load, tmp_path / "text.skops")
    (tmp_path / "other.skops").write_bytes(skops.io.dumps(StandardScaler()))
    refuses("is not a floral-learn model file", load, tmp_path / "other.skops")


def test_versions_are_stamped(tmp_path):
    clf = FloralClassifier(n_rounds=5).fit(X, Y)
    path = tmp_path / "model.skops"
    path.write_bytes(skops.io.dumps({"format": models.FORMAT, "floral_learn": "9.9.1", "model": clf}))
    with pytest.warns(UserWarning, match=r"written by floral-learn 9\.9\.1, this is"):
        load(path)
    path.write_bytes(skops.io.dumps({"format": 99, "floral_learn": "9.0", "model": clf}))
    refuses("in another format: upgrade to read it", load, path)
    for kind, read in (("model", load), ("review", LabelReview.load)):
        path.write_bytes(skops.io.dumps({"format": 1, "floral_learn": "0.3.0", kind: {"old": 1}}))
        with pytest.raises(
            ModelFileError, match=r"by floral-learn 0\.3\.0, in another format: make it again with this"
        ):
            read(path)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.skops"
    save(FloralClassifier(n_rounds=5).fit(X, Y), path)
    before = path.read_bytes()
    monkeypatch.setattr(files.os, "fsync", lambda fd: (_ for _ in ()).throw(OSError("no space left")))
    refuses("no space left", save, FloralClassifier(n_rounds=9).fit(X, Y), path, error=OSError)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.skops"]
