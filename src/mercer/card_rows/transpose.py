"""The transpose of rows on a card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.array_types import Array
from mercer.card_rows.operators import host_of, is_matrix, with_operators
from mercer.card_rows.transport import bring_numbers, there_or_here

if TYPE_CHECKING:
    from mercer.card_rows.rows import CardRows


@with_operators
class TransposedRows:
    """The transpose of rows on a card: multiplied there; anything else is asked of the host.

    Parameters
    ----------
    rows : CardRows
        The rows.
    """

    __array_priority__ = 1000.0  # so that NumPy's operators leave it to those below

    def __init__(self, rows: CardRows) -> None:
        self.rows, self.shape, self.dtype = rows, rows.shape[::-1], rows.dtype

    def __abs__(self) -> Any:
        return there_or_here(  # as much once more: a card may not have it
            lambda: TransposedRows(type(self.rows)(self.rows.tensor.abs())),
            lambda: np.abs(self.on_host()),
        )

    def on_host(self) -> Array:
        """Return the transpose in the memory of the processor."""
        return self.rows.on_host().T

    def __matmul__(self, other: Any) -> Any:
        return self._product(other) if is_matrix(other) else self.on_host() @ host_of(other)

    def __rmatmul__(self, other: Any) -> Any:
        return (self.rows @ other.T).T if is_matrix(other) else host_of(other) @ self.on_host()

    def _product(self, right: Any) -> Array:
        """Multiply in float64, sums over blocks of rows that are not; brought to the host."""
        tensor, right = self.rows.tensor, self.rows.sent(right)
        if tensor.dtype == right.dtype:
            return bring_numbers(tensor.T @ right)
        total = right.new_zeros((tensor.shape[1], *right.shape[1:]))
        for part in self.rows.parts():
            total += tensor[part].to(right.dtype).T @ right[part]
        return bring_numbers(total)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        return self.on_host()[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.on_host(), dtype=dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"the transpose of rows on a card has no {name!r}")
        return getattr(self.on_host(), name)
