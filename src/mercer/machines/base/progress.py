"""Progress through scikit-learn's callback protocol (1.9 and later) as well as our own.

The only file that knows of that protocol, which is still allowed to change. Each report of the
solver is one subtask of the fit; a callback that returns true stops the fit with what it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from mercer.solvers import Callback, Progress

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _torn_down
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def _torn_down(method: Any) -> Any:
        return method


__all__ = ["CallbackSupportMixin", "progress_of", "with_callbacks"]

F = TypeVar("F", bound=Callable[..., Any])


def with_callbacks(method: F) -> F:
    """Tear callbacks down when the fit ends, however it ends."""
    return cast(F, _torn_down(method))


@contextmanager
def progress_of(machine: Any, own: Callback | None) -> Iterator[Callback | None]:
    """Return one callback for the solver that speaks to the machine's own and scikit-learn's."""
    if not getattr(machine, "_skl_callbacks", None):
        yield own
        return
    fit = machine._init_callback_context(max_subtasks=None)
    fit.call_on_fit_task_begin(estimator=machine)

    def report(progress: Progress) -> bool:
        step = fit.subcontext(task_name="progress")
        step.call_on_fit_task_begin(estimator=machine)
        asked = step.call_on_fit_task_end(estimator=machine)
        return bool(own is not None and own(progress)) or bool(asked)

    yield report
    fit.call_on_fit_task_end(estimator=machine)
