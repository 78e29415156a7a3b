"""The compiled core: arrays in, arrays out. Bound in native/src; used by mercer.backends only."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array

_Sparse = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], Array]

def watch_polls(function: Callable[[], None] | None, seconds: float = 0.05) -> None: ...

class _Pairs:
    def __init__(self, rows: int, columns: int) -> None: ...
    @property
    def instruction_set(self) -> str: ...
    @property
    def byte_leaves(self) -> int: ...
    def add_dense(
        self, statistic: int, degree: int, x: Array, y: Array | None, threads: int
    ) -> None: ...
    def add_sparse(
        self,
        statistic: int,
        degree: int,
        features: int,
        x: _Sparse,
        y: _Sparse | None,
    ) -> None: ...
    def add_row_term(self, rows: Array, columns: Array) -> None: ...
    def set_program(
        self,
        ops: Sequence[tuple[int, int, int, int, int, int, float, float, float]],
        coefficients: Sequence[float],
        registers: int,
    ) -> None: ...
    def range(self, begin: int, end: int, blocks: list[Array], threads: int) -> Array: ...
    def gather(self, index: npt.NDArray[np.int64], blocks: list[Array], threads: int) -> Array: ...
    def symmetric(
        self, out: Array, begin: int, end: int, blocks: list[Array], threads: int
    ) -> None: ...
    def multiply(
        self, v: Array, begin: int, end: int, blocks: list[Array], threads: int
    ) -> Array: ...
    def multiply_symmetric(self, v: Array, threads: int) -> Array: ...

class PairsFloat(_Pairs): ...
class PairsDouble(_Pairs): ...

def nearest(
    pairs: _Pairs,
    index: npt.NDArray[np.int64],
    key: Array,
    begin: int,
    end: int,
    itself: bool,
    upper: bool,
    blocks: list[Array],
    exact: tuple[Array, Array, Array] | None,
    threads: int,
) -> None: ...
def empty_float(rows: int, columns: int) -> Array: ...
def empty_double(rows: int, columns: int) -> Array: ...
def symmetric_product(
    k: Array,
    v: Array,
    ends: Array | None,
    reads: Array | None,
    writes: Array | None,
    threads: int,
) -> Array: ...
def instruction_sets() -> list[str]: ...
def thread_cap() -> int: ...
def set_thread_cap(threads: int) -> None: ...
def release_memory() -> int: ...
def set_idle_limit(bytes: int) -> None: ...
def idle_memory() -> int: ...
def cholesky(A: Array, threads: int) -> int: ...
def band_reduce(A: Array, width: int, threads: int) -> tuple[Array, Array]: ...
def band_inverse_diagonals(
    Qt: Array, lower: Array, width: int, shifts: Array, threads: int
) -> Array: ...
def box_qps(
    K: Array,
    boxes: Sequence[tuple[Any, ...]],
    tol: float,
    max_iter: int,
    poll: Callable[[int, float], bool] | None,
    threads: int,
) -> list[tuple[Array, Array, int, float]]: ...
def box_chains(
    K: Array,
    chains: Sequence[tuple[Any, ...]],
    tol: float,
    max_iter: int,
    poll: Callable[[int, float], bool] | None,
    threads: int,
) -> list[tuple[Array, Array, Array, Array, list[int], Array]]: ...
def linear_times(F: Array, index: Array | None, w: Array, threads: int) -> Array: ...
def linear_pull(F: Array, index: Array | None, x: Array, threads: int) -> Array: ...
def linear_gram(
    F: Array,
    index: Array | None,
    centre: Array,
    group: Array,
    groups: int,
    weight: Array,
    threads: int,
) -> Array: ...
def linear_descent(F: Array, index: Array | None, *box: Any) -> tuple[Array, Array, int, float]: ...
def linear_descent_sparse(
    begin: Array, columns: Array, values: Array, width: int, index: Array | None, *box: Any
) -> tuple[Array, Array, int, float]: ...
def partition(K: Array, *groups: Any) -> list[tuple[Array, Array, bool]]: ...
def partition_dense(
    F: Array, index: Array | None, means: Array | None, *groups: Any
) -> list[tuple[Array, Array, bool]]: ...
def partition_sparse(
    begin: Array,
    columns: Array,
    values: Array,
    width: int,
    index: Array | None,
    means: Array | None,
    *groups: Any,
) -> list[tuple[Array, Array, bool]]: ...
def perceptron_dense(
    x: Array,
    order: Array | None,
    codes: Array,
    weights: Array,
    bias: Array,
    late: Array | None,
    late_bias: Array | None,
    tally: Array | None,
    has_bias: bool,
    step: float,
    interruptible: bool,
) -> tuple[int, float, int]: ...
def perceptron_sparse(
    begin: Array,
    columns: Array,
    values: Array,
    width: int,
    order: Array | None,
    codes: Array,
    weights: Array,
    bias: Array,
    late: Array | None,
    late_bias: Array | None,
    tally: Array | None,
    has_bias: bool,
    step: float,
    interruptible: bool,
) -> tuple[int, float, int]: ...
