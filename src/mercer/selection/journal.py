"""Journal of a search: a file of finished units, from which an interrupted run is resumed.

Lines of JSON, written once and never changed: the first says what is tuned, by fingerprints of its
parts; every other is one finished unit. Each ends with a checksum of itself and of the first line:
a changed digit, or a line of another journal, is not believed. What was being written when the
process died, at most the end of the last line, is cut off on reading; what a full disk cut short is
taken back at once. Numbers come back exactly as they were.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from mercer.selection.sharing.base import Judged

fcntl: Any
try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None

_KIND = "mercer tuning journal"
_FORM = 2  # of the lines; another number is refused (1 had no checksums)
_LONGEST_FIRST = 2**16  # bytes; a first line takes a thousand, and other files have no lines at all
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)

Results = dict[tuple[int, int], Judged]


class JournalError(ValueError):
    """A file that is not a journal, or the journal of another search."""


class Journal:
    """Finished units of one question, in a file.

    Parameters
    ----------
    path : str or path
        The file; made if it is not there, taken up if it is.
    parts : dict of str to str
        Fingerprints of what is tuned, by what they are of; all must be those of the file.

    Attributes
    ----------
    finished : dict of str to dict
        Results of each unit in the file, by its key.
    """

    def __init__(self, path: str | os.PathLike[str], parts: Mapping[str, str]) -> None:
        self.path = Path(path)
        self.finished: dict[str, Results] = {}
        self._first = _line({"kind": _KIND, "form": _FORM, "parts": dict(parts)})
        self._file: IO[bytes] = open(self.path, "a+b", buffering=0)
        try:
            self._lock()
            self._read(parts)
        except BaseException:
            self._file.close()
            raise

    def write(self, units: Sequence[tuple[str, Results]]) -> None:
        """Add finished units; when this returns, they are on the disk, or none of them is."""
        lines = [
            _line({"unit": key, "results": _written(results)}, self._first)
            for key, results in units
        ]
        self._append(b"".join(lines))

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise JournalError(
                f"{self.path} is in use by another run; wait for it, or use another journal"
            ) from error
        except OSError:  # some file systems have no locks
            return

    def _append(self, data: bytes) -> None:
        """Add lines at the end; where the disk fails, take back what was written of them."""
        before = self._file.seek(0, os.SEEK_END)
        try:
            _write_all(self._file, data)
            os.fsync(self._file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):  # a torn last line is cut off on reading, too
                self._file.truncate(before)
            reason = error.strerror or str(error)
            raise OSError(
                error.errno,
                f"the journal could not be written ({reason}); earlier results are kept. Free "
                "disk space or use a file on another disk, and call again to resume",
                str(self.path),
            ) from error

    def _read(self, parts: Mapping[str, str]) -> None:
        self._file.seek(0)
        first = self._file.readline(_LONGEST_FIRST)
        if not first.endswith(b"\n"):
            if not self._first.startswith(first):
                raise JournalError(self._no_journal())
            self._file.truncate(0)
            self._append(self._first)
            return
        self._compare(first, parts)
        *lines, torn = self._file.read().split(b"\n")
        for number, line in enumerate(lines, start=2):
            self._take(line, number)
        if torn:
            self._file.truncate(self._file.tell() - len(torn))

    def _take(self, line: bytes, number: int) -> None:
        """Remember the unit of one line."""
        if not _is_intact(line, self._first):
            raise JournalError(self._broken(number))
        try:
            unit = json.loads(line)
            self.finished[str(unit["unit"])] = _read_back(unit["results"])
        except _UNREADABLE as error:
            raise JournalError(self._broken(number)) from error

    def _compare(self, first: bytes, parts: Mapping[str, str]) -> None:
        """Raise unless the first line is that of this question."""
        if first == self._first:
            return
        try:
            found = json.loads(first)
            kind, form, theirs = found["kind"], found["form"], dict(found["parts"])
        except _UNREADABLE as error:
            raise JournalError(self._no_journal()) from error
        if kind != _KIND:
            raise JournalError(self._no_journal())
        if form != _FORM:
            raise JournalError(
                f"{self.path} is a journal of another version of Mercer: its format is "
                f"{form!r}, this version writes format {_FORM}. Use "
                "another journal, or remove the file"
            )
        if not _is_intact(first.rstrip(b"\n")):
            raise JournalError(
                f"{self.path}: line 1 is corrupt, so the results cannot be "
                "verified. Use another journal, or "
                "remove the file"
            )
        other = [name for name in parts if theirs.get(name) != parts[name]]
        raise JournalError(
            f"{self.path} is the journal of another search: {', '.join(other) or 'its format'} "
            f"{'differ' if len(other) > 1 else 'differs'}. Use another journal, or "
            "remove the file"
        )

    def _no_journal(self) -> str:
        return f"{self.path} is not a tuning journal; the file is unchanged"

    def _broken(self, number: int) -> str:
        return (
            f"{self.path}: line {number} is corrupt: it cannot be read, or its "
            "checksum does not match. Remove that line to evaluate its candidates again, or use "
            "another journal"
        )


def _write_all(file: IO[bytes], data: bytes) -> None:
    """Write all of the data: one call of an unbuffered file may write a part."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def _line(content: dict[str, Any], first: bytes = b"") -> bytes:
    """Write one line, which ends with a checksum of itself and of the first line."""
    return _summed(json.dumps(content, allow_nan=False).encode("ascii")[:-1], first) + b"\n"


def _is_intact(line: bytes, first: bytes = b"") -> bool:
    """Return whether a line is what was written below this first line."""
    text, _, _ = line.rpartition(b', "sum"')
    return line == _summed(text, first)


def _summed(text: bytes, first: bytes) -> bytes:
    checksum = hashlib.blake2b(first + text, digest_size=8).hexdigest()
    return text + f', "sum": "{checksum}"}}'.encode("ascii")


def _written(results: Results) -> list[dict[str, Any]]:
    return [
        {
            "point": int(point),
            "fold": int(fold),
            "test": {name: _number(value) for name, value in judged.test.items()},
            "train": {name: _number(value) for name, value in judged.train.items()},
            "fit_seconds": float(judged.fit_seconds),
            "score_seconds": float(judged.score_seconds),
            "failure": judged.failure,
            "trouble": judged.trouble,
        }
        for (point, fold), judged in results.items()
    ]


def _read_back(results: list[dict[str, Any]]) -> Results:
    return {
        (int(one["point"]), int(one["fold"])): Judged(
            {name: float(value) for name, value in one["test"].items()},
            {name: float(value) for name, value in one["train"].items()},
            float(one["fit_seconds"]),
            float(one["score_seconds"]),
            str(one["failure"]),
            str(one["trouble"]),
        )
        for one in results
    }


def _number(value: float) -> float | str:
    """Return a number that JSON can write: what is not finite becomes text."""
    value = float(value)
    return value if math.isfinite(value) else repr(value)
