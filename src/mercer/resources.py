"""What the machine lets us use: threads and memory, read before work starts.

Limits are read anew for each large call (they are cheap to read), because affinity, container
quotas and the memory taken by others change while a process runs.
"""

from __future__ import annotations

import math
import os
import time
from functools import lru_cache
from pathlib import Path

from mercer.configuration import get_config

_CGROUP = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
_SHARE = 0.7  # of the free memory; the rest is for the caller's own arrays and other processes
_SMALL = 1 << 24  # bytes
_KEPT = 1.0  # seconds that a container's quota is remembered
_UNKNOWN = 4 * 10**9  # where the system does not tell, stay modest
_BLOCK = 0.125  # of the budget: what a block of rows, with what is computed from it, takes


class MemoryBudgetError(MemoryError):
    """The work needs more memory than the budget; the message has the estimate and alternatives."""


def thread_limit() -> int:
    """Count the threads one call may use: the smallest of all limits in force."""
    limits = [_affinity(), _recent_quota(int(time.monotonic() / _KEPT))]
    configured = get_config().threads
    if configured is not None:
        limits.append(configured)
    for name in ("MERCER_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "").split(",")[0].strip()
        if value.isdigit() and int(value) > 0:
            limits.append(int(value))
    return max(1, min(limits))


def memory_budget() -> int:
    """Return the bytes one call may take: the configured budget, else a share of what is free."""
    configured = get_config().memory
    free = available_memory()
    return int(_SHARE * free) if configured is None else min(configured, free)


def available_memory() -> int:
    """Return the bytes this process may still take: system, container, address-space limits."""
    limits = [_system_available(), _container_available(), _address_space_left()]
    return max(0, int(min(limits)))


def within_budget(needed: float) -> bool:
    """Return whether so many bytes may be taken; a few are not worth asking the system about."""
    configured = get_config().memory
    if configured is not None and needed > configured:
        return False
    return needed <= _SMALL or needed <= memory_budget()


def require_memory(needed: int, what: str, alternatives: str, *, held: int = 0) -> None:
    """Refuse before allocation when `needed` bytes exceed the budget.

    Parameters
    ----------
    needed : int
        Bytes about to be taken.
    what : str
        What takes them, for the message.
    alternatives : str
        What the user can do instead, for the message.
    held : int
        Bytes that the call holds already. They count in a configured budget; what is free is less
        by them anyway.
    """
    if get_config().memory is not None:
        needed += held
    if not within_budget(needed):
        raise MemoryBudgetError(
            f"{what} needs {format_bytes(needed)}, but the memory budget is "
            f"{format_bytes(memory_budget())}. {alternatives}"
        )


def rows_at_once(width: int, most: int, *, arrays: int = 1, share: float = _BLOCK) -> int:
    """Return how many rows of `width` float64 numbers a pass may look at together.

    Parameters
    ----------
    width : int
        Numbers of a row.
    most : int
        Rows that are quickest; fewer are returned where the budget is small.
    arrays : int
        Arrays of that shape that are held at once.
    share : float
        Of the budget, for all of them.

    Returns
    -------
    int
        At least 1.
    """
    size = 8 * max(1, width) * arrays
    if within_budget(size * most / share):
        return max(1, most)
    return max(1, min(most, int(share * memory_budget() / size)))


def square_side(entry: float, share: float) -> int:
    """Return the order of the largest square matrix that a share of the budget holds.

    Parameters
    ----------
    entry : float
        Bytes for each entry, with those of all copies that are held at once.
    share : float
        Of the budget.

    Returns
    -------
    int
        At least 1.
    """
    return max(1, math.isqrt(int(share * memory_budget() / entry)))


def format_bytes(size: float) -> str:
    """Write a size for people: 1_600_000_000 is '1.6 GB'."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB" if size < 1000 else f"{size / 1000:.3g} TB"


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@lru_cache(maxsize=1)
def _recent_quota(now: int) -> int:
    """Return the quota as of this second: its files take longer to read than small calls take."""
    return _quota()


def _quota() -> int:
    """CPUs that the container's quota allows, rounded up."""
    return min(map(_group_quota, _groups("cpu")))


def _group_quota(group: Path) -> int:
    try:
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota = (group / "cpu.cfs_quota_us").read_text().strip()
            period = (group / "cpu.cfs_period_us").read_text()
        if quota not in ("max", "-1"):
            return max(1, math.ceil(int(quota) / int(period)))
    except (OSError, ValueError):
        pass
    return 1 << 16


def _groups(controller: str) -> list[Path]:
    """Return the control groups this process is in, innermost first: each may set limits.

    Version 2 has one tree of groups, version 1 a tree for each controller.
    """
    root, inner = _CGROUP, ""
    try:
        for line in _MEMBERSHIP.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                root, inner = _CGROUP / controller, path.strip("/")
                break
            if not controllers:
                inner = path.strip("/")
    except (OSError, ValueError):
        pass
    group = root / inner
    return [group, *(outer for outer in group.parents if outer.is_relative_to(root))]


def _system_available() -> float:
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2
    except (ValueError, OSError, AttributeError):
        return _UNKNOWN


def _container_available() -> float:
    return min(map(_group_available, _groups("memory")))


def _group_available(group: Path) -> float:
    first = (group / "memory.max").exists()
    names = ("max", "current") if first else ("limit_in_bytes", "usage_in_bytes")
    try:
        limit, used = ((group / f"memory.{name}").read_text().strip() for name in names)
        if limit == "max":
            return math.inf
        # files that were read count as used, but make room when somebody asks for it
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        files = int(stat.get("inactive_file" if first else "total_inactive_file", 0))
        return max(0, int(limit) - int(used) + files)
    except (OSError, ValueError):
        return math.inf


def _address_space_left() -> float:
    try:
        import resource  # noqa: PLC0415  not on every system

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft == resource.RLIM_INFINITY:
            return math.inf
        with open("/proc/self/statm") as statm:
            pages = int(statm.read().split()[0])
        return max(0, soft - pages * os.sysconf("SC_PAGE_SIZE"))
    except (ImportError, OSError, ValueError):
        return math.inf
