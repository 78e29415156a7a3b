"""What is kept of blocks on this machine: in memory within a share of the budget, then in a file.

A vector of a number for each row is small beside the rows, but not beside a budget that the rows
exceed many times.
"""

from __future__ import annotations

import errno
import pickle
import tempfile
from typing import IO, Any
from weakref import WeakSet, finalize

from mercer.blocks.base import Kept
from mercer.resources import within_budget

_SHARE = 0.25  # of the budget, for all that is kept of the blocks of one table


class Shelf:
    """The room that all that is kept of one table shares.

    Attributes
    ----------
    kept : WeakSet of KeptHere
        What is alive: what nobody holds any more gives its room back.
    """

    def __init__(self) -> None:
        self.kept: WeakSet[KeptHere] = WeakSet()

    def empty(self) -> KeptHere:
        """Return a list to keep results in."""
        made = KeptHere(self)
        self.kept.add(made)
        return made

    def has_room(self, size: int) -> bool:
        """Return whether so many bytes more stay within the share."""
        return within_budget((size + sum(one.bytes for one in self.kept)) / _SHARE)


class KeptHere(Kept):
    """Results, one for each block, in their order.

    Attributes
    ----------
    bytes : int
        What those in memory take.
    """

    def __init__(self, shelf: Shelf) -> None:
        self.shelf, self.bytes = shelf, 0
        self._values: list[Any] = []  # a result, or its place in the file
        self._file: IO[bytes] | None = None  # without a name: gone with this object

    def __len__(self) -> int:
        return len(self._values)

    def append(self, value: Any) -> None:
        """Keep the result of the next block."""
        size = serialised_bytes(value)
        if self.shelf.has_room(size):
            self.bytes += size
            self._values.append(value)
        else:
            self._values.append(self._written(value))

    def __getitem__(self, number: int) -> Any:
        found = self._values[number]
        if not isinstance(found, Place):
            return found
        assert self._file is not None
        self._file.seek(found.offset)
        return pickle.load(self._file)

    def _written(self, value: Any) -> Place:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="mercer-")
                finalize(self, self._file.close)
            place = Place(self._file.seek(0, 2))
            pickle.dump(value, self._file, protocol=5)
            self._file.flush()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise OSError(
                error.errno,
                "what is kept of each row exceeds the memory budget and goes to a file, but "
                f"{tempfile.gettempdir()} is full; let TMPDIR name a folder with room, or allow "
                "more memory: mercer.config(memory=...)",
            ) from error
        return place


class Place:
    """Where a result begins in the file."""

    def __init__(self, offset: int) -> None:
        self.offset = offset


def serialised_bytes(value: Any) -> int:
    """Count the bytes that a value has when it is written; arrays are not copied for it."""
    buffers: list[Any] = []
    head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return len(head) + int(sum(buffer.raw().nbytes for buffer in buffers))
