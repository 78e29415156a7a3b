"""Where arithmetic runs. One function chooses; nothing above it knows what was chosen.

`reference` (NumPy) is the specification and always there; `native` (C++) is there when the package
was built with a compiler. `MERCER_BACKEND` or `mercer.config(backend=...)` overrides the choice.
"""

from __future__ import annotations

import os
import warnings
from functools import cache

from mercer.backends.contract import Backend, Band, Pairs, RowParts
from mercer.resources import get_config, limit_idle

__all__ = ["Backend", "Band", "Pairs", "RowParts", "available_backends", "choose_backend"]


def choose_backend() -> Backend:
    """Return the backend in force: configured, else the fastest that is installed."""
    settings = get_config()
    limit_idle(settings.memory)
    name = settings.backend or os.environ.get("MERCER_BACKEND")
    return _load(name) if name else _default()


def available_backends() -> list[str]:
    """List the backends that work here, fastest first.

    Examples
    --------
    >>> "reference" in available_backends()
    True
    """
    return [name for name in _LOADERS if _try(name) is not None]


def _reference() -> Backend:
    from mercer.backends.reference.backend import Reference  # noqa: PLC0415  loaded when chosen

    return Reference()


def _native() -> Backend:
    from mercer.backends.native.backend import Native  # noqa: PLC0415  needs the compiled module

    return Native()


_LOADERS = {"native": _native, "reference": _reference}


def _load(name: str) -> Backend:
    if name not in _LOADERS:
        raise ValueError(f"backend={name!r} is unknown; there are {', '.join(_LOADERS)}")
    backend = _try(name)
    if backend is None:
        raise RuntimeError(
            f"backend={name!r} is not available: Mercer was installed without its compiled core. "
            "Reinstall it where a C++ compiler is present, or use backend='reference'."
        )
    return backend


@cache
def _try(name: str) -> Backend | None:
    try:
        return _LOADERS[name]()
    except ImportError:
        return None


@cache
def _default() -> Backend:
    native = _try("native")
    if native is not None:
        return native
    warnings.warn(
        "Mercer runs on its NumPy reference backend: the compiled core is not installed. Results "
        "are the same, fits are much slower. Reinstall where a C++ compiler is present.",
        RuntimeWarning,
        stacklevel=4,
    )
    return _load("reference")
