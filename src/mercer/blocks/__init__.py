"""Rows in blocks: more of them than memory holds, or spread over machines."""

from mercer.blocks.arrays import ArrayBlocks
from mercer.blocks.base import Block, Kept, Largest, Least, RowBlocks
from mercer.blocks.local import LocalBlocks

__all__ = [
    "ArrayBlocks",
    "Block",
    "Kept",
    "Largest",
    "Least",
    "LocalBlocks",
    "RowBlocks",
]
