"""Sources of the rows of a fit: tables, files, and files larger than memory."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mercer.array_types import Array
from mercer.data import Kind, Table, TablePreparation, read, read_blocks
from mercer.data.errors import Limits
from mercer.fitting.model import file_program, model_program
from mercer.fitting.phases import Phases
from mercer.fitting.target import Split, Target, missing_of, row_keys, split, target_values
from mercer.fitting.training import Trained, Training, train
from mercer.machines.block_fits import has_fit
from mercer.machines.logistic.logistic_regression import LogisticRegression
from mercer.machines.ridge.kernel_ridge import KernelRidge
from mercer.resources import format_bytes, memory_budget, within_budget
from mercer.rows.blocks import Block, LocalBlocks, RowBlocks, rows_of_block
from mercer.rows.dask.cluster import client_around
from mercer.rows.file_blocks import read_head, sampled_table

# --- large ---------------------------------------------------------------------------------------
#
# Files that memory does not hold as a table: settings are chosen on a sample, fitted to all rows.
#
# Rows are read block by block. Those of a sample drawn at random from the whole file are checked,
# split and compared as any table is; what is then fitted sees every row of the file but those
# that the sample holds out, and rows equal to them.

SAMPLED = 20_000  # rows that settings are chosen on, and whose share is held out
# What a table and its prepared rows take over the bytes of the file: numbers of about eight letters
# become eight bytes twice, with copies on the way; compressed ones are several times smaller.
_GROWTH, _GROWTH_PACKED = 3.0, 10.0
_PACKED = (b"PAR1", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
_WHOLE = b"PK\x03\x04"  # npz archives, which have no blocks
_DISK = 0.5  # of what is free where temporary files are: more prepared rows are not kept there
_PIECE = 1 << 22  # bytes


def exceeds_memory(path: Any) -> bool:
    """Return whether a file takes more than the memory budget as a table, or is too large to read.

    Examples
    --------
    >>> exceeds_memory("no such file")
    False
    """
    if not isinstance(path, str | os.PathLike) or not os.path.isfile(path):
        return False
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        start = file.read(8)
    if start.startswith(_WHOLE):
        return False
    most = Limits().bytes
    growth = _GROWTH_PACKED if start.startswith(_PACKED) else _GROWTH
    return not within_budget(growth * size) or (most is not None and size > most)


class LargeFile:
    """A file that is read block by block.

    Parameters
    ----------
    path : str or path
        CSV, Parquet, JSON lines, ARFF or LIBSVM text.
    kinds : mapping of str to Kind or str, optional
        Kinds of some columns, in place of those that its beginning says.
    drop : sequence of str
        Columns to leave out.
    **reader
        As in `mercer.data.read`: format, missing, delimiter, header, decimal.

    Attributes
    ----------
    schema : Schema
        Names and kinds of the columns.
    columns : list of str
        Names of all columns of the file.
    """

    def __init__(
        self,
        path: Any,
        kinds: Mapping[str, Any] | None = None,
        drop: Sequence[str] = (),
        **reader: Any,
    ) -> None:
        self.path, self.reader = os.fspath(path), reader
        others = {name: value for name, value in reader.items() if name != "format"}
        head = read_head(self.path, reader.get("format"), kinds, None, **others)
        self.columns = list(head.columns)
        self.schema = head.drop(*drop).schema

    def without(self, kinds: Mapping[str, Any], drop: Sequence[str]) -> LargeFile:
        """Return the file with other kinds of some columns, and without others."""
        if not kinds and not drop:
            return self
        given = {**self.reader.get("kinds", {}), **kinds}
        reader = {name: value for name, value in self.reader.items() if name != "kinds"}
        return LargeFile(self.path, given or None, drop, **reader)

    def tables(self) -> Iterator[Table]:
        """Begin a pass over the rows."""
        rows = rows_of_block(len(self.schema.names))
        return iter(read_blocks(self.path, self.schema, rows, **self._arguments()))

    def sample(self, random_state: int) -> Table:
        """Return rows drawn at random from the whole file, in one pass."""
        warnings.warn(
            f"{self.path} ({format_bytes(os.path.getsize(self.path))}) takes more memory as a "
            f"table than the budget of {format_bytes(memory_budget())} has, so it is read block "
            f"by block: settings are chosen on {SAMPLED} rows drawn at random, and the machine is "
            "fitted to all. mercer.config(memory=...) sets the budget",
            UserWarning,
            stacklevel=5,
        )
        there = self.there()
        if there is not None:
            found: Table = there.sample(SAMPLED, random_state)
            return found
        return sampled_table(self.tables(), SAMPLED, random_state)

    def there(self) -> Any:
        """Return the file as workers of the cluster around read it; None without one."""
        client = client_around()
        if client is None:
            return None
        from mercer.rows.dask.blocks import FilesThere  # noqa: PLC0415  imports Dask

        return FilesThere([self.path], self.schema, client, **self._arguments())

    def digest(self) -> str:
        """Return the sha256 of the file, which a worker of the cluster around finds, if any."""
        client = client_around()
        if client is not None:
            return str(client.submit(file_digest, os.path.abspath(self.path), pure=False).result())
        return file_digest(self.path)

    def _arguments(self) -> dict[str, Any]:
        known = ("format", "delimiter", "header", "encoding", "parser")
        return {name: value for name, value in self.reader.items() if name in known}


def file_digest(path: str) -> str:
    """Return the sha256 of a file."""
    found = hashlib.sha256()
    with Path(path).open("rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()


def default_large_machine(task: str, rows: int) -> tuple[Any, str]:
    """Return the machine for rows in blocks, and why."""
    if task == "classification":
        return LogisticRegression(), (
            "The machine is a logistic regression (LogisticRegression), which needs few passes "
            "over the file and has probabilities; machine=SVC() asks for another."
        )
    return KernelRidge(), "The machine is a kernel ridge regression (KernelRidge)."


def refuse_in_memory_only(machine: Any) -> None:
    """Raise if a machine has no fit over blocks, before any work is done."""
    if machine is not None and not isinstance(machine, type) and not has_fit(machine):
        raise ValueError(
            f"fit: machine={type(machine).__name__}() needs all rows in memory, and the file "
            "exceeds the memory budget; pass KernelRidge(), LogisticRegression(), SVC(), "
            "FisherDiscriminant() or NaiveBayes(), or a table of fewer rows"
        )


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Makes numbers of a table, without rows held out, and those without a target.

    Attributes
    ----------
    preparation : TablePreparation
        Fitted.
    wanted : Target
        Task and classes, as the sample has them.
    held_out : (h,) array
        Keys of rows that nothing may learn from: see `row_keys`.
    """

    preparation: Any
    wanted: Target
    held_out: Array

    def __call__(self, table: Table) -> tuple[Any, Array, None]:
        """Return rows, targets, and no weights."""
        X, y, _ = self.found(table)
        return X, y, None

    def found(self, table: Table) -> tuple[Any, Array, int]:
        """Return rows, targets, and how many rows of unknown classes were left out."""
        name, task = self.wanted.name, self.wanted.task
        table = table.rows(~missing_of(table[name]))
        features, y = table.drop(name), target_values(table, name, task)
        kept, strange = ~np.isin(row_keys(features), self.held_out), 0
        if self.wanted.classes:
            known = np.isin(y, np.asarray(self.wanted.classes))
            strange = int((~known).sum())
            kept &= known
        return self.preparation.transform(features.rows(kept)), y[kept], strange


class TrainingBlocks(LocalBlocks):
    """Rows of a large file as numbers, without those held out, and those without a target.

    Parameters
    ----------
    file : LargeFile
        The rows.
    preparation : TablePreparation
        Fitted.
    wanted : Target
        Task and classes, as the sample has them.
    held_out : (h,) array
        Keys of rows that nothing may learn from: see `row_keys`.

    Attributes
    ----------
    strange : int
        Rows of classes that the sample lacks, in the last pass; they are left out.
    """

    def __init__(self, file: LargeFile, preparation: Any, wanted: Target, held_out: Array) -> None:
        self.file, self.preparation, self.wanted = file, preparation, wanted
        self.held_out, self.n_rows, self.strange = held_out, None, 0
        first = next(iter(self.parts()))
        self.n_columns, self.dtype = int(first[0].shape[1]), np.dtype(first[0].dtype)

    def parts(self) -> Iterator[tuple[Any, Any, Any]]:
        """Read, leave rows out, and prepare."""
        make = TrainingRows(self.preparation, self.wanted, self.held_out)
        self.strange = 0
        for table in self.file.tables():
            X, y, strange = make.found(table)
            self.strange += strange
            if len(y):
                yield X, y, None


def prepared_blocks(
    file: LargeFile, preparation: Any, wanted: Target, held_out: Array
) -> tuple[RowBlocks, list[str]]:
    """Return the rows of a file as numbers, read once and kept on the disk where it has room.

    On a cluster the workers read them, and keep them in memory.
    """
    there = file.there()
    if there is not None:
        return _prepared_there(there, TrainingRows(preparation, wanted, held_out))
    blocks = TrainingBlocks(file, preparation, wanted, held_out)
    size = 8 * blocks.count() * blocks.n_columns
    notes = [
        "The file takes more memory as a table than the budget has: rows drawn at random were "
        "checked, split and compared, and the machine was fitted to "
        f"{blocks.count()} rows of the file, block by block."
    ]
    if blocks.strange:
        notes.append(
            f"{blocks.strange} rows of classes that no row of the sample has were left out."
        )
    if size <= _DISK * shutil.disk_usage(tempfile.gettempdir()).free:
        return blocks.mapped(rows_alone), notes
    return blocks, notes


def _prepared_there(there: Any, make: TrainingRows) -> tuple[RowBlocks, list[str]]:
    from mercer.rows.dask.blocks import WorkerFileBlocks  # noqa: PLC0415  imports Dask

    blocks = WorkerFileBlocks.made_by(there, make, len(make.preparation.get_feature_names_out()))
    notes = [
        "The file takes more memory as a table than the budget has: rows drawn at random were "
        f"checked, split and compared, and the machine was fitted to {blocks.count()} rows of the "
        f"file, which the workers of the cluster read in {len(there.pieces)} pieces. Rows of "
        "classes that no row of the sample has are left out."
    ]
    return blocks, notes


def rows_alone(block: Block) -> Any:
    """Return the rows of a block."""
    return block.X


# --- sources -------------------------------------------------------------------------------------
#
# Where the rows of a fit come from: a table in memory, or a file read block by block.


class RowSource(ABC):
    """Rows of a fit.

    Attributes
    ----------
    table : Table
        What is checked, split and compared.
    learnt : int
        Rows that the machine was fitted to last.
    """

    table: Table
    learnt: int

    @property
    @abstractmethod
    def origin(self) -> tuple[str, str]:
        """The sha256 of the rows, and the file they are from."""

    @abstractmethod
    def trained(self, parts: Split, wanted: Target, how: Training, phases: Phases) -> Trained:
        """Prepare, compare and fit."""

    @abstractmethod
    def refitted(self, pipeline: Pipeline, wanted: Target, seed: int) -> Pipeline:
        """Fit the same settings to all rows."""

    @abstractmethod
    def rows_in_all(self, wanted: Target, held_out: int) -> int:
        """Return how many rows there are, those held out among them."""

    @abstractmethod
    def program(
        self, machine: Any, wanted: Target, share: float, options: Any, threshold: Any, labels: Any
    ) -> str:
        """Write the Python program that makes the same model."""


class TableSource(RowSource):
    """Rows of a table in memory."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @property
    def origin(self) -> tuple[str, str]:
        """Of the table."""
        return self.table.digest, self.table.source

    def trained(self, parts: Split, wanted: Target, how: Training, phases: Phases) -> Trained:
        """Fit to the rows to learn from."""
        self.learnt = len(parts.train)
        return train(parts.train, parts.train_target, wanted.task, how, phases)

    def refitted(self, pipeline: Pipeline, wanted: Target, seed: int) -> Pipeline:
        """Fit preparation and machine to the whole table."""
        parts = split(wanted.table, wanted.name, task=wanted.task, test=0.0, random_state=seed)
        made = Pipeline([("prepare", TablePreparation()), ("machine", clone(pipeline[-1]))])
        self.learnt = len(wanted.table)
        return made.fit(parts.train, parts.train_target)

    def rows_in_all(self, wanted: Target, held_out: int) -> int:
        """Count the rows with a target."""
        return len(wanted.table)

    def program(
        self, machine: Any, wanted: Target, share: float, options: Any, threshold: Any, labels: Any
    ) -> str:
        """Write split and fit without their choices."""
        return model_program(
            machine, source=self.table.source, kinds=words_of(options.kinds), drop=options.drop,
            target=wanted.name, task=wanted.task, test=share, random_state=options.random_state,
            threshold=threshold, labels=labels,
        )  # fmt: skip


class FileSource(RowSource):
    """Rows of a file that memory does not hold: the table is a sample of them."""

    def __init__(self, file: LargeFile, random_state: int) -> None:
        self.file, self.table = file, file.sample(random_state)

    @cached_property
    def origin(self) -> tuple[str, str]:
        """Of the file."""
        return self.file.digest(), self.file.path

    def trained(self, parts: Split, wanted: Target, how: Training, phases: Phases) -> Trained:
        """Compare on the sample, and fit to all rows but those held out."""
        refuse_in_memory_only(how.machine)
        held_out = row_keys(parts.held_out) if len(parts.held_out) else np.empty(0, np.uint64)

        def blocks_of(preparation: TablePreparation) -> tuple[Any, list[str]]:
            return self._blocks(preparation, wanted, held_out)

        how = replace(how, calibrate=False)
        rows, y = parts.train, parts.train_target
        return train(rows, y, wanted.task, how, phases, blocks_of, default_large_machine)

    def refitted(self, pipeline: Pipeline, wanted: Target, seed: int) -> Pipeline:
        """Fit the machine to all rows of the file, prepared as before."""
        blocks, _ = self._blocks(pipeline[0], wanted, np.empty(0, np.uint64))
        return Pipeline([("prepare", pipeline[0]), ("machine", clone(pipeline[-1]).fit(blocks))])

    def _blocks(
        self, preparation: TablePreparation, wanted: Target, held_out: Array
    ) -> tuple[Any, list[str]]:
        blocks, notes = prepared_blocks(self.file, preparation, wanted, held_out)
        self.learnt = blocks.count()
        return blocks, notes

    def rows_in_all(self, wanted: Target, held_out: int) -> int:
        """Count the rows that were learnt from, and those held out."""
        return self.learnt + held_out

    def program(
        self, machine: Any, wanted: Target, share: float, options: Any, threshold: Any, labels: Any
    ) -> str:
        """Write the call of `mercer.fit`: the choice needs its sample."""
        return file_program(self.file.path, wanted.name, options.given())


def source_of(table: Any, options: Any) -> RowSource:
    """Return where rows come from; a path to a file past memory is read block by block."""
    if isinstance(table, LargeFile):
        return FileSource(table.without(options.kinds, options.drop), options.random_state)
    if exceeds_memory(table):
        file = LargeFile(table, dict(options.kinds) or None, options.drop)
        return FileSource(file, options.random_state)
    return TableSource(read_table(table, options.kinds, options.drop))


def read_table(table: Any, kinds: Mapping[str, Any], drop: Sequence[str]) -> Table:
    """Return a table from whatever is given, with the kinds that were asked for."""
    if isinstance(table, str | os.PathLike) or hasattr(table, "read"):
        table = read(table)
    found = Table.of(table)
    if kinds:
        found = found.with_kinds(dict(kinds))
    return found.drop(*drop) if drop else found


def words_of(kinds: Mapping[str, Any]) -> dict[str, str]:
    """Return kinds as words."""
    return {name: one.value if isinstance(one, Kind) else str(one) for name, one in kinds.items()}
