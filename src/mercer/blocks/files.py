"""Rows of files, of any format that `mercer.data` reads, block by block."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.array_types import Array
from mercer.blocks.arrays import checked_rows
from mercer.blocks.local import LocalBlocks
from mercer.data.limits import Limits
from mercer.data.preparation.preparation import TablePreparation
from mercer.data.reading.formats import format_of
from mercer.data.reading.parquet import parquet_head
from mercer.data.reading.read import read, read_blocks
from mercer.data.reading.source import opened
from mercer.data.table import Table
from mercer.resources import memory_budget

_NO_LIMITS = Limits(bytes=None, rows=None)
_HEAD = 1 << 25  # bytes of a text that kinds of columns are inferred from ...
_NPY_HEAD = 1000  # rows of an array
_HEAD_SHARE = 64  # ... and no more than one in so many of the budget: cells are larger than letters
SAMPLED = 50_000  # rows that the preparation is learnt from


class FileBlocks(LocalBlocks):
    r"""Blocks of the rows of files: CSV, Parquet, JSON lines, ARFF, LIBSVM text, npz.

    What the columns hold is inferred from the beginning of the first file; an entry further on that
    is none of that kind is refused with file, line and column, and `kinds` says it better. npz
    archives are read whole, as what they hold stands at their end.

    Parameters
    ----------
    files : path or list of paths
        Read one after the other; all have the columns of the first.
    target : str, optional
        The column to predict.
    weights : str, optional
        The column that says how often each row counts.
    prepare : TablePreparation, True or None, default=None
        Turns words, dates and gaps into numbers, fitted already, or to be fitted to 50,000 rows
        drawn from all files in a pass of its own; True is ``TablePreparation()``. With None all
        columns must be numbers without gaps.
    kinds : mapping of str to Kind or str, optional
        Kinds of some columns, in place of those inferred.
    columns : list of str, optional
        The columns to keep, beside target and weights.
    format : str, optional
        As in `mercer.data.read`.
    rows : int, optional
        Rows of a block; by default as the memory budget allows.
    random_state : int
        Draws the rows for `prepare`.

    Attributes
    ----------
    prepare : TablePreparation or None
        The fitted preparation.
    schema : Schema
        Names and kinds of the columns.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mercer.blocks import FileBlocks
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "towns.csv"
    >>> _ = path.write_text("age,town,y\n31,Ulm,1.5\n40,Bern,2.5\n52,Ulm,3.5\n")
    >>> blocks = FileBlocks(path, target="y", prepare=True, rows=2)
    >>> [block.y.tolist() for block in blocks]
    [[1.5, 2.5], [3.5]]
    """

    def __init__(
        self,
        files: Any,
        *,
        target: str | None = None,
        weights: str | None = None,
        prepare: Any = None,
        kinds: Mapping[str, Any] | None = None,
        columns: list[str] | None = None,
        format: str | None = None,
        rows: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.files = listed(files)
        self.target, self.weights, self.format = target, weights, format
        self._beside = [name for name in (target, weights) if name is not None]
        kept = None if columns is None else [*columns, *self._beside]
        head = read_head(self.files[0], format, kinds, kept)
        for name in self._beside:
            if name not in head:
                raise KeyError(f"{self.files[0]} has no column {name!r}")
        self.schema = head.schema
        self.n_rows = None
        self.rows = checked_rows(rows, head.shape[1])
        self.prepare = self._fitted(prepare, random_state)
        some = self._three(head.rows(slice(0, 100)))[0]
        self.n_columns, self.dtype = int(some.shape[1]), np.dtype(np.float64)
        if self.prepare is None:
            self.names = tuple(head.drop(*self._beside).columns)
        self.rows = checked_rows(rows, max(head.shape[1], self.n_columns))

    def tables(self) -> Iterator[Table]:
        """Begin a pass over the rows as they are in the files."""
        for file in self.files:
            yield from read_blocks(file, self.schema, self.rows, format=self.format)

    def parts(self) -> Iterator[tuple[Any, Any, Any]]:
        """Read, and make numbers."""
        return map(self._three, self.tables())

    def _three(self, table: Table) -> tuple[Any, Any, Any]:
        return TableRows(self.prepare, self.target, self.weights)(table)

    def _fitted(self, prepare: Any, random_state: int) -> TablePreparation | None:
        made = preparation_of(prepare)
        if made is None or hasattr(made, "plan_"):
            return made
        sample = sampled_table(self.tables(), SAMPLED, random_state)
        learnt: TablePreparation = clone(made).fit(sample.drop(*self._beside))
        return learnt


@dataclass(frozen=True, eq=False)
class TableRows:
    """Makes rows, targets and weights of a table.

    Attributes
    ----------
    prepare : TablePreparation or None
        Fitted; None where all columns are numbers.
    target, weights : str or None
        Names of columns.
    """

    prepare: TablePreparation | None
    target: str | None
    weights: str | None

    def __call__(self, table: Table) -> tuple[Any, Any, Any]:
        """Take targets and weights off, and make numbers of the rest."""
        y = None if self.target is None else table[self.target]
        weights = None if self.weights is None else table[self.weights]
        rows = table.drop(*(name for name in (self.target, self.weights) if name is not None))
        return (rows.matrix() if self.prepare is None else self.prepare.transform(rows)), y, weights


def preparation_of(prepare: Any) -> TablePreparation | None:
    """Return the preparation that is asked for, fitted or not; None for none."""
    if prepare is None or prepare is False:
        return None
    made = TablePreparation() if prepare is True else prepare
    if not isinstance(made, TablePreparation):
        raise TypeError(f"prepare={prepare!r} must be a TablePreparation, True or None")
    return made


def listed(files: Any) -> list[Any]:
    """Return paths as a list; what can be read only once is refused."""
    if isinstance(files, str | os.PathLike):
        files = [files]
    if hasattr(files, "read") or not isinstance(files, Iterable):
        raise TypeError("FileBlocks reads files again and again: give paths, not streams")
    found: list[Any] = list(files)
    if not found:
        raise ValueError("FileBlocks: no files")
    for file in found:
        if not isinstance(file, str | os.PathLike) or file == "-":
            raise TypeError(f"FileBlocks reads files again and again: {file!r:.60} is no path")
    return found


def read_head(
    file: Any,
    format: str | None,
    kinds: Mapping[str, Any] | None,
    columns: list[str] | None,
    **reader: Any,
) -> Table:
    """Return the first rows of a file as a table, for what the columns hold."""
    most = min(_HEAD, max(1 << 16, memory_budget() // _HEAD_SHARE))
    with opened(file, _NO_LIMITS) as data:
        found = format_of(data, format)
        if found == "parquet":
            return Table.of(parquet_head(data, columns), kinds=kinds, columns=columns)
        if os.fspath(file).endswith(".npy"):
            return read(npy_part(file, 0, _NPY_HEAD), format=found, kinds=kinds, columns=columns)
        if found == "npz":
            return read(file, format=found, kinds=kinds, columns=columns)
        pieces, size = [], 0
        while size < most and (piece := data.take()):
            pieces.append(piece)
            size += len(piece)
        content, rest = b"".join(pieces), data.take()
    if rest:  # the last line is not whole
        content = content[: content.rfind(b"\n") + 1] or content
    beginning: Any = io.BytesIO(content)
    beginning.name = os.fspath(file)  # for errors
    return read(beginning, format=found, kinds=kinds, columns=columns, **reader)


def npy_part(file: Any, first: int, last: int) -> Any:
    """Return some rows of an array in a file, as a file of their own in memory."""
    content: Any = io.BytesIO()
    np.save(content, np.load(file, mmap_mode="r")[first:last])
    content.seek(0)
    content.name = os.fspath(file)  # for errors
    return content


def sampled_table(tables: Iterable[Table], count: int, random_state: int) -> Table:
    """Return rows drawn at random in one pass, without replacement, in their order.

    Every row draws a number; those of the smallest numbers are kept.
    """
    rng = np.random.default_rng(random_state)
    kept: Table | None = None
    numbers: Array = np.empty(0)
    for table in tables:
        drawn = rng.random(len(table))
        near = drawn < (numbers.max() if len(numbers) >= count else 1.0)
        part, drawn = table.rows(near), drawn[near]
        kept = part if kept is None else kept.below(part)
        numbers = np.concatenate([numbers, drawn])
        if len(numbers) > count:
            chosen = np.sort(np.argpartition(numbers, count)[:count])
            kept, numbers = kept.rows(chosen), numbers[chosen]
    if kept is None:
        raise ValueError("the files have no rows")
    return kept
