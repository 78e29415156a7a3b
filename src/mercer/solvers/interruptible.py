"""Ctrl-C during a long LAPACK call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def interruptible(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a call that holds no Python lock, so that the calling thread still hears Ctrl-C.

    LAPACK cannot be stopped; what can be is our waiting for it. An interrupted call runs on to its
    end in a daemon thread and its result is dropped.
    """
    outcome: dict[str, Any] = {}

    def work() -> None:
        try:
            outcome["value"] = call(*args, **kwargs)
        except BaseException as error:  # handed to the caller below
            outcome["error"] = error

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(timeout=0.1)
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]
