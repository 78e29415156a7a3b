"""Rows after the steps of a leaf, and pairwise statistics of new rows with constant ones."""

from __future__ import annotations

from functools import singledispatch
from itertools import pairwise

import numpy as np

from mercer.array_types import Array, Points
from mercer.backends.lowering.inputs import apply_steps
from mercer.expression import (
    AbsDist,
    ChiSq,
    Columns,
    Dot,
    LinearMap,
    Mapped,
    MinSum,
    NearOne,
    SqDist,
    Squarable,
    Statistic,
    Step,
    Steps,
    Stretch,
    SubsetProduct,
    SymmetricSum,
)
from mercer.files.onnx.errors import OnnxExportError
from mercer.files.onnx.graph import Graph
from mercer.points import to_dense

# --- what is done to rows before they are compared -----------------------------------------------


def stepped(steps: Steps, graph: Graph, x: str) -> str:
    """Send new rows through the steps."""
    for step in steps:
        x = _step(step, graph, x)
    return x


@singledispatch
def _step(step: Step, graph: Graph, x: str) -> str:
    raise OnnxExportError(f"{type(step).__name__} has no form in ONNX")


@_step.register
def _(step: Columns, graph: Graph, x: str) -> str:
    return graph.columns(x, step.names)


@_step.register
def _(step: Stretch, graph: Graph, x: str) -> str:
    return graph.scaled(x, step.factors.array)


@_step.register
def _(step: LinearMap, graph: Graph, x: str) -> str:
    return graph.matmul(x, step.matrix.array)


@_step.register
def _(step: Mapped, graph: Graph, x: str) -> str:
    raise OnnxExportError(
        f"the kernel maps rows by {step.function!r}, a function of Python, which ONNX cannot hold; "
        "map the rows before they are passed to the machine"
    )


@_step.register
def _(step: NearOne, graph: Graph, x: str) -> str:
    return x  # changes rows alone whose squares overflow or vanish


@_step.register
def _(step: Squarable, graph: Graph, x: str) -> str:
    return x  # refuses such rows


# --- statistics: one rule each -------------------------------------------------------------------


def compared(statistic: Statistic, graph: Graph, x: str, Y: Points) -> str:
    """Return the statistic of new rows with constant ones: (n, m)."""
    # steps in the precision of the constant rows, as the backends take them
    rows = to_dense(apply_steps(statistic.steps, Y))
    return _compare(statistic, graph, stepped(statistic.steps, graph, x), rows)


@singledispatch
def _compare(statistic: Statistic, graph: Graph, x: str, Y: Array) -> str:
    raise OnnxExportError(f"{type(statistic).__name__} has no form in ONNX")


@_compare.register
def _(s: Dot, graph: Graph, x: str, Y: Array) -> str:
    return graph.matmul(x, Y.T)


@_compare.register
def _(s: SqDist, graph: Graph, x: str, Y: Array) -> str:
    if graph.differences:
        return _summed(graph, x, Y, lambda g, a, b: _square(g, g.sub(a, b)))
    centre = Y.mean(axis=0)  # so that products are of the size of the distances
    away, rows = graph.sub(x, graph.constant(centre)), Y - centre
    own = graph.sum_columns(_square(graph, away))
    lengths = graph.constant(np.square(rows).sum(axis=1)[None])
    squared = graph.add(graph.matmul(away, -2.0 * rows.T), graph.add(own, lengths))
    return graph.op("Max", squared, graph.number(0.0))


@_compare.register
def _(s: AbsDist, graph: Graph, x: str, Y: Array) -> str:
    return _summed(graph, x, Y, lambda g, a, b: g.op("Abs", g.sub(a, b)))


@_compare.register
def _(s: MinSum, graph: Graph, x: str, Y: Array) -> str:
    return _summed(graph, x, Y, lambda g, a, b: g.op("Min", a, b))


@_compare.register
def _(s: ChiSq, graph: Graph, x: str, Y: Array) -> str:
    def term(g: Graph, a: str, b: str) -> str:
        total = g.add(a, b)
        some = g.where(g.op("Greater", total, g.number(0.0)), total, g.number(1.0))
        return g.div(_square(g, g.sub(a, b)), some)

    return _summed(graph, x, Y, term)


@_compare.register
def _(s: SubsetProduct, graph: Graph, x: str, Y: Array) -> str:
    def body(g: Graph, state: list[str], column: list[str]) -> list[str]:
        return [g.mul(state[0], g.add(g.number(1.0), g.mul(*_outer(g, column))))]

    begin = graph.filled(1.0, x, len(Y))
    return graph.over_columns([begin], _transposed(graph, x, Y), body)[0]


@_compare.register
def _(s: SymmetricSum, graph: Graph, x: str, Y: Array) -> str:
    def body(g: Graph, state: list[str], column: list[str]) -> list[str]:
        product = g.mul(*_outer(g, column))
        longer = [g.add(b, g.mul(product, a)) for a, b in pairwise(state)]
        return [g.op("Identity", state[0]), *longer]

    begin = [graph.filled(1.0, x, len(Y))]
    begin += [graph.filled(0.0, x, len(Y)) for _ in range(s.degree)]
    return graph.over_columns(begin, _transposed(graph, x, Y), body)[-1]


def _summed(graph: Graph, x: str, Y: Array, term: object) -> str:
    """Add a term of each column up: one column at a time, so that (n, m) numbers are held."""

    def body(g: Graph, state: list[str], column: list[str]) -> list[str]:
        return [g.add(state[0], term(g, *_outer(g, column)))]  # type: ignore[operator]

    begin = graph.filled(0.0, x, len(Y))
    return graph.over_columns([begin], _transposed(graph, x, Y), body)[0]


def _transposed(graph: Graph, x: str, Y: Array) -> list[str]:
    return [graph.op("Transpose", x, perm=[1, 0]), graph.constant(Y.T)]


def _outer(g: Graph, column: list[str]) -> tuple[str, str]:
    """Return a column of new rows as (n, 1), and one of constant rows as (1, m)."""
    standing = g.op("Unsqueeze", column[0], g.constant(np.array([1])))
    lying = g.op("Unsqueeze", column[1], g.constant(np.array([0])))
    return standing, lying


def _square(g: Graph, a: str) -> str:
    return g.mul(a, a)


# --- statistics of a row with itself: (n, 1) -----------------------------------------------------


def own(statistic: Statistic, graph: Graph, x: str) -> str:
    """Return the statistic of every new row with itself: (n, 1)."""
    return _own(statistic, graph, stepped(statistic.steps, graph, x))


@singledispatch
def _own(statistic: Statistic, graph: Graph, x: str) -> str:
    raise OnnxExportError(
        f"{type(statistic).__name__} of a row with itself has no form in ONNX here"
    )


@_own.register
def _(s: Dot, graph: Graph, x: str) -> str:
    return graph.sum_columns(_square(graph, x))


@_own.register(SqDist)
@_own.register(AbsDist)
@_own.register(ChiSq)
def _(s: Statistic, graph: Graph, x: str) -> str:
    return graph.filled(0.0, x, 1)


@_own.register
def _(s: MinSum, graph: Graph, x: str) -> str:
    return graph.sum_columns(x)


@_own.register
def _(s: SubsetProduct, graph: Graph, x: str) -> str:
    return graph.op(
        "ReduceProd", graph.add(graph.number(1.0), _square(graph, x)), axes=[1], keepdims=1
    )


@_own.register
def _(s: SymmetricSum, graph: Graph, x: str) -> str:
    squares = graph.op("Transpose", _square(graph, x), perm=[1, 0])

    def body(g: Graph, state: list[str], column: list[str]) -> list[str]:
        square = g.op("Unsqueeze", column[0], g.constant(np.array([1])))
        longer = [g.add(b, g.mul(square, a)) for a, b in pairwise(state)]
        return [g.op("Identity", state[0]), *longer]

    begin = [graph.filled(1.0, x, 1), *(graph.filled(0.0, x, 1) for _ in range(s.degree))]
    return graph.over_columns(begin, [squares], body)[-1]
