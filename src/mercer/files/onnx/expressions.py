"""A kernel's expression as nodes: one rule per node, as in `backends/reference/evaluate.py`."""

from __future__ import annotations

from functools import singledispatch
from math import prod

import numpy as np

from mercer.array_types import Points
from mercer.backends.reference.evaluate import row_values
from mercer.expression import (
    Add,
    Constant,
    Exp,
    Expression,
    MaternProfile,
    Mul,
    Opaque,
    Pow,
    Ratio,
    RowFunction,
    RowProduct,
    RowSum,
    RowTerm,
    Sqrt,
    Statistic,
    Tanh,
    walk,
)
from mercer.files.onnx import statistics
from mercer.files.onnx.errors import OnnxExportError
from mercer.files.onnx.graph import Graph


def needs_differences(expression: Expression) -> bool:
    """Return whether the root of a distance is taken: rounding of zero would become its root."""
    return any(isinstance(node, Sqrt) for node in walk(expression))


class Rows:
    """Pairs of new rows x with constant rows Y, or of new rows with themselves (Y is None)."""

    def __init__(self, graph: Graph, x: str, Y: Points | None) -> None:
        self.graph, self.x, self.Y = graph, x, Y

    @property
    def count(self) -> int:
        """How many values each new row has."""
        return 1 if self.Y is None else int(self.Y.shape[0])

    def statistic(self, e: Statistic) -> str:
        """Return a pairwise statistic."""
        if self.Y is None:
            return statistics.own(e, self.graph, self.x)
        return statistics.compared(e, self.graph, self.x, self.Y)


def kernel_values(expression: Expression, graph: Graph, x: str, Y: Points) -> str:
    """Return k(x_i, y_j) of new rows and constant ones: (n, m).

    Parameters
    ----------
    expression : Expression
        The kernel, columns by number.
    graph : Graph
        Where nodes are added.
    x : str
        The new rows.
    Y : (m, d) array
        The constant rows.
    """
    return _spread(graph, _value(expression, Rows(graph, x, Y)), x, Y.shape[0], expression)


def diagonal(expression: Expression, graph: Graph, x: str) -> str:
    """Return k(x_i, x_i) of new rows: (n, 1)."""
    return _spread(graph, _value(expression, Rows(graph, x, None)), x, 1, expression)


def _spread(graph: Graph, value: str, x: str, width: int, expression: Expression) -> str:
    """Give a constant expression its shape."""
    constant = not any(isinstance(n, Statistic | RowProduct | RowSum) for n in walk(expression))
    return graph.add(graph.filled(0.0, x, width), value) if constant else value


@singledispatch
def _value(e: Expression, rows: Rows) -> str:
    raise OnnxExportError(f"{type(e).__name__} has no form in ONNX")


@_value.register
def _(e: Statistic, rows: Rows) -> str:
    return rows.statistic(e)


@_value.register
def _(e: Constant, rows: Rows) -> str:
    return rows.graph.number(e.value)


@_value.register
def _(e: Add, rows: Rows) -> str:
    total = _value(e.terms[0], rows)
    for term in e.terms[1:]:
        total = rows.graph.add(total, _value(term, rows))
    return total


@_value.register
def _(e: Mul, rows: Rows) -> str:
    factors = [_value(factor, rows) for factor in e.factors if not isinstance(factor, Constant)]
    numbers = [factor.value for factor in e.factors if isinstance(factor, Constant)]
    product = factors[0]
    for factor in factors[1:]:
        product = rows.graph.mul(product, factor)
    return rows.graph.scaled(product, np.full(rows.count, prod(numbers))) if numbers else product


@_value.register
def _(e: Pow, rows: Rows) -> str:
    return rows.graph.op("Pow", _value(e.base, rows), rows.graph.number(e.exponent))


@_value.register
def _(e: Exp, rows: Rows) -> str:
    return rows.graph.op("Exp", _value(e.of, rows))


@_value.register
def _(e: Sqrt, rows: Rows) -> str:
    return rows.graph.op("Sqrt", _value(e.of, rows))


@_value.register
def _(e: Tanh, rows: Rows) -> str:
    return rows.graph.op("Tanh", _value(e.of, rows))


@_value.register
def _(e: Ratio, rows: Rows) -> str:
    graph, one, zero = rows.graph, rows.graph.number(1.0), rows.graph.number(0.0)
    above, below = _value(e.above, rows), _value(e.below, rows)
    none = graph.op("And", graph.op("Equal", above, zero), graph.op("Equal", below, zero))
    return graph.where(none, one, graph.div(above, graph.where(none, one, below)))


@_value.register
def _(e: RowProduct, rows: Rows) -> str:
    mine, others = _both(e.row, rows)
    return rows.graph.mul(mine, others)


@_value.register
def _(e: RowSum, rows: Rows) -> str:
    mine, others = _both(e.row, rows)
    return rows.graph.add(mine, others)


@_value.register
def _(e: MaternProfile, rows: Rows) -> str:
    raise OnnxExportError(
        f"Matern with nu={e.nu:g} needs a Bessel function, which ONNX does not have; nu=0.5, 1.5, "
        "2.5 and infinity are exported"
    )


@_value.register
def _(e: Opaque, rows: Rows) -> str:
    raise OnnxExportError(
        f"the kernel is or contains {e.function!r}, a function of Python (string kernels are such, "
        "too), which ONNX cannot hold; a precomputed kernel is exported as sums over its columns"
    )


def _both(row: RowTerm, rows: Rows) -> tuple[str, str]:
    """Return a row term of new rows (n, 1) and of constant ones (1, m)."""
    mine = _row_term(row, rows.graph, rows.x)
    if rows.Y is None:
        return mine, mine
    return mine, rows.graph.constant(np.asarray(row_values(row, rows.Y))[None])


def _row_term(row: RowTerm, graph: Graph, x: str) -> str:
    if isinstance(row, RowFunction):
        raise OnnxExportError(
            f"the kernel scales rows by {row.function!r}, a function of Python, which ONNX cannot "
            "hold"
        )
    values = diagonal(row.expression, graph, x)
    power = graph.number(row.power)
    if row.power >= 0:
        return graph.op("Pow", values, power)
    tiny = graph.number(float(np.finfo(np.float64).tiny))
    some = graph.op("GreaterOrEqual", values, tiny)
    safe = graph.where(some, values, graph.number(1.0))
    return graph.where(some, graph.op("Pow", safe, power), graph.number(0.0))


def row_term(row: RowTerm, graph: Graph, x: str) -> str:
    """Return a row term u(x_i) of new rows: (n, 1)."""
    return _row_term(row, graph, x)
