"""Where the rows of a fit come from: a table in memory, or a file read block by block."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mercer.array_types import Array
from mercer.data import Kind, Table, TablePreparation, read
from mercer.fitting.phases import Phases
from mercer.fitting.program import file_program, model_program
from mercer.fitting.rows.large import (
    LargeFile,
    default_large_machine,
    exceeds_memory,
    prepared_blocks,
    refuse_in_memory_only,
)
from mercer.fitting.splitting import Split, row_keys, split
from mercer.fitting.targets import Target
from mercer.fitting.training import Trained, Training, train


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
