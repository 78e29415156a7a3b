"""Memory and processors that the system, the container and limits of the process allow.

They are read anew for each large call (that is cheap), because affinity, quotas and the memory
taken by others change while a process runs.
"""

from __future__ import annotations

import math
import os
import time
from functools import lru_cache
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
_KEPT = 1.0  # seconds that a container's quota is remembered
_NO_LIMIT = 1 << 60  # bytes: what version 1 of control groups calls no limit is of this size
_UNKNOWN = 4 * 10**9  # where the system does not tell, stay modest


def cpu_affinity() -> int:
    """Count the processors that the process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def recent_cpu_quota() -> int:
    """Return the quota as of this second: its files take longer to read than small calls take."""
    return _recent_quota(int(time.monotonic() / _KEPT))


@lru_cache(maxsize=1)
def _recent_quota(now: int) -> int:
    return cpu_quota()


def cpu_quota() -> int:
    """Count the processors that the container's quota allows, rounded up."""
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


def system_memory() -> float:
    """Return the bytes that the system has left."""
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


def container_memory() -> float:
    """Return the bytes that the container has left."""
    groups = _recent_groups(int(time.monotonic() / _KEPT), _CGROUP, _MEMBERSHIP)
    return min(map(_group_available, groups))


@lru_cache(maxsize=1)
def _recent_groups(now: int, root: Path, membership: Path) -> list[str]:
    """Return the groups that count memory as of this second; what they allow is read anew."""
    return [str(group) for group in _groups("memory")]


def _group_available(group: str) -> float:
    try:
        limit, used, cached = _read(f"{group}/memory.max"), "current", "inactive_file"
        if not limit:
            limit = _read(f"{group}/memory.limit_in_bytes")
            used, cached = "usage_in_bytes", "total_inactive_file"
        if not limit.isdigit() or int(limit) >= _NO_LIMIT:
            return math.inf
        # files that were read count as used, but make room when somebody asks for it
        _, _, stat = f"\n{_read(f'{group}/memory.stat')}".partition(f"\n{cached} ")
        files = int(stat.split(maxsplit=1)[0]) if stat else 0
        return max(0, int(limit) - int(_read(f"{group}/memory.{used}")) + files)
    except ValueError:
        return math.inf


def _read(path: str) -> str:
    """Return what a small file of the system says; nothing if there is none."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read().decode().strip()
    except OSError:
        return ""


def address_space_left() -> float:
    """Return the bytes that the limit of addresses leaves."""
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
