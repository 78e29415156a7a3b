"""Rows in blocks: more of them than memory holds, or spread over computers."""

from mercer.rows.blocks import (
    ArrayBlocks,
    Block,
    FunctionBlocks,
    Kept,
    Largest,
    Least,
    LocalBlocks,
    RowBlocks,
    blocks_of,
)
from mercer.rows.file_blocks import FileBlocks
from mercer.rows.make_blocks import as_blocks

__all__ = [
    "ArrayBlocks",
    "Block",
    "FileBlocks",
    "FunctionBlocks",
    "Kept",
    "Largest",
    "Least",
    "LocalBlocks",
    "RowBlocks",
    "as_blocks",
    "blocks_of",
]
