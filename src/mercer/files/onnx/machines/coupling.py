"""Probabilities of support vector classifiers as nodes: slopes, coupled pairs, their order."""

from __future__ import annotations

import numpy as np

from mercer.files.onnx.graph import Graph
from mercer.files.onnx.machines.votes import decided
from mercer.files.onnx.outputs import largest
from mercer.machines.margin.coupling import _EDGE
from mercer.machines.margin.multiclass import OneVsOne, OneVsRest, Scheme
from mercer.machines.margin.probabilities import _TIE, Calibration


def probabilities(calibration: Calibration, graph: Graph, values: str) -> str:
    """Return probabilities (n, classes) from values of all parts (n, parts)."""
    scheme, slopes = calibration.scheme, calibration.slopes
    above = graph.op("Greater", values, graph.number(0.0))
    slope = graph.where(above, graph.constant(slopes[:, 1]), graph.constant(slopes[:, 0]))
    pairs = graph.op("Sigmoid", graph.mul(slope, values))
    return in_order(graph, _mixed(scheme, graph, pairs), _decision(scheme, graph, values))


def _mixed(scheme: Scheme, graph: Graph, pairs: str) -> str:
    if isinstance(scheme, OneVsOne):
        return _coupled(scheme, graph, pairs)
    if isinstance(scheme, OneVsRest):
        total = graph.sum_columns(pairs)
        some = graph.op("Greater", total, graph.number(0.0))
        shares = graph.div(pairs, graph.where(some, total, graph.number(1.0)))
        return graph.where(some, shares, graph.number(1.0 / scheme.count))
    return graph.op("Concat", graph.sub(graph.number(1.0), pairs), pairs, axis=1)


def _decision(scheme: Scheme, graph: Graph, values: str) -> str:
    if scheme.count > 2:
        return decided(scheme, graph, values)
    return graph.op("Concat", graph.op("Neg", values), values, axis=1)


def _coupled(scheme: OneVsOne, graph: Graph, later: str) -> str:
    """Minimise sum (r_ba p_a - r_ab p_b)^2 with sum p = 1.

    With Q the matrix of the squares, (Q + ee') p is a multiple of e at the minimum; that matrix is
    positive definite, so elimination needs no pivots.
    """
    k = scheme.count
    first, second = np.array(scheme.pairs()).T
    r = graph.op("Clip", later, graph.number(_EDGE), graph.number(1.0 - _EDGE))
    rest = graph.sub(graph.number(1.0), r)
    # column a k + b holds r_ab
    n_pairs = len(first)
    place = np.zeros((2 * n_pairs, k * k))
    place[np.arange(n_pairs), second * k + first] = 1.0
    place[n_pairs + np.arange(n_pairs), first * k + second] = 1.0
    flat = graph.matmul(graph.op("Concat", r, rest, axis=1), place)
    across = graph.columns(flat, np.arange(k * k).reshape(k, k).T.ravel())
    of_columns = np.zeros((k * k, k * k))
    for a in range(k):  # the diagonal: sum over b of r_ba^2
        of_columns[np.arange(k) * k + a, a * k + a] = 1.0
    Q = graph.sub(graph.matmul(graph.mul(flat, flat), of_columns), graph.mul(flat, across))
    shape = graph.constant(np.array([-1, k, k]))
    system = graph.add(graph.op("Reshape", Q, shape), graph.number(1.0))
    p = _solved(graph, system, k)
    p = graph.op("Max", p, graph.number(0.0))
    return graph.div(p, graph.sum_columns(p))


def _solved(graph: Graph, system: str, k: int) -> str:
    """Solve for a right side of ones, row by row: Gauss-Jordan elimination of (n, k, k)."""
    side = graph.op("ReduceSum", system, graph.constant(np.array([2])), keepdims=1)
    side = graph.add(graph.mul(side, graph.number(0.0)), graph.number(1.0))
    table = graph.op("Concat", system, side, axis=2)
    for t in range(k):
        place = graph.constant(np.array([t]))
        column = graph.op("Gather", table, place, axis=2)
        row = graph.op("Gather", table, place, axis=1)
        row = graph.div(row, graph.op("Gather", row, place, axis=2))
        unit = graph.constant(np.eye(k)[:, t][None, :, None])
        table = graph.sub(table, graph.mul(graph.sub(column, unit), row))
    last = graph.op("Gather", table, graph.constant(np.int64(k)), axis=2)
    return last


def in_order(graph: Graph, shares: str, decision: str) -> str:
    """Hand out probabilities so that a larger decision value has a larger probability."""
    count = graph.op("Gather", graph.op("Shape", shares), graph.constant(np.array([1])), axis=0)
    order = graph.ops("TopK", 2, decision, count, axis=1)[1]
    sorted_shares = graph.ops("TopK", 2, shares, count, axis=1)[0]
    zeros = graph.mul(shares, graph.number(0.0))
    ranked = graph.op("ScatterElements", zeros, order, sorted_shares, axis=1)
    best = graph.op("Gather", order, graph.constant(np.array([0])), axis=1)
    found = graph.op("Unsqueeze", largest(graph, ranked), graph.constant(np.array([1])))
    tied = graph.op("Not", graph.op("Equal", best, found))
    raised = graph.where(tied, graph.number(1.0 + _TIE), graph.number(1.0))
    ones = graph.add(zeros, graph.number(1.0))
    factors = graph.op("ScatterElements", ones, best, raised, axis=1)
    ranked = graph.mul(ranked, factors)
    return graph.div(ranked, graph.sum_columns(ranked))
