"""Checkpoints by an enemy or an accident: one exception, within the limit, and no fit from a state that cannot be."""

import io
import shutil
import zipfile

import numpy as np
import pytest
from sklearn.datasets import make_moons

from floral_learn import FloralClassifier, LabelReview, load, save
from floral_learn.files import ModelFileError
from floral_learn.floral.checkpoint import Checkpoint, resume

X, Y = make_moons(60, noise=0.2, random_state=0)


@pytest.fixture(scope="module", params=[0.1, 0], ids=["attacked", "plain"])
def whole(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fit") / "checkpoint"
    clf = FloralClassifier(n_rounds=40, tol=None if request.param else 1e-9, budget=request.param, random_state=0)

    class Stop:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context):
            if context.parent is not None and context.task_id == 25:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clf.set_callbacks(Checkpoint(folder, every=10), Stop()).fit(X, Y)
    return folder


def changed(whole, tmp_path, **arrays):
    """A copy of the checkpoint with arrays of its state replaced, or taken out (None)."""
    folder = tmp_path / "checkpoint"
    shutil.copytree(whole, folder, dirs_exist_ok=True)
    with np.load(folder / "state.npz") as state:
        parts = {name: value for name, value in (dict(state) | arrays).items() if value is not None}
    np.savez_compressed(folder / "state.npz", **parts)
    return folder


CHANGES = {
    "no id": lambda s: {"id": None},
    "no counters": lambda s: {"counters": None},
    "no dual": lambda s: {"dual": None},
    "no history": lambda s: {"history.bias": None},
    "words for counters": lambda s: {"counters": np.array(["a", "b"])},
    "one counter": lambda s: {"counters": np.array([1])},
    "a far round": lambda s: {"counters": np.array([10**9, 0])},
    "a round before the first": lambda s: {"counters": np.array([-5, 0])},
    "settled twice": lambda s: {"counters": np.array([20, 2])},
    "fewer rounds than were recorded": lambda s: {"counters": np.array([3, 0])},
    "few duals": lambda s: {"dual": s["dual"][:3]},
    "NaN": lambda s: {"mu": np.full_like(s["mu"], np.nan)},
    "infinite sums": lambda s: {"weight_sum": np.full_like(s["weight_sum"], np.inf)},
    "negative duals": lambda s: {"dual": s["dual"] - 1},
    "long mu": lambda s: {"mu": np.zeros(7)},
    "text": lambda s: {"weight_sum": np.array(["x"])},
    "signs": lambda s: {"signs": s["signs"] * 5},
    "flips": lambda s: {"flip_count": s["flip_count"] + 10**6},
    "marks": lambda s: {"marks.rounds": np.array([1, 7, 7, 900])},
    "other rows": lambda s: {
        name: np.zeros((9, *s[name].shape[1:]), s[name].dtype) for name in ("dual", "signs", "weight_sum", "flip_count")
    },
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_state_that_cannot_be_is_refused(whole, tmp_path, name):
    with np.load(whole / "state.npz") as state:
        folder = changed(whole, tmp_path, **CHANGES[name](dict(state)))
    with pytest.raises(ModelFileError, match=r"checkpoint"):
        resume(folder)


def test_an_unchanged_copy_is_continued(whole, tmp_path):
    assert resume(changed(whole, tmp_path)).n_iter_ > 20


def test_the_limit_holds_for_both_files(whole, tmp_path):
    folder = changed(whole, tmp_path, extra=np.zeros(10**6))
    assert (folder / "state.npz").stat().st_size < 100_000
    with pytest.raises(ModelFileError, match=r"bytes when unpacked, more than the limit of 1,000,000"):
        resume(folder, max_bytes=1_000_000)
    with pytest.raises(ModelFileError, match="more than max_bytes=100"):
        resume(folder, max_bytes=100)


def test_an_array_larger_than_its_file_is_refused(whole, tmp_path):
    folder = changed(whole, tmp_path)
    with zipfile.ZipFile(folder / "state.npz") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**14, 1)})
    with zipfile.ZipFile(folder / "state.npz", "w") as archive:
        for name, content in (files | {"dual.npy": header.getvalue()}).items():
            archive.writestr(name, content)
    with pytest.raises(ModelFileError, match="announces 800,000,000,000,000 bytes and holds 0"):
        resume(folder)


def test_each_kind_of_file_says_what_it_is(whole, tmp_path):
    folder = changed(whole, tmp_path)
    with pytest.raises(ModelFileError, match="it is a checkpoint, which resume reads, not a model file"):
        load(folder / "fit.skops")
    save(FloralClassifier(n_rounds=5).fit(X, Y), folder / "fit.skops")
    with pytest.raises(ModelFileError, match="it is a model, which load reads, not a checkpoint file"):
        resume(folder)
    with pytest.raises(ModelFileError, match="it is a model, which load reads, not a review file"):
        LabelReview.load(folder / "fit.skops")
    LabelReview(X, Y).save(folder / "fit.skops")
    with pytest.raises(ModelFileError, match=r"it is a review, which LabelReview\.load reads, not a checkpoint file"):
        resume(folder)


def test_a_damaged_checkpoint_is_not_started_over_in_silence(whole, tmp_path):
    folder = changed(whole, tmp_path, counters=np.array(["a"]))
    with pytest.raises(ModelFileError, match=r"state\.npz is damaged"):
        FloralClassifier(n_rounds=5).set_callbacks(Checkpoint(folder)).fit(X, Y)
