"""Keeping the threads of the linear algebra library quiet while our own are at work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import threadpoolctl


@dataclass
class _Quiet:
    """The limit is one for the whole process: the first to ask sets it, the last lifts it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0
    limit: Any = None

    def begin(self) -> None:
        with self.lock:
            self.users += 1
            if self.users == 1:
                self.limit = _controller().limit(limits=1, user_api="blas")

    def end(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                self.limit.restore_original_limits()


_QUIET = _Quiet()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy and SciPy multiply in the calling thread only, while this lasts.

    For short products between calls of ours: the library's threads go on spinning for a while after
    each call, on the cores that our threads need next. Fits that overlap in several threads share
    the limit, so that none restores what another had set.
    """
    _QUIET.begin()
    try:
        yield
    finally:
        _QUIET.end()


@cache
def _controller() -> Any:
    return threadpoolctl.ThreadpoolController()  # looks through all loaded libraries: once
