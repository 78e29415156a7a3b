"""Ctrl-C, and the time limit of a fit, during a long LAPACK call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from mercer import deadline

_SHORT = 500 * 500  # entries; LAPACK is done with them before anyone could press a key


def interruptible(call: Callable[..., Any], matrix: Any, *args: Any, **kwargs: Any) -> Any:
    """Run a call that lets go of the interpreter's lock, so that the caller still hears Ctrl-C.

    The deadline of a fit is kept in the same way.

    LAPACK cannot be stopped; what can be is our waiting for it. An interrupted call runs on to its
    end in a daemon thread and its result is dropped. `numpy.linalg` lets go of the lock; SciPy's
    wrappers of LAPACK do not, and must not be passed here: nobody would hear anything until their
    end all the same.
    """
    if matrix.size <= _SHORT:
        return call(matrix, *args, **kwargs)
    outcome: dict[str, Any] = {}

    def work() -> None:
        try:
            outcome["value"] = call(matrix, *args, **kwargs)
        except BaseException as error:  # handed to the caller below
            outcome["error"] = error

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        deadline.check()
        thread.join(timeout=0.1)
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]
