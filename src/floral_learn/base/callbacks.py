"""scikit-learn's callback API where it exists (1.9 on), and the part of it that our fits use where it does not."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9: the same names and hooks, for callbacks set on the estimator itself
    from functools import wraps

    class _Context:
        def __init__(self, callbacks: list[Any], task_name: str, task_id: int, max_subtasks: int, parent: Any) -> None:
            self.callbacks = callbacks
            self.task_name, self.task_id, self.max_subtasks, self.parent = task_name, task_id, max_subtasks, parent
            self._children = 0

        def subcontext(self, task_name: str = "", max_subtasks: int = 0) -> _Context:
            """A context for the next subtask."""
            self._children += 1
            return _Context(self.callbacks, task_name, self._children - 1, max_subtasks, self)

        def call_on_fit_task_begin(self, *, estimator: Any, **_: Any) -> bool:
            """Call the hook of every callback."""
            return self._call("on_fit_task_begin", estimator)

        def call_on_fit_task_end(self, *, estimator: Any, **_: Any) -> bool:
            """Call the hook of every callback; true if one of them asks to stop."""
            return self._call("on_fit_task_end", estimator)

        def _call(self, hook: str, estimator: Any) -> bool:
            answers = [getattr(callback, hook)(estimator, self) for callback in self.callbacks]
            return any(bool(answer) for answer in answers)

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """``set_callbacks`` and the fit context."""

        def set_callbacks(self, *callbacks: Any) -> Any:
            """Set the callbacks of this estimator."""
            hooks = ("setup", "on_fit_task_begin", "on_fit_task_end", "teardown")
            if not all(hasattr(callback, hook) for callback in callbacks for hook in hooks):
                raise TypeError(f"callbacks must have the methods {', '.join(hooks)}.")
            self._skl_callbacks = list(callbacks)
            return self

        def _init_callback_context(self, task_name: str = "fit", max_subtasks: int = 0) -> _Context:
            callbacks = getattr(self, "_skl_callbacks", [])
            self._callback_fit_ctx = _Context(callbacks, task_name, 0, max_subtasks, None)
            for callback in callbacks:
                callback.setup(estimator=self, context=self._callback_fit_ctx)
            return self._callback_fit_ctx

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Tear callbacks down after `method`, whether it ends well or not."""

        @wraps(method)
        def managed(estimator: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return method(estimator, *args, **kwargs)
            finally:
                if hasattr(estimator, "_callback_fit_ctx"):
                    for callback in getattr(estimator, "_skl_callbacks", []):
                        callback.teardown(estimator=estimator, context=estimator._callback_fit_ctx)
                    del estimator._callback_fit_ctx

        return managed


SECONDS = 2.0  # between two lines of a log


class RoundLog:
    """Lines on stderr with the round, the objective, the KKT residual and the time left: what ``verbose=1`` shows.

    The first line comes after the first round, then one every other second, and one at the end.
    """

    def __init__(self, n_rounds: int) -> None:
        self.n_rounds = n_rounds
        self.began = time.monotonic()
        self.shown = -SECONDS
        self.first = -1
        sys.stderr.write("[floral] computing the kernel\n")

    def __call__(self, state: Any) -> None:
        """Report the round just closed, if its turn has come."""
        now = time.monotonic() - self.began
        if self.first < 0:
            self.first, self.started = state.round - 1, now
        if now - self.shown < SECONDS and state.round < self.n_rounds and not state.settled:
            return
        self.shown = now
        left = (now - self.started) / max(state.round - self.first, 1) * (self.n_rounds - state.round)
        objective = float(state.history.rows["objective"][-1].mean())
        residual = float(state.history.rows["residual"][-1].max())
        end = "settled" if state.settled else f"at most {left:.1f} s left"
        sys.stderr.write(
            f"[floral] round {state.round}/{self.n_rounds}  objective {objective:.6g}  KKT residual {residual:.3g}  "
            f"{end}\n"
        )


__all__ = ["CallbackSupportMixin", "RoundLog", "with_callbacks"]
