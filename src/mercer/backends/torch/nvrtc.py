"""CUDA kernels compiled by NVRTC in threads, each once, and kept on disk for later processes.

NVRTC takes a second or two for a source and holds no lock of Python's, so that sources are compiled
in threads while the fit begins with other work.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import torch

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


# --- code on disk --------------------------------------------------------------------------------
#
# Code is read from a folder that no one else can write to. A folder counts as the user's if it, and
# every folder above it, belongs to the user or to root, and no one else may write there (or only
# add, as in a sticky folder, above it). Otherwise, and on systems without owners, nothing is kept.

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_LARGEST = 1 << 24  # bytes: a kernel has a tenth of a megabyte


def kept(key: str) -> bytes | None:
    """Return what was kept under a key; None if there is nothing, or it is not as it was written.

    Parameters
    ----------
    key : str
        A name of letters and digits.
    """
    folder = _folder()
    if folder is None:
        return None
    try:
        # a pipe of that name, which no one writes to, would be waited for
        number = os.open(folder / key, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(number, "rb") as file:
            if not _is_own(os.fstat(number), stat.S_ISREG):
                return None
            told = file.read(_LARGEST)
    except OSError:
        return None
    digest, code = told[: hashlib.sha256().digest_size], told[hashlib.sha256().digest_size :]
    return code if hashlib.sha256(code).digest() == digest else None


def keep(key: str, code: bytes) -> None:
    """Keep code under a key, for the next process; or not, where that cannot be.

    Parameters
    ----------
    key : str
        A name of letters and digits.
    code : bytes
        What is kept.
    """
    folder = _folder()
    if folder is None:
        return
    with contextlib.suppress(OSError):
        number, name = tempfile.mkstemp(dir=folder)  # for the user alone
        try:
            with open(number, "wb") as file:
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(name, folder / key)  # at once: who reads finds all of it, or nothing
        except OSError:
            os.unlink(name)


def _folder() -> Path | None:
    """Return the folder, made if it is not there; None where others could write to it."""
    if not hasattr(os, "getuid") or not hasattr(os, "O_NOFOLLOW"):
        return None
    try:
        given = os.environ.get("XDG_CACHE_HOME") or ""
        is_given = os.path.isabs(given)
        base = Path(given) if is_given else Path.home() / ".cache"
        if not base.is_absolute():
            return None
        folder = base / "mercer" / "cuda"
        base.mkdir(mode=0o700, parents=is_given, exist_ok=True)  # no one is given a home
        for part in (folder.parent, folder):  # with parents, a mode is given to the last alone
            part.mkdir(mode=0o700, exist_ok=True)
        folder = folder.resolve(strict=True)
        if not _is_own(folder.stat(), stat.S_ISDIR):
            return None
        return folder if all(_is_safe(part.stat()) for part in folder.parents) else None
    except (OSError, RuntimeError):  # no home, or none to write to
        return None


def _is_own(found: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    mine = found.st_uid == os.getuid() and not found.st_mode & _OTHERS
    return mine and is_kind(found.st_mode)


def _is_safe(found: os.stat_result) -> bool:
    """Return whether no one else can put another folder in the place of one below this one."""
    sticky = found.st_mode & stat.S_ISVTX
    return found.st_uid in (0, os.getuid()) and (bool(sticky) or not found.st_mode & _OTHERS)
