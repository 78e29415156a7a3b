"""Configuration, memory budget, threads, and limits of the computer and its container."""

from __future__ import annotations

import math
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from numbers import Integral
from pathlib import Path
from typing import Any

import threadpoolctl

# --- settings ------------------------------------------------------------------------------------
#
# The settings in force: of the process, and of a `with` block of the current thread or task.

BACKENDS = ("native", "reference", "torch")
PRODUCTS = ("float32", "float16")
_DEVICE = re.compile(r"cpu(,cpu)*|cuda(:\d+)?|cuda:\d+(,cuda:\d+)+")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


@dataclass(frozen=True)
class Config:
    """Configuration of Mercer.

    Attributes
    ----------
    backend : str or None
        "native", "reference" or "torch". If None, the faster of the first two.
    device : str or None
        Device of the torch backend: "cpu", "cuda", one of several GPUs such as "cuda:1", or
        several such as "cuda:0,cuda:1", which divide matrix products. If None, the first GPU, or
        the CPU without one. Other backends have no device.
    memory : int or None
        Memory budget of one call in bytes. If None, a fraction of the free memory.
    threads : int or None
        Maximum number of threads. If None, the limit of the environment, the process affinity and
        the container.
    progress : bool
        Show the progress of long operations on standard error: a bar with the package `rich`,
        otherwise occasional lines.
    products : str
        Precision of matrix products on GPUs for float32 kernels. "float32" keeps full precision
        with three 16-bit products. "float16" uses one product and is twice as fast, with errors of
        about 1e-4 of the largest entry; certificates are computed in float64 and include these
        errors. Other backends ignore it.
    """

    backend: str | None = None
    device: str | None = None
    memory: int | None = None
    threads: int | None = None
    progress: bool = False
    products: str = "float32"


_process = Config()
_local: ContextVar[dict[str, Any]] = ContextVar("mercer_config", default={})  # noqa: B039


def get_config() -> Config:
    """Return the current configuration.

    Examples
    --------
    >>> import mercer
    >>> with mercer.config(memory="2 GB"):
    ...     mercer.get_config().memory
    2000000000
    """
    local = _local.get()
    return replace(_process, **local) if local else _process


def set_config(**settings: Any) -> None:
    """Change the configuration of the process. See `Config` for the settings.

    Examples
    --------
    >>> import mercer
    >>> mercer.set_config(threads=2)
    >>> mercer.set_config(threads=None)
    """
    global _process  # noqa: PLW0603  the one global of the library
    _process = replace(_process, **_checked(settings))


@contextmanager
def config(**settings: Any) -> Iterator[Config]:
    """Change the configuration inside a `with` block.

    Parameters
    ----------
    **settings
        Any of `backend`, `device`, `memory` (bytes, or text such as "2 GB"), `threads`,
        `progress` and `products`.

    Yields
    ------
    Config
        Configuration inside the block.
    """
    token = _local.set({**_local.get(), **_checked(settings)})
    try:
        yield get_config()
    finally:
        _local.reset(token)


def parse_bytes(size: int | float | str) -> int:
    """Convert a number or text such as "1.5 GB" to bytes.

    Examples
    --------
    >>> parse_bytes("1.5 GB")
    1500000000
    """
    if isinstance(size, int | float):
        if not math.isfinite(size):
            raise ValueError(f"memory={size!r} must be finite; None uses the free memory")
        return int(size)
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]?)b?\s*", size.lower())
    if match is None:
        raise ValueError(f"memory={size!r} is not a size; use bytes or text such as '2 GB'")
    return int(float(match[1]) * _UNITS[match[2]])


def _checked(settings: dict[str, Any]) -> dict[str, Any]:
    known = [field.name for field in fields(Config)]
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise TypeError(f"no setting {unknown[0]!r}; choose from {', '.join(known)}")
    if not isinstance(settings.get("progress", False), bool):
        raise ValueError(f"progress={settings['progress']!r} must be True or False")
    products = settings.get("products", PRODUCTS[0])
    if products not in PRODUCTS:
        raise ValueError(f"products={products!r} must be one of {', '.join(PRODUCTS)}")
    backend = settings.get("backend")
    if backend is not None and backend not in BACKENDS:
        raise ValueError(f"backend={backend!r} must be one of {', '.join(BACKENDS)}")
    device = settings.get("device")
    if device is not None and not (isinstance(device, str) and _DEVICE.fullmatch(device)):
        raise ValueError(
            f"device={device!r} must be 'cpu', 'cuda', one GPU such as 'cuda:1', or several such "
            "as 'cuda:0,cuda:1'"
        )
    if settings.get("memory") is not None:
        settings = {**settings, "memory": parse_bytes(settings["memory"])}
        if settings["memory"] <= 0:
            raise ValueError(f"memory={settings['memory']} must be positive")
    threads = settings.get("threads")
    if threads is None:
        return settings
    if isinstance(threads, bool) or not isinstance(threads, Integral) or threads < 1:
        raise ValueError(f"threads={threads!r} must be a positive integer")
    return {**settings, "threads": int(threads)}


# --- memory --------------------------------------------------------------------------------------
#
# Memory that a call may take, and how work is cut to fit into it.

_SHARE = 0.7  # of the free memory; the rest is for arrays of the caller and other processes
_SMALL = 1 << 24  # bytes
_BLOCK = 0.125  # fraction of the budget for a block of rows and its results


class MemoryBudgetError(MemoryError):
    """An operation needs more memory than the budget. The message suggests alternatives."""


# what the libraries of a card say for themselves where they find no memory for their own needs
_LIBRARIES = ("STATUS_ALLOC_FAILED", "cusolverDnCreate", "cublasCreate", "cublasLtCreate")


def is_full_card(error: BaseException) -> bool:
    """Return whether an error means that GPU memory is exhausted.

    Parameters
    ----------
    error : BaseException
        Exception of torch or of a library that it calls.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(error, RuntimeError):
        return False
    told = str(error)
    return isinstance(error, torch.cuda.OutOfMemoryError) or any(one in told for one in _LIBRARIES)


@contextmanager
def explained_full_card(owner: str) -> Iterator[None]:
    """Convert out-of-memory errors of a GPU to `MemoryBudgetError`.

    Parameters
    ----------
    owner : str
        Name for the error message.

    Raises
    ------
    MemoryBudgetError
        Replaces torch's error.
    """
    try:
        yield
    except RuntimeError as error:
        if not is_full_card(error):
            raise
        raise MemoryBudgetError(
            f"{owner}: the device is full, and smaller blocks are not possible. Free tensors on "
            "the device, use fewer samples, or select another device."
        ) from error


def memory_budget() -> int:
    """Return the configured memory budget of one call, or a fraction of the free memory."""
    configured = get_config().memory
    free = available_memory()
    return int(_SHARE * free) if configured is None else min(configured, free)


def available_memory() -> int:
    """Return the bytes available to this process: system, container and address-space limits."""
    limits = [system_memory(), container_memory(), address_space_left()]
    return max(0, int(min(limits)))


def within_budget(needed: float) -> bool:
    """Return whether bytes are within the budget. Small sizes are not checked."""
    configured = get_config().memory
    if configured is not None and needed > configured:
        return False
    return needed <= _SMALL or needed <= memory_budget()


def require_memory(needed: int, what: str, alternatives: str, *, held: int = 0) -> None:
    """Raise `MemoryBudgetError` before an allocation that exceeds the budget.

    Parameters
    ----------
    needed : int
        Bytes to allocate.
    what : str
        Subject of the error message.
    alternatives : str
        Suggestions in the error message.
    held : int
        Bytes that the call has allocated. They count toward a configured budget. The free memory
        already excludes them.
    """
    if get_config().memory is not None:
        needed += held
    if not within_budget(needed):
        raise MemoryBudgetError(
            f"{what} needs {format_bytes(needed)}, but the memory budget is "
            f"{format_bytes(memory_budget())}. {alternatives}"
        )


def rows_at_once(width: int, most: int, *, arrays: int = 1, share: float = _BLOCK) -> int:
    """Return the number of rows of `width` float64 values that a block can have.

    Parameters
    ----------
    width : int
        Values per row.
    most : int
        Fastest number of rows. The result is smaller if the budget is small.
    arrays : int
        Number of arrays of this shape in memory at once.
    share : float
        Fraction of the budget for all of them.

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
    """Return the order of the largest square matrix within a fraction of the budget.

    Parameters
    ----------
    entry : float
        Bytes per entry, including all copies in memory at once.
    share : float
        Fraction of the budget.

    Returns
    -------
    int
        At least 1.
    """
    return max(1, math.isqrt(int(share * memory_budget() / entry)))


def format_bytes(size: float) -> str:
    """Format bytes with a unit: 1_600_000_000 is '1.6 GB'."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB" if size < 1000 else f"{size / 1000:.3g} TB"


# --- threads -------------------------------------------------------------------------------------
#
# Threads that a call may use, and the door for threadpoolctl to limit those of the core.

try:
    from mercer import _native
except ImportError:  # the reference backend has no threads
    _native = None  # type: ignore[assignment]

_ENOUGH_FOR_TWO = 2e6  # operations; below, starting another thread takes longer than it saves


def thread_limit() -> int:
    """Return the number of threads of one call: the smallest of all limits."""
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
    """Return the number of threads for a call of about `work` operations.

    The limits, including system files, are only read if the call is large enough for two threads.
    """
    if work < _ENOUGH_FOR_TWO:
        return 1
    # NumPy has its own limits; folds and candidates also run in parallel without the core
    cap: Any = getattr(_native, "thread_cap", thread_limit)
    return min(thread_limit(), int(cap()))


class _Controller(threadpoolctl.LibController):
    """Connects Mercer's threads to `threadpoolctl.threadpool_limits` and `threadpool_info`."""

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


# --- idle ----------------------------------------------------------------------------------------
#
# Pages that the compiled core keeps for later calls.
#
# Arrays that are let go leave their pages behind, so that the next ones need not be given fresh
# pages by the system. Under a configured budget these count, too.

_MOST = 1 << 32  # bytes kept without a configured budget
_OF_ALL = 4  # at most this fraction of the computer's memory: 1 / 4
_OF_BUDGET = 32  # at most this fraction of a configured budget: 1 / 32

_budget: int | None = None  # budget of the current limit


def limit_idle(budget: int | None) -> None:
    """Set the idle memory that the compiled core keeps. None is the default."""
    global _budget  # noqa: PLW0603  the limit is the process's, too
    if budget == _budget or _native is None:
        return
    _native.set_idle_limit(_default_limit() if budget is None else budget // _OF_BUDGET)
    _budget = budget


def _default_limit() -> int:
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return _MOST
    return min(_MOST, physical // _OF_ALL)


# --- system --------------------------------------------------------------------------------------
#
# Memory and processors that the system, the container and limits of the process allow.
#
# They are read anew for each large call (that is cheap), because affinity, quotas and the memory
# taken by others change while a process runs.

_CGROUP = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
_KEPT = 1.0  # seconds that a container's quota is cached
_NO_LIMIT = 1 << 60  # bytes: control groups version 1 uses values of this size for no limit
_UNKNOWN = 4 * 10**9  # default if the system does not report it


def cpu_affinity() -> int:
    """Return the number of processors available to the process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def recent_cpu_quota() -> int:
    """Return the quota, cached for a second because reading its files is slow."""
    return _recent_quota(int(time.monotonic() / _KEPT), _CGROUP, _MEMBERSHIP)


@lru_cache(maxsize=1)
def _recent_quota(now: int, root: Path, membership: Path) -> int:
    return cpu_quota()


def cpu_quota() -> int:
    """Return the number of processors in the container's quota, rounded up."""
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
    """Return the control groups of this process, innermost first. Each can set limits.

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
    """Return the available memory of the system in bytes."""
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
    """Return the available memory of the container in bytes."""
    groups = _recent_groups(int(time.monotonic() / _KEPT), _CGROUP, _MEMBERSHIP)
    return min(map(_group_available, groups))


@lru_cache(maxsize=1)
def _recent_groups(now: int, root: Path, membership: Path) -> list[str]:
    """Return the groups with memory limits, cached for a second. The limits are not cached."""
    return [str(group) for group in _groups("memory")]


def _group_available(group: str) -> float:
    try:
        limit, used, cached = _read(f"{group}/memory.max"), "current", "inactive_file"
        if not limit:
            limit = _read(f"{group}/memory.limit_in_bytes")
            used, cached = "usage_in_bytes", "total_inactive_file"
        if not limit.isdigit() or int(limit) >= _NO_LIMIT:
            return math.inf
        # the file cache counts as used but is freed on demand
        _, _, stat = f"\n{_read(f'{group}/memory.stat')}".partition(f"\n{cached} ")
        files = int(stat.split(maxsplit=1)[0]) if stat else 0
        return max(0, int(limit) - int(_read(f"{group}/memory.{used}")) + files)
    except ValueError:
        return math.inf


def _read(path: str) -> str:
    """Return the content of a small system file, or an empty string if it does not exist."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read().decode().strip()
    except OSError:
        return ""


def address_space_left() -> float:
    """Return the remaining bytes of the address-space limit."""
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


__all__ = [
    "BACKENDS",
    "Config",
    "MemoryBudgetError",
    "PRODUCTS",
    "available_memory",
    "explained_full_card",
    "call_threads",
    "config",
    "format_bytes",
    "is_full_card",
    "get_config",
    "limit_idle",
    "memory_budget",
    "parse_bytes",
    "require_memory",
    "rows_at_once",
    "set_config",
    "square_side",
    "thread_limit",
    "within_budget",
]
