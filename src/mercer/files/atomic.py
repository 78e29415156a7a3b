"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_OPEN_FILES = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})")
_STANDARD = {"/dev/stdout": 1, "/dev/stderr": 2}  # links that must stay


def write_file(path: str | os.PathLike[str], parts: Iterable[Any]) -> None:
    """Write a file so that its name never stands for half of it.

    The parts go to a temporary file in the same folder, which takes the name when it is safely
    on the disk. Whatever happens before, an error, Ctrl-C or the end of the process, leaves the
    earlier file as it was; all but the last remove the temporary file, too. A link is replaced, not
    what it points to. Pipes and devices, such as /dev/null, are written to as they are.

    Parameters
    ----------
    path : path
        Where; the folder must be there.
    parts : iterable of bytes-like
        What, in order.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(pathlib.Path(folder) / "note", [b"whole ", b"or not"])
    ...     (pathlib.Path(folder) / "note").read_text()
    'whole or not'
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target}: is a folder; name a file in it")
    number = _open_number(target)
    if number is not None or (target.exists() and not target.is_file()):
        # one more handle of an open file goes on where the file is; a second opening would not
        with os.fdopen(os.dup(number), "wb") if number is not None else target.open("wb") as file:
            file.writelines(parts)
        return
    handle = -1
    temporary = ""
    try:
        # a short name of its own: beside one of 255 bytes there is no room for more
        handle, temporary = tempfile.mkstemp(prefix=".mercer-", suffix=".tmp", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            handle = -1  # the file object closes it from here on
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
        temporary = ""
        _sync_folder(target.parent)
    except OSError as error:
        # the temporary name means nothing to the user; the one asked for does
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        if handle >= 0:
            os.close(handle)
        if temporary:
            os.unlink(temporary)


def _open_number(target: Path) -> int | None:
    """Return the number of the open file that a name such as /dev/stdout stands for."""
    name = os.path.abspath(target)
    found = _OPEN_FILES.fullmatch(name)
    return int(found[1]) if found is not None else _STANDARD.get(name)


def _mode(target: Path) -> int:
    """Return the permissions of the file that is replaced, or those of a new one."""
    if target.is_file() and not target.is_symlink():  # those behind a link are not ours to take
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    """Make the new name safe, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
