"""Class `Graph`: ONNX nodes and constants in double precision; outputs, and export errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from mercer.array_types import Array

# --- graph ---------------------------------------------------------------------------------------
#
# A graph in the making: nodes, constants, and the operators that have double precision.

# Opset 17 with ir_version 8 is read by onnxruntime 1.12 (2022) and everything since. Nothing newer
# is needed; axes of reductions but ReduceSum are attributes there.
OPSET = 17
ML_OPSET = 2  # of LabelEncoder, for categories
IR_VERSION = 8
INPUT = "X"

_MISSING = 'to_onnx needs the packages onnx and onnxruntime: pip install "mercer[onnx]"'


def require_onnx() -> Any:
    """Return the module `onnx`; the error explains how to install it."""
    try:
        import onnx  # noqa: PLC0415  optional
    except ImportError as error:
        raise ImportError(_MISSING) from error
    return onnx


def require_runtime() -> Any:
    """Return the module `onnxruntime`; the error explains how to install it."""
    try:
        import onnxruntime  # noqa: PLC0415  optional
    except ImportError as error:
        raise ImportError(_MISSING) from error
    return onnxruntime


class Graph:
    """Nodes of a graph, in order; values are their names.

    Parameters
    ----------
    differences : bool
        Whether squared distances are sums of squared differences, column by column, rather than
        |x|^2 + |y|^2 - 2 x'y: slower, and no digits are lost where rows are near one another.
    prefix : str
        What names begin with, so that they are none of a column, and those of a graph inside
        another are its own.
    """

    def __init__(self, differences: bool = False, prefix: str = "mercer/") -> None:
        self.onnx = require_onnx()
        self.differences = differences
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self._prefix = prefix
        self._held: dict[tuple[Any, ...], str] = {}
        self._bodies = 0

    def input(self, name: str, kind: int, width: int = 1) -> str:
        """Add an input of the graph: (n, width)."""
        taken = [one.name for one in self.inputs]
        if not name or name in taken:
            raise OnnxExportError(f"column {name!r}: ONNX does not accept this name of an input")
        made = self.onnx.helper.make_tensor_value_info(name, kind, ["n", width])
        self.inputs.append(made)
        return name

    @property
    def uses_words(self) -> bool:
        """Whether there is an operator of ai.onnx.ml: LabelEncoder, on texts."""
        return any(node.domain == "ai.onnx.ml" for node in self.nodes)

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator with one output, and return its name."""
        name = f"{self._prefix}{kind.lower()}_{len(self.nodes)}"
        node = self.onnx.helper.make_node(kind, list(inputs), [name], name=name, **attributes)
        self.nodes.append(node)
        return name

    def ops(self, kind: str, outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        """Add an operator with several outputs, and return their names."""
        stem = f"{self._prefix}{kind.lower()}_{len(self.nodes)}"
        names = [f"{stem}_{i}" for i in range(outputs)]
        self.nodes.append(
            self.onnx.helper.make_node(kind, list(inputs), names, name=stem, **attributes)
        )
        return names

    def constant(self, value: Any) -> str:
        """Return the name of an array (float64, int64, bool or text); equal ones are kept once."""
        array = np.ascontiguousarray(value)
        shape = np.shape(value)  # which `ascontiguousarray` makes one-dimensional for a number
        if array.dtype.kind in "US":
            array = array.astype(object)
        if array.dtype.kind == "f":
            array = array.astype(np.float64)
        key: tuple[Any, ...] = (shape, array.dtype.str, _content(array))
        if key not in self._held:
            name = f"{self._prefix}constant_{len(self.constants)}"
            tensor = self.onnx.numpy_helper.from_array(array.reshape(shape), name)
            self.constants.append(tensor)
            self._held[key] = name
        return self._held[key]

    def number(self, value: float) -> str:
        """Return the name of a number in double precision."""
        return self.constant(np.float64(value))

    # --- what formulas are made of ---------------------------------------------------------------

    def add(self, a: str, b: str) -> str:
        """Return a + b."""
        return self.op("Add", a, b)

    def sub(self, a: str, b: str) -> str:
        """Return a - b."""
        return self.op("Sub", a, b)

    def mul(self, a: str, b: str) -> str:
        """Return a * b."""
        return self.op("Mul", a, b)

    def div(self, a: str, b: str) -> str:
        """Return a / b."""
        return self.op("Div", a, b)

    def matmul(self, a: str, matrix: Array) -> str:
        """Multiply by a constant matrix from the right."""
        return self.op("MatMul", a, self.constant(np.asarray(matrix, dtype=np.float64)))

    def scaled(self, a: str, factors: Any) -> str:
        """Multiply each column by its factor.

        Never by a scalar: onnxruntime moves a scalar factor of a matrix product into an attribute
        of that product, which is a float32.
        """
        factors = np.atleast_1d(np.asarray(factors, dtype=np.float64))
        if len(factors) == 1:
            return self.matmul(a, factors[:, None])
        return self.mul(a, self.constant(factors[None]))

    def divided(self, a: str, divisors: Any) -> str:
        """Divide each column by its divisor; never by a scalar, see `scaled`."""
        divisors = np.asarray(divisors, dtype=np.float64)
        if len(divisors) == 1:
            return self.scaled(a, 1.0 / divisors)
        return self.div(a, self.constant(divisors[None]))

    def sum_columns(self, a: str) -> str:
        """Add up each row: (n, 1)."""
        return self.op("ReduceSum", a, self.constant(np.array([1])), keepdims=1)

    def where(self, condition: str, a: str, b: str) -> str:
        """Return a where the condition holds, else b."""
        return self.op("Where", condition, a, b)

    def columns(self, a: str, index: Any) -> str:
        """Choose columns."""
        return self.op("Gather", a, self.constant(np.asarray(index, dtype=np.int64)), axis=1)

    def column(self, a: str, index: int) -> str:
        """Choose one column: (n,)."""
        return self.op("Gather", a, self.constant(np.int64(index)), axis=1)

    def filled(self, value: Any, x: str, width: int) -> str:
        """Return a constant as (n, width), n being the number of rows of x."""
        rows = self.op("Gather", self.op("Shape", x), self.constant(np.array([0])), axis=0)
        shape = self.op("Concat", rows, self.constant(np.array([width])), axis=0)
        return self.op("Expand", self.constant(np.asarray(value, dtype=np.float64)), shape)

    def over_columns(
        self,
        states: Sequence[str],
        columns: Sequence[str],
        body: Callable[[Graph, list[str], list[str]], list[str]],
    ) -> list[str]:
        """Go through columns one after another (ONNX's Scan).

        Parameters
        ----------
        states : sequence of str
            Initial states.
        columns : sequence of str
            Tables whose columns are gone through together, transposed: (d, n) and (d, m).
        body : callable
            Given a graph, the states and the columns, returns the new states.
        """
        self._bodies += 1
        inner = Graph(self.differences, f"{self._prefix}body{self._bodies}/")
        make = self.onnx.helper.make_tensor_value_info
        double = self.onnx.TensorProto.DOUBLE
        held = [f"{inner._prefix}state_{i}" for i in range(len(states))]
        items = [f"{inner._prefix}column_{i}" for i in range(len(columns))]
        found = body(inner, held, items)
        inside = self.onnx.helper.make_graph(
            inner.nodes,
            f"{inner._prefix}graph",
            [make(name, double, None) for name in (*held, *items)],
            [make(name, double, None) for name in found],
            inner.constants,
        )
        names = (*states, *columns)
        return self.ops("Scan", len(states), *names, body=inside, num_scan_inputs=len(columns))


def _content(array: Array) -> Any:
    return tuple(array.ravel().tolist()) if array.dtype == object else array.tobytes()


# --- outputs -------------------------------------------------------------------------------------
#
# The outputs of a graph, and the methods of the estimator that return the same.

LABELS = "label"


@dataclass(frozen=True)
class Output:
    """One output of a graph.

    Attributes
    ----------
    name : str
        Its name for users of the graph.
    value : str
        The value in the graph.
    method : str
        The method of the estimator that gives the same.
    of : callable or None
        Applied to the result of the method, to give the same.
    """

    name: str
    value: str
    method: str
    of: Callable[[Array], Array] | None = None

    def expected(self, machine: Any, X: Array) -> Array:
        """Return the result of the estimator itself."""
        answer = np.asarray(getattr(machine, self.method)(X))
        return answer if self.of is None else self.of(answer)


@singledispatch
def exported(machine: Any, graph: Graph, x: str) -> list[Output]:
    """Add the outputs of a fitted estimator at rows x to a graph."""
    raise OnnxExportError(
        f"{type(machine).__name__} has no ONNX export; docs/guide/exchange.md lists the estimators"
    )


@singledispatch
def transformed(machine: Any, graph: Graph, x: str) -> str:
    """Add the output of a fitted transformer for rows x to a graph."""
    raise OnnxExportError(
        f"{type(machine).__name__} has no ONNX export as a step of a pipeline; scale with "
        "StandardScaler, MinMaxScaler, LogShift or Whiten, project with PCA, CCA or Fisher's"
    )


def labels(graph: Graph, classes: Array, chosen: str) -> str:
    """Return the labels of chosen classes, in the type they have."""
    kind = np.asarray(classes).dtype.kind
    if kind in "iu":
        held: Any = np.asarray(classes, dtype=np.int64)
    elif kind == "f":
        held = np.asarray(classes, dtype=np.float64)
    elif kind == "b":
        held = np.asarray(classes)
    elif kind in "UO" and all(isinstance(label, str) for label in classes.tolist()):
        held = np.array(classes.tolist(), dtype=object)
    else:
        raise OnnxExportError(
            f"labels such as {classes[0]!r} have no type in ONNX; use numbers, texts or booleans"
        )
    return graph.op("Gather", graph.constant(held), chosen, axis=0)


def largest(graph: Graph, scores: str) -> str:
    """Return the place of the largest score of each row, the first of equals."""
    return graph.op("ArgMax", scores, axis=1, keepdims=0)


def second_if(graph: Graph, condition: str) -> str:
    """Return 1 where a condition holds, else 0, as places of classes."""
    return graph.op("Cast", condition, to=graph.onnx.TensorProto.INT64)


def softmax(graph: Graph, scores: str) -> str:
    """Return exp(scores) over their sum, the largest taken off first."""
    top = graph.op("ReduceMax", scores, axes=[1], keepdims=1)
    powers = graph.op("Exp", graph.sub(scores, top))
    return graph.div(powers, graph.sum_columns(powers))


def log_softmax(graph: Graph, scores: str) -> str:
    """Return scores minus the logarithm of the sum of their exponentials."""
    top = graph.op("ReduceMax", scores, axes=[1], keepdims=1)
    less = graph.sub(scores, top)
    return graph.sub(less, graph.op("Log", graph.sum_columns(graph.op("Exp", less))))


def squared_lengths(graph: Graph, rows: str) -> str:
    """Return |z|^2 of each row: (n, 1)."""
    return graph.sum_columns(graph.mul(rows, rows))


# --- errors --------------------------------------------------------------------------------------
#
# What cannot become an ONNX graph, and why.


class OnnxExportError(ValueError):
    """An estimator, a kernel or a step without a form in ONNX, or a graph that differs from it.

    Examples
    --------
    >>> raise OnnxExportError("NearestNeighbors is not exported")
    Traceback (most recent call last):
    mercer.files.onnx.graph.OnnxExportError: NearestNeighbors is not exported
    """
