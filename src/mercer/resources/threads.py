"""Threads that a call may use, and the door for threadpoolctl to limit those of the core."""

from __future__ import annotations

import os
from typing import Any

import threadpoolctl

from mercer.resources.settings import get_config
from mercer.resources.system import cpu_affinity, recent_cpu_quota

try:
    from mercer import _native
except ImportError:  # the reference backend has no threads
    _native = None  # type: ignore[assignment]

_ENOUGH_FOR_TWO = 2e6  # operations; below, waking another thread costs more than it saves


def thread_limit() -> int:
    """Count the threads one call may use: the smallest of all limits in force."""
    limits = [cpu_affinity(), recent_cpu_quota()]
    configured = get_config().threads
    if configured is not None:
        limits.append(configured)
    for name in ("MERCER_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "").split(",")[0].strip()
        if value.isdigit() and int(value) > 0:
            limits.append(int(value))
    return max(1, min(limits))


def call_threads(work: float) -> int:
    """Count the threads for a call of about `work` operations.

    Limits are only read (system files among them) when the call is large enough to share.
    """
    if work < _ENOUGH_FOR_TWO:
        return 1
    # NumPy's calls have limits of their own; folds and settings share work without the core, too
    cap: Any = getattr(_native, "thread_cap", thread_limit)
    return min(thread_limit(), int(cap()))


class _Controller(threadpoolctl.LibController):
    """Lets `threadpoolctl.threadpool_limits` and `threadpool_info` see Mercer's threads."""

    user_api = "mercer"
    internal_api = "mercer"
    filename_prefixes = ("_native",)
    check_symbols = ("mercer_get_num_threads", "mercer_set_num_threads")

    def get_num_threads(self) -> Any:
        return self.dynlib.mercer_get_num_threads()

    def set_num_threads(self, num_threads: int) -> None:
        self.dynlib.mercer_set_num_threads(num_threads)

    def get_version(self) -> None:
        return None

    def set_additional_attributes(self) -> None:
        pass


threadpoolctl.register(_Controller)
