"""How many threads a compiled call may use, and the door for threadpoolctl to limit them."""

from __future__ import annotations

from typing import Any

import threadpoolctl

from mercer import _native
from mercer.resources import thread_limit

_ENOUGH_FOR_TWO = 2e6  # operations; below, waking another thread costs more than it saves


def call_threads(work: float) -> int:
    """Count the threads for a call of about `work` operations.

    Limits are only read (system files among them) when the call is large enough to share.
    """
    if work < _ENOUGH_FOR_TWO:
        return 1
    return min(thread_limit(), int(_native.thread_cap()))


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
