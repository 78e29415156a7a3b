"""A right call of every function of the compiled core, made afresh each time it is asked for.

Tests spoil these calls: one argument at a time (`test_native_wrong_calls`), or the memory they
are given (`test_native_out_of_memory`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mercer import _native, deadline

ROWS, FEATURES, CLUSTERS = 60, 20, 3
EXPONENTIAL = 5  # codes of operations, as in backends/lowering.py
EXTERNAL = 13
ROW_SUM = 12
SUM = 2
POLYNOMIAL = 10


class Call(NamedTuple):
    """A function and its arguments by name."""

    function: Callable[..., Any]
    arguments: dict[str, Any]

    def __call__(self) -> Any:
        """Make the call."""
        return self.function(*self.arguments.values())


def data(rows: int = ROWS, features: int = FEATURES) -> np.ndarray:
    """Draw rows, the same each time."""
    return np.random.default_rng(0).standard_normal((rows, features))


def gram(rows: int = ROWS, dtype: Any = np.float64) -> np.ndarray:
    """Evaluate a Gaussian kernel."""
    X = data(rows)
    squares = (X * X).sum(axis=1)
    return np.exp(-0.05 * (squares[:, None] + squares - 2 * X @ X.T)).astype(dtype)


def csr(X: np.ndarray, dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Take the arrays of the sparse form, with zeros where entries are small."""
    S = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    return S.indptr.astype(np.int64), S.indices.astype(np.int32), S.data.astype(dtype)


# --- pairs -----------------------------------------------------------------------------------

_CLASSES = {np.float32: _native.PairsFloat, np.float64: _native.PairsDouble}
# register 0: exp(-0.05 leaf 0); or that + a row term + a block that Python evaluates
_PLAIN = [(EXPONENTIAL, 0, 0, 0, 0, 0, -0.05, 0.0, 0.0)]
_MIXED = [
    *_PLAIN,
    (ROW_SUM, 1, 0, 0, 0, 0, 0.0, 0.0, 0.0),
    (SUM, 0, 0, 1, 0, 0, 1.0, 1.0, 0.0),
    (EXTERNAL, 1, 0, 0, 0, 0, 0.0, 0.0, 0.0),
    (SUM, 0, 0, 1, 0, 0, 1.0, 1.0, 0.0),
    (POLYNOMIAL, 0, 0, 0, 0, 2, 1.0, 0.0, 0.0),
]


def pairs(dtype: Any = np.float64, *, rows: int = ROWS, mixed: bool = False) -> Any:
    """Bind a distance, and with `mixed` a row term and a block."""
    made = _CLASSES[dtype](rows, rows)
    made.add_dense(1, 1, data(rows), None, 1)
    if mixed:
        made.add_row_term(np.zeros(rows), np.ones(rows))
    made.set_program(_MIXED if mixed else _PLAIN, [0.5, 2.0], 2)
    return made


def _pairs_calls(dtype: Any) -> dict[str, Callable[[], Call]]:
    kind = _CLASSES[dtype]
    name = kind.__name__
    block = np.zeros((ROWS, ROWS), dtype=dtype)

    def method(verb: str, arguments: dict[str, Any], *, mixed: bool = False) -> Call:
        return Call(getattr(pairs(dtype, mixed=mixed), verb), arguments)

    def fresh(verb: str, arguments: dict[str, Any]) -> Call:
        return Call(getattr(kind(ROWS, ROWS), verb), arguments)

    span = {"begin": 0, "end": ROWS, "blocks": [block], "threads": 2}
    return {
        name: lambda: Call(kind, {"rows": ROWS, "columns": ROWS}),
        f"{name}.add_dense": lambda: fresh(
            "add_dense",
            {"statistic": 1, "degree": 2, "x": data(), "y": data() + 1, "threads": 2},
        ),
        f"{name}.add_dense (symmetric sum)": lambda: fresh(
            "add_dense", {"statistic": 6, "degree": 2, "x": data(), "y": None, "threads": 2}
        ),
        f"{name}.add_sparse": lambda: fresh(
            "add_sparse",
            {
                "statistic": 1,
                "degree": 1,
                "features": FEATURES,
                "x": csr(data(), dtype),
                "y": csr(data() + 1, dtype),
            },
        ),
        f"{name}.add_row_term": lambda: fresh(
            "add_row_term", {"rows": np.ones(ROWS), "columns": np.ones(ROWS)}
        ),
        f"{name}.set_program": lambda: _program_call(kind),
        f"{name}.range": lambda: method("range", dict(span), mixed=True),
        f"{name}.gather": lambda: method(
            "gather",
            {"index": np.arange(ROWS)[::-1].copy(), "blocks": [block], "threads": 2},
            mixed=True,
        ),
        f"{name}.symmetric": lambda: method(
            "symmetric", {"out": np.empty((ROWS, ROWS), dtype=dtype), **span}, mixed=True
        ),
        f"{name}.multiply": lambda: method("multiply", {"v": data(ROWS, 2), **span}, mixed=True),
        f"{name}.multiply_symmetric": lambda: method(
            "multiply_symmetric", {"v": data(ROWS, 2), "threads": 2}
        ),
        f"nearest ({name})": lambda: _nearest_call(dtype, block),
        f"symmetric_product ({name})": lambda: Call(
            _native.symmetric_product,
            {
                "k": gram(dtype=dtype),
                "v": data(ROWS, 2),
                "ends": np.array([20, ROWS]),
                "reads": np.ones((2, 2), dtype=bool),
                "writes": np.ones((2, 2), dtype=bool),
                "threads": 2,
            },
        ),
    }


def _program_call(kind: Any) -> Call:
    """Set a program and evaluate it: what passes must also run."""

    def set_and_run(ops: Any, coefficients: Any, registers: Any) -> None:
        made = kind(ROWS, ROWS)
        made.add_dense(1, 1, data(), None, 1)
        made.add_row_term(np.zeros(ROWS), np.ones(ROWS))
        made.set_program(ops, coefficients, registers)
        dtype = np.float32 if kind is _native.PairsFloat else np.float64
        made.range(0, ROWS, [np.zeros((ROWS, ROWS), dtype=dtype)], 1)

    return Call(set_and_run, {"ops": list(_MIXED), "coefficients": [0.5, 2.0], "registers": 2})


def _nearest_call(dtype: Any, block: np.ndarray) -> Call:
    X = data()
    return Call(
        _native.nearest,
        {
            "pairs": pairs(dtype, mixed=True),
            "index": np.empty((ROWS, 4), dtype=np.int64),
            "key": np.empty((ROWS, 4)),
            "begin": 0,
            "end": ROWS,
            "itself": True,
            "upper": False,
            "blocks": [block],
            "exact": (X, X, (X * X).sum(axis=1)),
            "threads": 2,
        },
    )


# --- dense algebra ---------------------------------------------------------------------------


def _spread(rows: int = ROWS) -> np.ndarray:
    return gram(rows) + np.eye(rows)


def _band_call() -> Call:
    Qt, lower = _native.band_reduce(_spread(), 4, 1)
    return Call(
        _native.band_inverse_diagonals,
        {
            "Qt": Qt,
            "lower": lower,
            "width": 4,
            "shifts": np.array([0.1, 1.0]),
            "threads": 2,
        },
    )


_ALGEBRA: dict[str, Callable[[], Call]] = {
    "cholesky": lambda: Call(_native.cholesky, {"A": _spread(), "threads": 2}),
    "band_reduce": lambda: Call(_native.band_reduce, {"A": _spread(), "width": 4, "threads": 2}),
    "band_inverse_diagonals": _band_call,
}


# --- rows of features ------------------------------------------------------------------------


def _dense_rows() -> dict[str, Any]:
    return {"F": data(), "index": np.arange(ROWS)}


def _sparse_rows() -> dict[str, Any]:
    begin, columns, values = csr(data())
    return {
        "begin": begin,
        "columns": columns,
        "values": values,
        "width": FEATURES,
        "index": np.arange(ROWS),
    }


def _feature_box() -> dict[str, Any]:
    return {
        "linear": np.where(data()[:, 0] > 0, 1.0, -1.0),
        "lower": np.full(ROWS, -1.0),
        "upper": np.ones(ROWS),
        "shift": np.full(ROWS, 0.1),
        "kink": np.full(ROWS, 0.01),
        "group": np.zeros(ROWS, dtype=np.int8),
        "totals": np.zeros(1),
        "start": np.zeros(ROWS),
        "offsets": np.zeros(1),
        "tol": 1e-3,
        "max_epochs": 1000,
        "poll": None,
    }


def _groups() -> dict[str, Any]:
    labels = np.arange(ROWS, dtype=np.int32) % CLUSTERS
    return {
        "starts": np.stack([labels, labels[::-1]]),
        "count": CLUSTERS,
        "weights": np.ones(ROWS),
        "diagonal": np.ones(ROWS),
        "max_iter": 50,
        "refine": True,
        "poll": None,
        "threads": 2,
    }


def _groups_by_means() -> dict[str, Any]:
    means = np.ascontiguousarray(data()[: 2 * CLUSTERS, :FEATURES])
    return {"means": means, **_groups(), "starts": None}


def _perceptron(classes: int) -> dict[str, Any]:
    return {
        "order": np.arange(ROWS),
        "codes": np.arange(ROWS) % classes,
        "weights": np.zeros((FEATURES, classes)),
        "bias": np.zeros(classes),
        "late": np.zeros((FEATURES, classes)),
        "late_bias": np.zeros(classes),
        "tally": np.zeros(3),
        "has_bias": True,
        "step": 1.0,
        "interruptible": True,
    }


def _without_index(rows: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in rows.items() if name != "index"}


_FEATURES: dict[str, Callable[[], Call]] = {
    "linear_times": lambda: Call(
        _native.linear_times, {**_dense_rows(), "w": np.ones(FEATURES), "threads": 2}
    ),
    "linear_pull": lambda: Call(
        _native.linear_pull, {**_dense_rows(), "x": np.ones(ROWS), "threads": 2}
    ),
    "linear_gram": lambda: Call(
        _native.linear_gram,
        {
            **_dense_rows(),
            "centre": np.zeros(FEATURES),
            "group": np.zeros(ROWS, dtype=np.int8),
            "groups": 1,
            "weight": np.ones(ROWS),
            "threads": 2,
        },
    ),
    "linear_descent": lambda: Call(_native.linear_descent, {**_dense_rows(), **_feature_box()}),
    "linear_descent_sparse": lambda: Call(
        _native.linear_descent_sparse, {**_sparse_rows(), **_feature_box()}
    ),
    "partition (float32)": lambda: Call(
        _native.partition, {"K": gram(dtype=np.float32), **_groups()}
    ),
    "partition (float64)": lambda: Call(_native.partition, {"K": gram(), **_groups()}),
    "partition_dense": lambda: Call(
        _native.partition_dense, {**_dense_rows(), "means": None, **_groups()}
    ),
    "partition_dense (means)": lambda: Call(
        _native.partition_dense, {**_dense_rows(), **_groups_by_means()}
    ),
    "partition_sparse": lambda: Call(
        _native.partition_sparse, {**_sparse_rows(), "means": None, **_groups()}
    ),
    "partition_sparse (means)": lambda: Call(
        _native.partition_sparse, {**_sparse_rows(), **_groups_by_means()}
    ),
    "perceptron_dense": lambda: Call(
        _native.perceptron_dense, {"x": data(), **_perceptron(CLUSTERS)}
    ),
    "perceptron_sparse": lambda: Call(
        _native.perceptron_sparse, {**_without_index(_sparse_rows()), **_perceptron(CLUSTERS)}
    ),
}


# --- box programmes --------------------------------------------------------------------------


def box(rows: int = ROWS) -> tuple[Any, ...]:
    """Write a support vector machine as a box programme, with all that a box can have."""
    y = np.where(data(rows)[:, 0] > 0, 1.0, -1.0)
    return (
        y,
        np.zeros(rows),
        np.minimum(0.0, 10 * y),
        np.maximum(0.0, 10 * y),
        np.full(rows, 0.01),
        np.full(rows, 0.1),
        (np.arange(rows) % 2).astype(np.int64),
        np.arange(rows, dtype=np.int64),
    )


def _chain() -> tuple[Any, ...]:
    stages = [(1.0, 1.0, 1.0, 0.0, -1), (2.0, 1.0, 1.0, 0.0, 0)]
    return (*box(), np.zeros(2), stages, np.arange(10))


def _box_calls(dtype: Any) -> dict[str, Callable[[], Call]]:
    name = np.dtype(dtype).name
    rest = {"tol": 1e-3, "max_iter": 1000, "poll": None, "threads": 2}
    return {
        f"box_qps ({name})": lambda: Call(
            _native.box_qps, {"K": gram(dtype=dtype), "boxes": [box(), box()], **rest}
        ),
        f"box_chains ({name})": lambda: Call(
            _native.box_chains, {"K": gram(dtype=dtype), "chains": [_chain(), _chain()], **rest}
        ),
    }


def _watch_and_look(function: Any, seconds: Any) -> None:
    """Set what is called at looks, and look: what passes must also run."""
    try:
        _native.watch_polls(function, seconds)
        _native.band_reduce(_spread(), 4, 1)
    finally:  # the process has one such function
        _native.watch_polls(deadline.check)


_REST: dict[str, Callable[[], Call]] = {
    "empty_float": lambda: Call(_native.empty_float, {"rows": 3, "columns": 4}),
    "empty_double": lambda: Call(_native.empty_double, {"rows": 3, "columns": 4}),
    "instruction_sets": lambda: Call(_native.instruction_sets, {}),
    "thread_cap": lambda: Call(_native.thread_cap, {}),
    "set_thread_cap": lambda: Call(_native.set_thread_cap, {"threads": 2}),
    "release_memory": lambda: Call(_native.release_memory, {}),
    "set_idle_limit": lambda: Call(_native.set_idle_limit, {"bytes": 1 << 30}),
    "idle_memory": lambda: Call(_native.idle_memory, {}),
    "watch_polls": lambda: Call(_watch_and_look, {"function": None, "seconds": 0.0}),
}

CALLS: dict[str, Callable[[], Call]] = {
    **_pairs_calls(np.float32),
    **_pairs_calls(np.float64),
    **_ALGEBRA,
    **_FEATURES,
    **_box_calls(np.float32),
    **_box_calls(np.float64),
    **_REST,
}
