"""A file that remembers finished units, so that a run that was cut short can be taken up again.

Lines of JSON, written once and never changed: the first says what is tuned, by fingerprints of its
parts; every other is one finished unit. What was being written when the process died, at most the
end of the last line, is cut off on reading. Numbers come back exactly as they were.
"""

from __future__ import annotations

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
_FORM = 1  # of the lines; another number is refused

Results = dict[tuple[int, int], Judged]


class JournalError(ValueError):
    """A file that is no journal, or one of another question."""


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
        self._file: IO[bytes] = open(self.path, "a+b")
        try:
            self._lock()
            self._read({"kind": _KIND, "form": _FORM, "parts": dict(parts)})
        except BaseException:
            self._file.close()
            raise

    def write(self, units: Sequence[tuple[str, Results]]) -> None:
        """Add finished units; when this returns, they are on the disk."""
        lines = [_line({"unit": key, "results": _written(results)}) for key, results in units]
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
                f"{self.path} is being written by another run; wait for it, or give this one a "
                "journal of its own"
            ) from error
        except OSError:  # some file systems have no locks
            return

    def _append(self, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self, header: dict[str, Any]) -> None:
        self._file.seek(0)
        *lines, torn = self._file.read().split(b"\n")
        if not lines:
            if not _line(header).startswith(torn):
                raise JournalError(self._no_journal())
            self._file.truncate(0)
            self._append(_line(header))
            return
        self._compare(self._parsed(lines[0], 1), header)
        for number, line in enumerate(lines[1:], start=2):
            unit = self._parsed(line, number)
            try:
                self.finished[str(unit["unit"])] = _read_back(unit["results"])
            except (KeyError, TypeError, ValueError) as error:
                raise JournalError(self._broken(number)) from error
        if torn:
            self._file.truncate(sum(len(line) + 1 for line in lines))

    def _parsed(self, line: bytes, number: int) -> Any:
        try:
            found = json.loads(line.decode("utf-8"))
        except ValueError as error:
            raise JournalError(self._no_journal() if number == 1 else self._broken(number)) from (
                error
            )
        if not isinstance(found, dict):
            raise JournalError(self._no_journal() if number == 1 else self._broken(number))
        return found

    def _compare(self, found: dict[str, Any], wanted: dict[str, Any]) -> None:
        if found.get("kind") != _KIND or not isinstance(found.get("parts"), dict):
            raise JournalError(self._no_journal())
        parts = wanted["parts"]
        other = [name for name in parts if found["parts"].get(name) != parts[name]]
        if found.get("form") != _FORM or other:
            raise JournalError(
                f"{self.path} is the journal of another question: {', '.join(other) or 'its form'} "
                f"{'differ' if len(other) > 1 else 'differs'}. Give this run a journal of its own, "
                "or remove the file"
            )

    def _no_journal(self) -> str:
        return f"{self.path} is not a journal of tuning; it was left as it is"

    def _broken(self, number: int) -> str:
        return (
            f"{self.path}: line {number} cannot be read. Remove it, and what is lost will be judged"
            " again, or give this run a journal of its own"
        )


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, allow_nan=False).encode("ascii") + b"\n"


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
    """Give a number that JSON can write: what is not finite becomes text."""
    value = float(value)
    return value if math.isfinite(value) else repr(value)
