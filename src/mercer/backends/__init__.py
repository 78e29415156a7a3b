"""Backends, which do the arithmetic (NumPy, C++, torch), and the choice between them.

`reference` (NumPy) is the specification and always there; `native` (C++) is there when the package
was built with a compiler; `torch` runs on a graphics card where torch is installed, and is taken
only when asked for. `MERCER_BACKEND` or `mercer.config(backend=..., device=...)` overrides the
choice.
"""

from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

from mercer.backends.contract import Backend, Band, Pairs, RowParts
from mercer.resources import PRODUCTS, get_config, limit_idle

__all__ = ["Backend", "Band", "Pairs", "RowParts", "available_backends", "choose_backend"]

_ON_PROCESSORS = ("native", "reference")  # the faster first


def choose_backend() -> Backend:
    """Return the backend in force: configured, else the fastest that is installed."""
    settings = get_config()
    limit_idle(settings.memory)
    name = settings.backend or os.environ.get("MERCER_BACKEND")
    if settings.device is not None and name != "torch":
        raise ValueError(
            f"device={settings.device!r} is for the torch backend; say "
            f"config(backend='torch', device={settings.device!r}), or leave device=None"
        )
    if settings.products != PRODUCTS[0] and name in _ON_PROCESSORS:
        raise ValueError(
            f"products={settings.products!r} is for the torch backend: backend={name!r} has no "
            f"such products; leave products={PRODUCTS[0]!r}"
        )
    return _load(name, settings.device) if name else _default()


def available_backends() -> list[str]:
    """List the backends that are installed here: for processors the faster first, then torch.

    Examples
    --------
    >>> "reference" in available_backends()
    True
    """
    found = [name for name in _ON_PROCESSORS if _try(name, None) is not None]
    # looked for only: to import torch takes seconds
    return [*found, "torch"] if importlib.util.find_spec("torch") else found


def _reference(device: None) -> Backend:
    from mercer.backends.reference.backend import Reference  # noqa: PLC0415  loaded when chosen

    return Reference()


def _native(device: None) -> Backend:
    from mercer.backends.native.backend import Native  # noqa: PLC0415  needs the compiled module

    return Native()


def _torch(device: str | None) -> Backend:
    from mercer.backends.torch.backend import Torch  # noqa: PLC0415  takes a second to import

    return Torch(device, _default())


_LOADERS: dict[str, Callable[[Any], Backend]] = {
    "native": _native,
    "reference": _reference,
    "torch": _torch,
}
_REMEDIES = {
    "native": "Mercer was installed without its compiled core. Reinstall it where a C++ compiler "
    "is present, or use backend='reference'.",
    "torch": "torch is not installed. Install Mercer with its extra [torch], or use another one.",
}


def _load(name: str, device: str | None = None) -> Backend:
    if name not in _LOADERS:
        raise ValueError(f"backend={name!r} is unknown; there are {', '.join(_LOADERS)}")
    backend = _try(name, device)
    if backend is None:
        raise RuntimeError(f"backend={name!r} is not available: {_REMEDIES[name]}")
    return backend


@cache
def _try(name: str, device: str | None) -> Backend | None:
    try:
        return _LOADERS[name](device)
    except ImportError:
        return None


@cache
def _default() -> Backend:
    native = _try("native", None)
    if native is not None:
        return native
    warnings.warn(
        "Mercer runs on its NumPy reference backend: the compiled core is not installed. Results "
        "are the same, fits are much slower. Reinstall where a C++ compiler is present.",
        RuntimeWarning,
        stacklevel=4,
    )
    return _load("reference")
