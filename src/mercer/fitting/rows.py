"""Sources of the rows of a fit: tables, files and files larger than memory."""

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
# Files larger than memory: model selection on a sample, fit to all rows.
#
# Rows are read block by block. A random sample of the file is checked, split and compared like a
# table. The final fit uses every row of the file except the held-out rows of the sample and rows
# equal to them.

SAMPLED = 20_000  # rows for model selection and evaluation
# Memory of a table and its preprocessed rows, relative to the file size: numbers of about eight
# characters become eight bytes twice, plus copies; compressed files are several times smaller.
_GROWTH, _GROWTH_PACKED = 3.0, 10.0
_PACKED = (b"PAR1", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
_WHOLE = b"PK\x03\x04"  # npz archives, which cannot be read in blocks
_DISK = 0.5  # largest fraction of the free temporary disk space for preprocessed rows
_PIECE = 1 << 22  # bytes


def exceeds_memory(path: Any) -> bool:
    """Return whether a file exceeds the memory budget as a table or the limits of the readers.

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
        Kinds of some columns. Replaces the kinds inferred from the beginning of the file.
    drop : sequence of str
        Columns to ignore.
    **reader
        See `mercer.data.read`: format, missing, delimiter, header, decimal.

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
        """Return the file with changed kinds and without dropped columns."""
        if not kinds and not drop:
            return self
        given = {**self.reader.get("kinds", {}), **kinds}
        reader = {name: value for name, value in self.reader.items() if name != "kinds"}
        return LargeFile(self.path, given or None, drop, **reader)

    def tables(self) -> Iterator[Table]:
        """Start a pass over the rows."""
        rows = rows_of_block(len(self.schema.names))
        return iter(read_blocks(self.path, self.schema, rows, **self._arguments()))

    def sample(self, random_state: int) -> Table:
        """Return a random sample of the rows of the file, in one pass."""
        warnings.warn(
            f"{self.path} ({format_bytes(os.path.getsize(self.path))}) exceeds the memory "
            f"budget of {format_bytes(memory_budget())} as a table, so it is read block by block: "
            f"model selection uses {SAMPLED} random rows, and the final fit uses all rows. Set "
            "the budget with mercer.config(memory=...)",
            UserWarning,
            stacklevel=5,
        )
        there = self.there()
        if there is not None:
            found: Table = there.sample(SAMPLED, random_state)
            return found
        return sampled_table(self.tables(), SAMPLED, random_state)

    def there(self) -> Any:
        """Return the file as read by the workers of the active cluster, or None without one."""
        client = client_around()
        if client is None:
            return None
        from mercer.rows.dask.blocks import FilesThere  # noqa: PLC0415  imports Dask

        return FilesThere([self.path], self.schema, client, **self._arguments())

    def digest(self) -> str:
        """Return the SHA-256 of the file, computed by a worker of the active cluster, if any."""
        client = client_around()
        if client is not None:
            return str(client.submit(file_digest, os.path.abspath(self.path), pure=False).result())
        return file_digest(self.path)

    def _arguments(self) -> dict[str, Any]:
        known = ("format", "delimiter", "header", "encoding", "parser")
        return {name: value for name, value in self.reader.items() if name in known}


def file_digest(path: str) -> str:
    """Return the SHA-256 of a file."""
    found = hashlib.sha256()
    with Path(path).open("rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()


def default_large_machine(task: str, rows: int) -> tuple[Any, str]:
    """Return the default estimator for rows in blocks and the reason."""
    if task == "classification":
        return LogisticRegression(), (
            "Estimator: logistic regression (LogisticRegression), which needs few passes "
            "over the file and has probabilities; machine= selects another, such as SVC()."
        )
    return KernelRidge(), "Estimator: kernel ridge regression (KernelRidge)."


def refuse_in_memory_only(machine: Any) -> None:
    """Raise if an estimator cannot be fitted to rows in blocks."""
    if machine is not None and not isinstance(machine, type) and not has_fit(machine):
        raise ValueError(
            f"fit: machine={type(machine).__name__}() needs all rows in memory, and the file "
            "exceeds the memory budget; pass KernelRidge(), LogisticRegression(), SVC(), "
            "FisherDiscriminant() or NaiveBayes(), or a table of fewer rows"
        )


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Preprocesses a block of rows without held-out rows and rows without a target.

    Attributes
    ----------
    preparation : TablePreparation
        Fitted preprocessing step.
    wanted : Target
        Task and classes of the sample.
    held_out : (h,) array
        Keys of held-out rows: see `row_keys`.
    """

    preparation: Any
    wanted: Target
    held_out: Array

    def __call__(self, table: Table) -> tuple[Any, Array, None]:
        """Return rows, targets, and no weights."""
        X, y, _ = self.found(table)
        return X, y, None

    def found(self, table: Table) -> tuple[Any, Array, int]:
        """Return rows, targets, and the number of dropped rows of unknown classes."""
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
    """Preprocessed rows of a large file without held-out rows and rows without a target.

    Parameters
    ----------
    file : LargeFile
        The rows.
    preparation : TablePreparation
        Fitted preprocessing step.
    wanted : Target
        Task and classes of the sample.
    held_out : (h,) array
        Keys of held-out rows: see `row_keys`.

    Attributes
    ----------
    strange : int
        Number of rows dropped in the last pass because their class is not in the sample.
    """

    def __init__(self, file: LargeFile, preparation: Any, wanted: Target, held_out: Array) -> None:
        self.file, self.preparation, self.wanted = file, preparation, wanted
        self.held_out, self.n_rows, self.strange = held_out, None, 0
        first = next(iter(self.parts()))
        self.n_columns, self.dtype = int(first[0].shape[1]), np.dtype(first[0].dtype)

    def parts(self) -> Iterator[tuple[Any, Any, Any]]:
        """Read, filter and preprocess the rows."""
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
    """Return the preprocessed rows of a file, cached on disk if there is space.

    On a cluster, the workers read the rows and keep them in memory.
    """
    there = file.there()
    if there is not None:
        return _prepared_there(there, TrainingRows(preparation, wanted, held_out))
    blocks = TrainingBlocks(file, preparation, wanted, held_out)
    size = 8 * blocks.count() * blocks.n_columns
    notes = [
        "The file exceeds the memory budget as a table: checks, split and model selection used "
        "a random sample, and the final fit used "
        f"{blocks.count()} rows of the file, block by block."
    ]
    if blocks.strange:
        notes.append(
            f"{blocks.strange} rows were dropped because their class is not in the sample."
        )
    if size <= _DISK * shutil.disk_usage(tempfile.gettempdir()).free:
        return blocks.mapped(rows_alone), notes
    return blocks, notes


def _prepared_there(there: Any, make: TrainingRows) -> tuple[RowBlocks, list[str]]:
    from mercer.rows.dask.blocks import WorkerFileBlocks  # noqa: PLC0415  imports Dask

    blocks = WorkerFileBlocks.made_by(there, make, len(make.preparation.get_feature_names_out()))
    notes = [
        "The file exceeds the memory budget as a table: checks, split and model selection used a "
        f"random sample, and the final fit used {blocks.count()} rows of the file, which the "
        f"workers of the cluster read in {len(there.pieces)} pieces. Rows were dropped if their "
        "class is not in the sample."
    ]
    return blocks, notes


def rows_alone(block: Block) -> Any:
    """Return the number of rows of a block."""
    return block.X


# --- sources -------------------------------------------------------------------------------------
#
# Sources of the rows of a fit: a table in memory, or a file read block by block.


class RowSource(ABC):
    """Rows of a fit.

    Attributes
    ----------
    table : Table
        Rows for checks, split and model selection.
    learnt : int
        Number of rows of the last fit.
    """

    table: Table
    learnt: int

    @property
    @abstractmethod
    def origin(self) -> tuple[str, str]:
        """SHA-256 and file of the rows."""

    @abstractmethod
    def trained(self, parts: Split, wanted: Target, how: Training, phases: Phases) -> Trained:
        """Preprocess, compare kernels and fit."""

    @abstractmethod
    def refitted(self, pipeline: Pipeline, wanted: Target, seed: int) -> Pipeline:
        """Refit the selected model on all rows."""

    @abstractmethod
    def rows_in_all(self, wanted: Target, held_out: int) -> int:
        """Return the number of rows including held-out rows."""

    @abstractmethod
    def program(
        self, machine: Any, wanted: Target, share: float, options: Any, threshold: Any, labels: Any
    ) -> str:
        """Write the Python program that reproduces the model."""


class TableSource(RowSource):
    """Rows of a table in memory."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @property
    def origin(self) -> tuple[str, str]:
        """SHA-256 and file of the table."""
        return self.table.digest, self.table.source

    def trained(self, parts: Split, wanted: Target, how: Training, phases: Phases) -> Trained:
        """Fit to the training rows."""
        self.learnt = len(parts.train)
        return train(parts.train, parts.train_target, wanted.task, how, phases)

    def refitted(self, pipeline: Pipeline, wanted: Target, seed: int) -> Pipeline:
        """Fit preprocessing and estimator to the whole table."""
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
        """Write the split and the fit without the comparison."""
        return model_program(
            machine, source=self.table.source, kinds=words_of(options.kinds), drop=options.drop,
            target=wanted.name, task=wanted.task, test=share, random_state=options.random_state,
            threshold=threshold, labels=labels,
        )  # fmt: skip


class FileSource(RowSource):
    """Rows of a file larger than memory; `table` is a sample of them."""

    def __init__(self, file: LargeFile, random_state: int) -> None:
        self.file, self.table = file, file.sample(random_state)

    @cached_property
    def origin(self) -> tuple[str, str]:
        """SHA-256 and path of the file."""
        return self.file.digest(), self.file.path

    def trained(self, parts: Split, wanted: Target, how: Training, phases: Phases) -> Trained:
        """Compare kernels on the sample, and fit to all rows that are not held out."""
        refuse_in_memory_only(how.machine)
        held_out = row_keys(parts.held_out) if len(parts.held_out) else np.empty(0, np.uint64)

        def blocks_of(preparation: TablePreparation) -> tuple[Any, list[str]]:
            return self._blocks(preparation, wanted, held_out)

        how = replace(how, calibrate=False)
        rows, y = parts.train, parts.train_target
        return train(rows, y, wanted.task, how, phases, blocks_of, default_large_machine)

    def refitted(self, pipeline: Pipeline, wanted: Target, seed: int) -> Pipeline:
        """Fit the estimator to all rows of the file without refitting the preprocessing."""
        blocks, _ = self._blocks(pipeline[0], wanted, np.empty(0, np.uint64))
        return Pipeline([("prepare", pipeline[0]), ("machine", clone(pipeline[-1]).fit(blocks))])

    def _blocks(
        self, preparation: TablePreparation, wanted: Target, held_out: Array
    ) -> tuple[Any, list[str]]:
        blocks, notes = prepared_blocks(self.file, preparation, wanted, held_out)
        self.learnt = blocks.count()
        return blocks, notes

    def rows_in_all(self, wanted: Target, held_out: int) -> int:
        """Count the training and held-out rows."""
        return self.learnt + held_out

    def program(
        self, machine: Any, wanted: Target, share: float, options: Any, threshold: Any, labels: Any
    ) -> str:
        """Write the call of `mercer.fit`, which repeats the selection on the sample."""
        return file_program(self.file.path, wanted.name, options.given())


def source_of(table: Any, options: Any) -> RowSource:
    """Return the source of the rows. A file larger than memory is read block by block."""
    if isinstance(table, LargeFile):
        return FileSource(table.without(options.kinds, options.drop), options.random_state)
    if exceeds_memory(table):
        file = LargeFile(table, dict(options.kinds) or None, options.drop)
        return FileSource(file, options.random_state)
    return TableSource(read_table(table, options.kinds, options.drop))


def read_table(table: Any, kinds: Mapping[str, Any], drop: Sequence[str]) -> Table:
    """Convert the input to a table with the requested kinds."""
    if isinstance(table, str | os.PathLike) or hasattr(table, "read"):
        table = read(table)
    found = Table.of(table)
    if kinds:
        found = found.with_kinds(dict(kinds))
    return found.drop(*drop) if drop else found


def words_of(kinds: Mapping[str, Any]) -> dict[str, str]:
    """Return the kinds as strings."""
    return {name: one.value if isinstance(one, Kind) else str(one) for name, one in kinds.items()}
