"""Tables: readers, kinds of columns, checks, and what turns them into numbers."""

from mercer.data.checking.check import check
from mercer.data.checking.findings import Finding, Findings
from mercer.data.column import Column
from mercer.data.errors import DataError
from mercer.data.kinds import Kind
from mercer.data.limits import Limits
from mercer.data.preparation.preparation import Block, TablePreparation
from mercer.data.reading.read import read, read_blocks
from mercer.data.schema import Schema
from mercer.data.table import Table

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
