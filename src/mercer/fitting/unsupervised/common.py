"""What `cluster`, `project` and `topics` do alike: read, check, prepare, finish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline

from mercer.data import Table, TablePreparation, check
from mercer.fitting.model import Settings
from mercer.fitting.phases import Phases
from mercer.fitting.program import imports_of, pipeline_lines, table_imports, table_lines
from mercer.fitting.rows.sources import read_table, words_of
from mercer.fitting.steps import certificate_of, versions


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table whose columns have become numbers.

    Attributes
    ----------
    table : Table
        The rows.
    findings : Findings
        What was found in them.
    preparation : TablePreparation
        Fitted.
    rows : array or CSR matrix
        The numbers.
    kinds, drop : mapping, tuple
        What the user asked for.
    phases : Phases
        The clock.
    """

    table: Table
    findings: Any
    preparation: TablePreparation
    rows: Any
    kinds: Mapping[str, Any]
    drop: tuple[str, ...]
    phases: Phases


def prepared(table: Any, kinds: Mapping[str, Any] | None, drop: Sequence[str]) -> Prepared:
    """Read, check and prepare."""
    phases = Phases(None, None)
    with phases.phase("check", "the table is checked"):
        found = read_table(table, kinds or {}, drop)
        findings = check(found)
    with phases.phase("prepare", "columns become numbers"):
        preparation = TablePreparation()
        rows = preparation.fit_transform(found)
    return Prepared(found, findings, preparation, rows, kinds or {}, tuple(drop), phases)


def finished(data: Prepared, machine: Any, notes: Sequence[str], seed: int) -> dict[str, Any]:
    """Return the fields that all models without a target have."""
    with data.phases.phase("certify", "the answer is certified"):
        certificate = certificate_of(machine)
    source = data.table.source
    program = [
        "from sklearn.pipeline import Pipeline",
        *imports_of(machine),
        *table_imports(source),
        "",
        *table_lines(source, words_of(data.kinds), data.drop),
        *pipeline_lines(machine),
        "model.fit(table)",
    ]
    return {
        "pipeline": Pipeline([("prepare", data.preparation), ("machine", machine)]),
        "schema": data.table.schema,
        "findings": data.findings,
        "certificate": certificate,
        "notes": (*data.preparation.describe(), *notes),
        "python": "\n".join(program) + "\n",
        "settings": settings_of(data.table, seed, data.phases),
        "table": data.table,
    }


def settings_of(table: Table, seed: int, phases: Phases) -> Settings:
    """Return how a model of all rows of a table came about."""
    rows = len(table)
    return Settings(
        seed, versions(), table.digest, table.source, rows, rows, 0, {}, dict(phases.seconds)
    )
