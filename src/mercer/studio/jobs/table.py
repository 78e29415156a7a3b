"""Read an uploaded file and describe it, in a process of its own memory limit."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mercer.studio.jobs.bench import Bench, read_table
from mercer.studio.jobs.fitting import Tell
from mercer.studio.limits import RefusalError, StudioLimits
from mercer.studio.tables import described

_BASE = 512 << 20  # bytes for libraries and threads
_GROWTH = 64  # bytes of memory for each byte that an upload may have


def table_job(bench: Bench, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Read a file; return its columns and a scene to begin with."""
    content = base64.b64decode(request["base64"])
    try:
        with limited_memory(bench.limits):
            return described(read_table(content, bench.limits))
    except MemoryError as error:
        words = "this file needs too much memory; upload a sample of its rows"
        raise RefusalError(words) from error


@contextlib.contextmanager
def limited_memory(limits: StudioLimits) -> Iterator[None]:
    """Limit the address space of this process while it reads a file, on systems that can."""
    try:
        import resource  # noqa: PLC0415  not on Windows

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (ImportError, OSError):
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + _BASE + _GROWTH * limits.upload
    most = min((most, *(known for known in (soft, hard) if known != resource.RLIM_INFINITY)))
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
