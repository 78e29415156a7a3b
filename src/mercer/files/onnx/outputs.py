"""What a graph answers, and which method of the machine says the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.files.onnx.errors import OnnxExportError
from mercer.files.onnx.graph import Graph

LABELS = "label"


@dataclass(frozen=True)
class Output:
    """One answer of a graph.

    Attributes
    ----------
    name : str
        Its name for users of the graph.
    value : str
        The value in the graph.
    method : str
        The method of the machine that gives the same.
    of : callable or None
        What is done to what the method gives, to be the same.
    """

    name: str
    value: str
    method: str
    of: Callable[[Array], Array] | None = None

    def expected(self, machine: Any, X: Array) -> Array:
        """Return what the machine itself answers."""
        answer = np.asarray(getattr(machine, self.method)(X))
        return answer if self.of is None else self.of(answer)


@singledispatch
def exported(machine: Any, graph: Graph, x: str) -> list[Output]:
    """Add the answers of a fitted machine at rows x to a graph."""
    raise OnnxExportError(
        f"{type(machine).__name__} is not exported to ONNX; docs/guide/exchange.md lists what is"
    )


@singledispatch
def transformed(machine: Any, graph: Graph, x: str) -> str:
    """Add what a fitted transformer makes of rows x to a graph."""
    raise OnnxExportError(
        f"{type(machine).__name__} is not exported as a step before a machine; scale with "
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
    """Return scores less the logarithm of the sum of their exponentials."""
    top = graph.op("ReduceMax", scores, axes=[1], keepdims=1)
    less = graph.sub(scores, top)
    return graph.sub(less, graph.op("Log", graph.sum_columns(graph.op("Exp", less))))


def squared_lengths(graph: Graph, rows: str) -> str:
    """Return |z|^2 of each row: (n, 1)."""
    return graph.sum_columns(graph.mul(rows, rows))
