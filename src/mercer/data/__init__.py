"""Tables: readers, column kinds, checks and preprocessing."""

from mercer.data.check import Finding, Findings, check
from mercer.data.column import Column
from mercer.data.errors import DataError, Limits
from mercer.data.kinds import Kind
from mercer.data.preparation import Block, TablePreparation
from mercer.data.reading.read import read, read_blocks
from mercer.data.table import Schema, Table

__all__ = [
    "Block",
    "Column",
    "DataError",
    "Finding",
    "Findings",
    "Kind",
    "Limits",
    "Schema",
    "Table",
    "TablePreparation",
    "check",
    "read",
    "read_blocks",
]
