"""Kernels as ONNX nodes: pairwise statistics, expressions, feature maps, and expansions."""

from __future__ import annotations

from functools import singledispatch
from itertools import pairwise
from math import comb, prod
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.backends.operands import apply_steps
from mercer.backends.reference.evaluate import row_values
from mercer.expression import (
    AbsDist,
    Add,
    ChiSq,
    Columns,
    Constant,
    Dot,
    Exp,
    Expression,
    LinearMap,
    Mapped,
    MaternProfile,
    MinSum,
    Mul,
    NearOne,
    Opaque,
    Pow,
    Ratio,
    RowFunction,
    RowProduct,
    RowSum,
    RowTerm,
    SqDist,
    Sqrt,
    Squarable,
    Statistic,
    Step,
    Steps,
    Stretch,
    SubsetProduct,
    SymmetricSum,
    Tanh,
    walk,
)
from mercer.files.onnx.graph import Graph, OnnxExportError
from mercer.gram import Expansion
from mercer.gram.centering import CenteredFeatures
from mercer.gram.evaluated import KernelExpansion
from mercer.gram.factored import FeatureExpansion
from mercer.gram.precomputed import MatrixExpansion
from mercer.kernels.features import FeatureMap, dimension, symmetric_power
from mercer.machines.decomposition.components import MovedExpansion
from mercer.machines.neighbors.nearest_mean import rows_as_features
from mercer.machines.svm.multiclass import ByClass
from mercer.rows.points import is_sparse, to_dense

# --- maps of rows before they are compared -------------------------------------------------------


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
    if step.factors.array.ndim == 0:  # which onnxruntime may turn into a float32
        raise OnnxExportError(
            "the kernel's scale is so extreme that its square is out of the range of numbers; "
            "scale the features, and fit again"
        )
    return graph.scaled(x, step.factors.array)


@_step.register
def _(step: LinearMap, graph: Graph, x: str) -> str:
    return graph.matmul(x, step.matrix.array)


@_step.register
def _(step: Mapped, graph: Graph, x: str) -> str:
    raise OnnxExportError(
        f"the kernel maps rows by {step.function!r}, a function of Python, which ONNX cannot hold; "
        "map the rows before you pass them to the estimator"
    )


@_step.register
def _(step: NearOne, graph: Graph, x: str) -> str:
    return x  # changes rows alone whose squares overflow or vanish


@_step.register
def _(step: Squarable, graph: Graph, x: str) -> str:
    return x  # raises for such rows


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


# --- expressions ---------------------------------------------------------------------------------
#
# A kernel's expression as nodes: one rule per node, as in `backends/reference/evaluate.py`.


class RowPairs:
    """Pairs of new rows x with constant rows Y, or of new rows with themselves (Y is None)."""

    def __init__(self, graph: Graph, x: str, Y: Points | None) -> None:
        self.graph, self.x, self.Y = graph, x, Y

    @property
    def count(self) -> int:
        """Number of values in each new row."""
        return 1 if self.Y is None else int(self.Y.shape[0])

    def statistic(self, e: Statistic) -> str:
        """Return a pairwise statistic."""
        if self.Y is None:
            return own(e, self.graph, self.x)
        return compared(e, self.graph, self.x, self.Y)


def kernel_values(expression: Expression, graph: Graph, x: str, Y: Points) -> str:
    """Return k(x_i, y_j) of new rows and constant ones: (n, m).

    Parameters
    ----------
    expression : Expression
        The kernel, columns by number.
    graph : Graph
        The graph that receives the nodes.
    x : str
        The new rows.
    Y : (m, d) array
        The constant rows.
    """
    return _spread(graph, _value(expression, RowPairs(graph, x, Y)), x, Y.shape[0], expression)


def diagonal(expression: Expression, graph: Graph, x: str) -> str:
    """Return k(x_i, x_i) of new rows: (n, 1)."""
    return _spread(graph, _value(expression, RowPairs(graph, x, None)), x, 1, expression)


def _spread(graph: Graph, value: str, x: str, width: int, expression: Expression) -> str:
    """Give a constant expression its shape."""
    constant = not any(isinstance(n, Statistic | RowProduct | RowSum) for n in walk(expression))
    return graph.add(graph.filled(0.0, x, width), value) if constant else value


@singledispatch
def _value(e: Expression, rows: RowPairs) -> str:
    raise OnnxExportError(f"{type(e).__name__} has no form in ONNX")


@_value.register
def _(e: Statistic, rows: RowPairs) -> str:
    return rows.statistic(e)


@_value.register
def _(e: Constant, rows: RowPairs) -> str:
    return rows.graph.number(e.value)


@_value.register
def _(e: Add, rows: RowPairs) -> str:
    total = _value(e.terms[0], rows)
    for term in e.terms[1:]:
        total = rows.graph.add(total, _value(term, rows))
    return total


@_value.register
def _(e: Mul, rows: RowPairs) -> str:
    factors = [_value(factor, rows) for factor in e.factors if not isinstance(factor, Constant)]
    numbers = [factor.value for factor in e.factors if isinstance(factor, Constant)]
    product = factors[0]
    for factor in factors[1:]:
        product = rows.graph.mul(product, factor)
    return rows.graph.scaled(product, np.full(rows.count, prod(numbers))) if numbers else product


@_value.register
def _(e: Pow, rows: RowPairs) -> str:
    return rows.graph.op("Pow", _value(e.base, rows), rows.graph.number(e.exponent))


@_value.register
def _(e: Exp, rows: RowPairs) -> str:
    return rows.graph.op("Exp", _value(e.of, rows))


@_value.register
def _(e: Sqrt, rows: RowPairs) -> str:
    return rows.graph.op("Sqrt", _value(e.of, rows))


@_value.register
def _(e: Tanh, rows: RowPairs) -> str:
    return rows.graph.op("Tanh", _value(e.of, rows))


@_value.register
def _(e: Ratio, rows: RowPairs) -> str:
    graph, one, zero = rows.graph, rows.graph.number(1.0), rows.graph.number(0.0)
    above, below = _value(e.above, rows), _value(e.below, rows)
    none = graph.op("And", graph.op("Equal", above, zero), graph.op("Equal", below, zero))
    return graph.where(none, one, graph.div(above, graph.where(none, one, below)))


@_value.register
def _(e: RowProduct, rows: RowPairs) -> str:
    mine, others = _both(e.row, rows)
    return rows.graph.mul(mine, others)


@_value.register
def _(e: RowSum, rows: RowPairs) -> str:
    mine, others = _both(e.row, rows)
    return rows.graph.add(mine, others)


@_value.register
def _(e: MaternProfile, rows: RowPairs) -> str:
    raise OnnxExportError(
        f"Matern with nu={e.nu:g} needs a Bessel function, which ONNX does not have; nu=0.5, 1.5, "
        "2.5 and infinity are exported"
    )


@_value.register
def _(e: Opaque, rows: RowPairs) -> str:
    raise OnnxExportError(
        f"the kernel is or contains {e.function!r}, a function of Python (string kernels are such, "
        "too), which ONNX cannot hold; a precomputed kernel is exported as sums over its columns"
    )


def _both(row: RowTerm, rows: RowPairs) -> tuple[str, str]:
    """Return a row term of new rows (n, 1) and of constant ones (1, m)."""
    mine = row_term(row, rows.graph, rows.x)
    if rows.Y is None:
        return mine, mine
    return mine, rows.graph.constant(np.asarray(row_values(row, rows.Y))[None])


def row_term(row: RowTerm, graph: Graph, x: str) -> str:
    """Return a row term u(x_i) of new rows: (n, 1)."""
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


# --- features ------------------------------------------------------------------------------------
#
# Finite feature maps as nodes: one rule per node, in the order of `kernels/features.py`.


def features(phi: Any, graph: Graph, x: str) -> str:
    """Return the features of new rows: (n, D).

    Parameters
    ----------
    phi : FeatureMap, CenteredFeatures or callable
        The feature map.
    graph : Graph
        The graph that receives the nodes.
    x : str
        The new rows.
    """
    if isinstance(phi, CenteredFeatures):
        return graph.sub(features(phi.features, graph, x), graph.constant(phi.mean))
    if isinstance(phi, FeatureMap):
        return _features(phi.expression, graph, x, phi.n_features)
    if phi is rows_as_features:
        return x
    raise OnnxExportError(f"the features {phi!r} are a function of Python, which ONNX cannot hold")


@singledispatch
def _features(e: Expression, graph: Graph, x: str, d: int) -> str:
    raise OnnxExportError(f"{type(e).__name__} has no finite feature map")


@_features.register
def _(e: Dot, graph: Graph, x: str, d: int) -> str:
    return stepped(e.steps, graph, x)


@_features.register
def _(e: Constant, graph: Graph, x: str, d: int) -> str:
    return graph.filled(np.sqrt(e.value), x, 1)


@_features.register
def _(e: RowProduct, graph: Graph, x: str, d: int) -> str:
    return row_term(e.row, graph, x)


@_features.register
def _(e: Add, graph: Graph, x: str, d: int) -> str:
    return graph.op("Concat", *(_features(term, graph, x, d) for term in e.terms), axis=1)


@_features.register
def _(e: Mul, graph: Graph, x: str, d: int) -> str:
    product, width = _features(e.factors[0], graph, x, d), _width(e.factors[0], d)
    for factor in e.factors[1:]:
        other, count = _features(factor, graph, x, d), _width(factor, d)
        left = graph.columns(product, np.repeat(np.arange(width), count))
        right = graph.columns(other, np.tile(np.arange(count), width))
        product, width = graph.mul(left, right), width * count
    return product


@_features.register
def _(e: Pow, graph: Graph, x: str, d: int) -> str:
    base, m, degree = _features(e.base, graph, x, d), _width(e.base, d), int(e.exponent)
    if degree == 1 or m == 0:
        return base
    tails = [[comb(m - i + q - 1, q) for i in range(m)] for q in range(1, degree)]
    roots = symmetric_power(np.ones((1, m)), degree)[0]
    return graph.scaled(_grown(graph, base, m, tails), roots)


@_features.register
def _(e: SymmetricSum, graph: Graph, x: str, d: int) -> str:
    rows, m = stepped(e.steps, graph, x), _width(Dot(e.steps), d)
    if e.degree == 1:
        return rows
    if e.degree > m:
        raise OnnxExportError(f"{m} columns have no subsets of {e.degree} columns")
    tails = [[comb(m - i - 1, q) for i in range(m)] for q in range(1, e.degree)]
    return _grown(graph, rows, m, tails)


@_features.register
def _(e: SubsetProduct, graph: Graph, x: str, d: int) -> str:
    rows, m = stepped(e.steps, graph, x), _width(Dot(e.steps), d)
    product = graph.filled(1.0, x, 1)
    for i in range(m):
        product = graph.op("Concat", product, graph.mul(product, graph.columns(rows, [i])), axis=1)
    return product


def _grown(graph: Graph, F: str, m: int, tails: list[list[int]]) -> str:
    """Raise the degree from 1, one list of tail lengths (one per column) at a time."""
    level, width = F, m
    for lengths in tails:
        behind: Array = np.concatenate([np.arange(width - length, width) for length in lengths])
        before = np.repeat(np.arange(m), lengths)
        level = graph.mul(graph.columns(level, behind), graph.columns(F, before))
        width = sum(lengths)
    return level


def _width(e: Expression, d: int) -> int:
    found = dimension(e, d)
    if found is None:
        raise OnnxExportError(f"{type(e).__name__} has no finite feature map")
    return found


# --- expansions ----------------------------------------------------------------------------------
#
# Fitted functions f(z) = sum_i c_i k(x_i, z) + b, and phi(z)'w + b, as nodes.


@singledispatch
def functions(expansion: Expansion, graph: Graph, x: str) -> str:
    """Return the values of all functions at new rows: (n, k)."""
    raise OnnxExportError(f"{type(expansion).__name__} has no form in ONNX")


@functions.register
def _(expansion: KernelExpansion, graph: Graph, x: str) -> str:
    offset = graph.constant(expansion.offset)
    if len(expansion.coef) == 0:
        return graph.add(graph.filled(0.0, x, len(expansion.offset)), offset)
    K = kernel_values(expansion.expression, graph, x, expansion.points)
    return graph.add(graph.matmul(K, expansion.coef), offset)


@functions.register
def _(expansion: FeatureExpansion, graph: Graph, x: str) -> str:
    F = features(expansion.features, graph, x)
    return graph.add(graph.matmul(F, expansion.weights), graph.constant(expansion.offset))


@functions.register
def _(expansion: MatrixExpansion, graph: Graph, x: str) -> str:
    return graph.add(graph.matmul(x, expansion.coef), graph.constant(expansion.offset))


@functions.register
def _(expansion: MovedExpansion, graph: Graph, x: str) -> str:
    return functions(expansion.base, graph, graph.sub(x, graph.constant(expansion.mean)))


@functions.register
def _(expansion: ByClass, graph: Graph, x: str) -> str:
    return functions(whole(expansion), graph, x)


def whole(expansion: ByClass) -> KernelExpansion:
    """Return functions of pairs of classes as one expansion over the points of all classes."""
    points, coefs = [], []
    expression = None
    for block, columns in expansion.blocks:
        if not isinstance(block, KernelExpansion):
            raise OnnxExportError(f"{type(block).__name__} has no form in ONNX")
        expression = block.expression
        coef = np.zeros((len(block.coef), len(expansion.offset)))
        coef[:, columns] = block.coef
        points.append(block.points)
        coefs.append(coef)
    assert expression is not None  # there are two classes at least
    stack = sparse.vstack if any(map(is_sparse, points)) else np.concatenate
    return KernelExpansion(expression, stack(points), np.concatenate(coefs), expansion.offset)


def points_of(expansion: Expansion | None) -> Points | None:
    """Return rows that an expansion holds, if any."""
    if isinstance(expansion, ByClass):
        return points_of(whole(expansion)) if expansion.blocks else None
    if isinstance(expansion, MovedExpansion):
        inner = points_of(expansion.base)
        return None if inner is None else to_dense(inner) + expansion.mean
    if isinstance(expansion, KernelExpansion) and len(expansion.coef):
        return expansion.points
    return None


def size_of_sums(expansion: Expansion, Z: Array) -> float:
    """Return the largest sum of |c| |k|: what rounding of the functions is relative to."""
    if isinstance(expansion, ByClass):
        return size_of_sums(whole(expansion), Z)
    if isinstance(expansion, MovedExpansion):
        return size_of_sums(expansion.base, Z - expansion.mean)
    if isinstance(expansion, KernelExpansion) and len(expansion.coef):
        pairs = choose_backend().pairs(expansion.expression, Z, expansion.points, np.float64)
        K = pairs.rows(slice(0, len(Z)))
        return float((np.abs(K) @ np.abs(expansion.coef)).max())
    if isinstance(expansion, FeatureExpansion):
        F = to_dense(expansion.features(Z))
        return float((np.abs(F) @ np.abs(expansion.weights)).max(initial=0.0))
    if isinstance(expansion, MatrixExpansion):
        return float((np.abs(Z) @ np.abs(expansion.coef)).max(initial=0.0))
    return 0.0
