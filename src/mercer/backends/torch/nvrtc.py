"""CUDA texts become kernels: side by side, each once, and what was compiled is kept on disk.

NVRTC takes a second or two for a text and holds no lock of Python's, so that texts are compiled in
threads, beside what else a fit begins with. What it made is read again by the next process.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import Any

import torch

from mercer.backends.torch.kept_code import keep, kept

_WIDE = 48 << 10  # bytes of shared memory from which a kernel has to ask for them
_BEGUN: dict[tuple[str, str, int, int], Future[Any]] = {}
_LOOKING = Lock()


def is_compiled() -> bool:
    """Return whether this torch compiles CUDA texts."""
    return hasattr(torch.cuda, "_compile_kernel")


def begin(text: str, name: str, card: int, shared: int = 0) -> Future[Any]:
    """Compile a text, if no one has begun to, without waiting for it.

    Parameters
    ----------
    text : str
        CUDA C++.
    name : str
        Of the kernel in it.
    card : int
        Number of the card.
    shared : int
        Bytes of shared memory that it is launched with, beside those in the text.
    """
    key = (text, name, card, shared)
    with _LOOKING:
        if key not in _BEGUN or _failed(_BEGUN[key]):
            _BEGUN[key] = _threads().submit(_made, *key)
        return _BEGUN[key]


def kernel(text: str, name: str, card: int, shared: int = 0) -> Any:
    """Return the kernel of a text, as `torch.cuda._compile_kernel` does; see `begin`."""
    return begin(text, name, card, shared).result()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(4, "mercer-nvrtc")


def _failed(future: Future[Any]) -> bool:
    return future.done() and (future.cancelled() or future.exception() is not None)


def _made(text: str, name: str, card: int, shared: int) -> Any:
    with torch.cuda.device(card):
        torch.cuda.current_stream().query()  # a new thread has no context before it asks something
        found = _loaded(text, name)
        if shared >= _WIDE:
            found.set_shared_memory_config(shared)
    return found


def _loaded(text: str, name: str) -> Any:
    """Compile, or read what was compiled before; by the plain way where torch has changed."""
    utilities: Any = torch.cuda._utils
    if not all(hasattr(utilities, part) for part in ("_nvrtc_compile", "_cuda_load_module")):
        return torch.cuda._compile_kernel(text, name)
    card = torch.cuda.get_device_capability()
    told = (text, name, str(card), torch.__version__, str(torch.version.cuda))
    key = hashlib.sha256("\0".join(told).encode()).hexdigest()
    code = kept(key)
    if code is not None:
        try:
            return _of_code(utilities, code)
        except (RuntimeError, ValueError):  # of another driver: it is compiled anew
            pass
    binary, mangled = utilities._nvrtc_compile(text, name)
    code = mangled.encode() + b"\0" + binary
    found = _of_code(utilities, code)
    keep(key, code)
    return found


def _of_code(utilities: Any, code: bytes) -> Any:
    mangled, _, binary = code.partition(b"\0")
    return utilities._cuda_load_module(binary, [mangled.decode()])[mangled.decode()]
