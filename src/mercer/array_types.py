"""Type aliases of arrays and rows, and `FrozenArray`, a constant array with equality and a hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
"""A numeric NumPy array."""

Points: TypeAlias = Any
"""Rows to compare: a float array (n, d), a SciPy CSR array, or an object array of strings/lists."""

Index: TypeAlias = Any
"""Row numbers: a slice or an integer array."""


class FrozenArray(Sequence[Any]):
    """A read-only float64 array with equality, hash and a `repr` that reads back as nested lists.

    Kernels are values; a kernel that holds an array (one scale per feature, the matrix of a
    bilinear form) holds it as one of these.

    Parameters
    ----------
    values : array-like
        Copied once, as float64, and never writeable again.

    Examples
    --------
    >>> FrozenArray([1, 2]) == FrozenArray([1.0, 2.0])
    True
    >>> FrozenArray([1, 2])
    [1.0, 2.0]
    """

    __slots__ = ("array",)

    def __init__(self, values: npt.ArrayLike) -> None:
        array = np.array(values, dtype=np.float64) + 0.0  # -0.0 becomes 0.0: equal, so equal hash
        array.setflags(write=False)
        self.array = array

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenArray, (self.array,)  # a plain copy would come back writeable

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.array if dtype is None else self.array.astype(dtype, copy=False)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, item: Any) -> Any:
        return self.array[item]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenArray) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash((self.array.shape, self.array.tobytes()))

    def __repr__(self) -> str:
        return repr(self.array.tolist())
