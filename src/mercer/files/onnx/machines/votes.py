"""From values of pairs of classes to one decision: votes, and confidence below a third of one."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.files.onnx.graph import Graph
from mercer.machines.margin.multiclass import OneVsOne, Scheme


def decided(scheme: Scheme, graph: Graph, values: str) -> str:
    """Return the decision of a scheme: (n,) for two classes, else (n, classes)."""
    if scheme.count == 2:
        return graph.column(values, 0)
    if not isinstance(scheme, OneVsOne):
        return values
    won = votes(scheme, graph, graph.op("Greater", values, graph.number(0.0)))
    first, second = _incidence(scheme)
    confidence = graph.matmul(values, second - first)
    size = graph.add(graph.op("Abs", confidence), graph.number(1.0))
    return graph.add(won, graph.div(confidence, graph.mul(graph.number(3.0), size)))


def votes(scheme: OneVsOne, graph: Graph, later: str) -> str:
    """Count the pairs that each class wins."""
    first, second = _incidence(scheme)
    wins = graph.op("Cast", later, to=graph.onnx.TensorProto.DOUBLE)
    losses = graph.sub(graph.number(1.0), wins)
    return graph.add(graph.matmul(wins, second), graph.matmul(losses, first))


def _incidence(scheme: OneVsOne) -> tuple[Array, Array]:
    """Return which class is the first, and which the second, of each pair: (pairs, classes)."""
    a, b = np.array(scheme.pairs()).T
    return np.eye(scheme.count)[a], np.eye(scheme.count)[b]
