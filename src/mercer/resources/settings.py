"""The settings in force: of the process, and of a `with` block of the current thread or task."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any

BACKENDS = ("native", "reference", "torch")
PRODUCTS = ("float32", "float16")
_DEVICE = re.compile(r"cpu(,cpu)*|cuda(:\d+)?|cuda:\d+(,cuda:\d+)+")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


@dataclass(frozen=True)
class Config:
    """Settings in force.

    Attributes
    ----------
    backend : str or None
        "native", "reference" or "torch"; None takes the faster of the first two.
    device : str or None
        Where the torch backend works: "cpu", "cuda" or, of several cards, "cuda:1", or
        "cuda:0,cuda:1" to share products between them; None takes the first card, or the CPU where
        there is none. No other backend takes a device.
    memory : int or None
        Bytes that one call may take; None means a share of the memory that is free.
    threads : int or None
        Upper limit; None means what the environment, the process affinity and the container allow.
    progress : bool
        Whether long work shows how far it is, on standard error: a bar with the package `rich`, a
        line now and then otherwise.
    products : str
        How a card multiplies rows in float32 kernels: "float32" keeps its digits, by three products
        of 16-bit numbers; "float16" takes one of them, twice as fast, with errors of about 1e-4 of
        the largest entry. Certificates are computed in float64 and say what became of that. No
        other backend looks at it.
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
    """Return the settings in force.

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
    """Change settings for the whole process; see `Config` for the names.

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
    """Change settings inside a `with` block.

    Parameters
    ----------
    **settings
        Any of `backend`, `device`, `memory` (bytes, or text such as "2 GB"), `threads`,
        `progress` and `products`.

    Yields
    ------
    Config
        The settings in force inside the block.
    """
    token = _local.set({**_local.get(), **_checked(settings)})
    try:
        yield get_config()
    finally:
        _local.reset(token)


def parse_bytes(size: int | float | str) -> int:
    """Read a number of bytes, given as a number or as text such as "1.5 GB".

    Examples
    --------
    >>> parse_bytes("1.5 GB")
    1500000000
    """
    if isinstance(size, int | float):
        if not math.isfinite(size):
            raise ValueError(f"memory={size!r} must be finite; None leaves it to what is free")
        return int(size)
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]?)b?\s*", size.lower())
    if match is None:
        raise ValueError(f"memory={size!r} is not a size; write bytes or text such as '2 GB'")
    return int(float(match[1]) * _UNITS[match[2]])


def _checked(settings: dict[str, Any]) -> dict[str, Any]:
    known = [field.name for field in fields(Config)]
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise TypeError(f"no setting {unknown[0]!r}; there are {', '.join(known)}")
    if not isinstance(settings.get("progress", False), bool):
        raise ValueError(f"progress={settings['progress']!r} must be True or False")
    products = settings.get("products", PRODUCTS[0])
    if products not in PRODUCTS:
        raise ValueError(f"products={products!r} is unknown; there are {', '.join(PRODUCTS)}")
    backend = settings.get("backend")
    if backend is not None and backend not in BACKENDS:
        raise ValueError(f"backend={backend!r} is unknown; there are {', '.join(BACKENDS)}")
    device = settings.get("device")
    if device is not None and not (isinstance(device, str) and _DEVICE.fullmatch(device)):
        raise ValueError(
            f"device={device!r} is unknown; there are 'cpu', 'cuda' and 'cuda:1', and of several "
            "cards 'cuda:0,cuda:1'"
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
