"""Raise inside one of the calls of a fit, at moments spread over all of it."""

import os
import sys
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

MOMENTS = 10


class Stop(BaseException):
    """What the profiler raises; nothing catches it by accident."""


def interrupted(call, moment=None, inside=("",)):
    """Run `call`; raise Stop inside the function call number `moment`. Returns how many calls there were.

    Calls count where the file's path has one of the texts `inside` in it: a library that is stopped while it holds a
    lock of its own would wait for ever the next time. Those of torch never count: stopped while it leaves ``no_grad``,
    it computes no gradients any more.
    """
    count = 0
    left_out = (__file__, f"{os.sep}torch{os.sep}")

    def watch(frame, event, argument):
        nonlocal count
        path = frame.f_code.co_filename
        if any(part in path for part in left_out):
            return
        if event in ("call", "c_call") and any(part in path for part in inside):
            count += 1
            if count == moment:
                sys.setprofile(None)
                raise Stop

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def moments(total):
    """Early ones, where input is checked and stored, and others up to the last call."""
    return sorted({int(total * share) + 1 for share in (*np.linspace(0.02, 0.97, MOMENTS), 0.995)})


def check_interrupted(
    make, data, other, answer="predict", stop=interrupted, every=1, errors=(), state=lambda model: {}
):
    """An interrupted fit on `other` leaves a fitted model as it was, with its `state`, and a new one unfitted."""
    model = make().fit(*data)
    before, kept, inside = getattr(model, answer)(data[0]), dict(vars(model)), state(model)
    make().fit(*other)  # the first fit imports what later ones have
    hit = 0
    for moment in moments(stop(lambda: make().fit(*other)))[::every]:
        fresh = make()
        try:
            stop(partial(fresh.fit, *other), moment)
        except Stop:
            hit += 1
            with pytest.raises(NotFittedError):
                fresh.predict(data[0])
        except errors:  # a library turned the interruption into an error of its own
            assert not hasattr(fresh, "classes_")
        try:
            stop(partial(model.fit, *other), moment)
        except (Stop, *errors):
            assert vars(model).keys() == kept.keys(), moment
            assert all(vars(model)[key] is kept[key] for key in kept), moment
            np.testing.assert_equal(state(model), inside, err_msg=str(moment))
            np.testing.assert_array_equal(getattr(model, answer)(data[0]), before)
        else:  # Stop came too late, or a library swallowed it
            model.__dict__ = dict(kept)
    assert hit >= MOMENTS // 2 // every  # torch's own calls swallow some


def check_refused(make, data, bad, answer="predict"):
    """Data that a fit refuses leave a fitted model as it was, and a new one unfitted."""
    model, fresh = make().fit(*data), make()
    before = getattr(model, answer)(data[0])
    for wrong in bad:
        with pytest.raises(ValueError):
            model.fit(*wrong)
        np.testing.assert_array_equal(getattr(model, answer)(data[0]), before)
    with pytest.raises(ValueError):
        fresh.fit(*bad[0])
    with pytest.raises(NotFittedError):
        fresh.predict(data[0])
