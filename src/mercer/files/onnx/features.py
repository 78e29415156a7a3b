"""Finite feature maps as nodes: one rule per node, in the order of `kernels/features.py`."""

from __future__ import annotations

from functools import singledispatch
from math import comb
from typing import Any

import numpy as np

from mercer import expression as ex
from mercer.array_types import Array
from mercer.expression import Expression
from mercer.files.onnx.errors import OnnxExportError
from mercer.files.onnx.expressions import row_term
from mercer.files.onnx.graph import Graph
from mercer.files.onnx.statistics import stepped
from mercer.gram.transformed.centered import CenteredFeatures
from mercer.kernels.features import FeatureMap, dimension
from mercer.kernels.monomials import symmetric_power
from mercer.machines.classification.nearest_mean import rows_as_features


def features(phi: Any, graph: Graph, x: str) -> str:
    """Return the features of new rows: (n, D).

    Parameters
    ----------
    phi : FeatureMap, CenteredFeatures or callable
        The feature map.
    graph : Graph
        Where nodes are added.
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
def _(e: ex.Dot, graph: Graph, x: str, d: int) -> str:
    return stepped(e.steps, graph, x)


@_features.register
def _(e: ex.Constant, graph: Graph, x: str, d: int) -> str:
    return graph.filled(np.sqrt(e.value), x, 1)


@_features.register
def _(e: ex.RowProduct, graph: Graph, x: str, d: int) -> str:
    return row_term(e.row, graph, x)


@_features.register
def _(e: ex.Add, graph: Graph, x: str, d: int) -> str:
    return graph.op("Concat", *(_features(term, graph, x, d) for term in e.terms), axis=1)


@_features.register
def _(e: ex.Mul, graph: Graph, x: str, d: int) -> str:
    product, width = _features(e.factors[0], graph, x, d), _width(e.factors[0], d)
    for factor in e.factors[1:]:
        other, count = _features(factor, graph, x, d), _width(factor, d)
        left = graph.columns(product, np.repeat(np.arange(width), count))
        right = graph.columns(other, np.tile(np.arange(count), width))
        product, width = graph.mul(left, right), width * count
    return product


@_features.register
def _(e: ex.Pow, graph: Graph, x: str, d: int) -> str:
    base, m, degree = _features(e.base, graph, x, d), _width(e.base, d), int(e.exponent)
    if degree == 1 or m == 0:
        return base
    tails = [[comb(m - i + q - 1, q) for i in range(m)] for q in range(1, degree)]
    roots = symmetric_power(np.ones((1, m)), degree)[0]
    return graph.scaled(_grown(graph, base, m, tails), roots)


@_features.register
def _(e: ex.SymmetricSum, graph: Graph, x: str, d: int) -> str:
    rows, m = stepped(e.steps, graph, x), _width(ex.Dot(e.steps), d)
    if e.degree == 1:
        return rows
    if e.degree > m:
        raise OnnxExportError(f"there are no sets of {e.degree} of {m} columns")
    tails = [[comb(m - i - 1, q) for i in range(m)] for q in range(1, e.degree)]
    return _grown(graph, rows, m, tails)


@_features.register
def _(e: ex.SubsetProduct, graph: Graph, x: str, d: int) -> str:
    rows, m = stepped(e.steps, graph, x), _width(ex.Dot(e.steps), d)
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
