"""What was compiled, in a folder of the user's: code is read from where no one else can write.

A folder counts as the user's if it, and every folder above it, belongs to the user or to root, and
no one else may write there (or only add, as in a sticky folder, above it). Where that is not so, or
a system has no such owners, nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

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
