"""How each distance is searched: by which candidates, the quickest first."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import torch

from mercer.backends.torch.fusing.nearest import absolute, candidates
from mercer.backends.torch.fusing.nearest.absolute import AbsoluteCandidates
from mercer.backends.torch.fusing.nearest.buckets import Found
from mercer.backends.torch.fusing.nearest.candidates import Candidates, kinds_of_products
from mercer.expression import AbsDist, Expression, SqDist

Tensor: TypeAlias = torch.Tensor


class Search(Protocol):
    """A search for candidates."""

    @property
    def width(self) -> int:
        """How many scores are written for each row."""

    def search(self, rows: Tensor) -> Found:
        """Find candidates for float64 rows."""


def suits(key: Expression, count: int, columns: int, features: int) -> bool:
    """Return whether a key is searched by candidates, of so many columns and features."""
    if isinstance(key, SqDist):
        return candidates.suits(count, columns, features)
    return isinstance(key, AbsDist) and absolute.suits(count, columns, features)


def searches(key: Expression, columns: Tensor, count: int) -> list[Search]:
    """Return the searches of a key that `suits`, the quickest first.

    Parameters
    ----------
    key : Expression
        What is to be small.
    columns : (m, d) float64 tensor
        Columns, about the centre that rows are taken about.
    count : int
        How many nearest columns are wanted.
    """
    if isinstance(key, AbsDist):
        return [AbsoluteCandidates(columns, count)]
    kinds = kinds_of_products(columns.shape[1])
    return [Candidates(columns, count, split=split) for split in kinds]
