"""Rows in blocks: more of them than memory holds, or spread over machines."""

from mercer.blocks.arrays import ArrayBlocks
from mercer.blocks.base import Block, Kept, Largest, Least, RowBlocks
from mercer.blocks.files import FileBlocks
from mercer.blocks.functions import FunctionBlocks, blocks_of
from mercer.blocks.local import LocalBlocks
from mercer.blocks.make import as_blocks

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
