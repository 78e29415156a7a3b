"""Rows in blocks: more of them than memory holds, or spread over computers."""

from mercer.rows.blocks import Block, Kept, Largest, Least, LocalBlocks, RowBlocks
from mercer.rows.file_blocks import FileBlocks
from mercer.rows.make_blocks import ArrayBlocks, FunctionBlocks, as_blocks, blocks_of

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
