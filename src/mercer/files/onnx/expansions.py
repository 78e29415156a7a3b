"""Fitted functions f(z) = sum_i c_i k(x_i, z) + b, and phi(z)'w + b, as nodes."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.files.onnx.errors import OnnxExportError
from mercer.files.onnx.expressions import kernel_values
from mercer.files.onnx.features import features
from mercer.files.onnx.graph import Graph
from mercer.gram import Expansion
from mercer.gram.source import KernelExpansion
from mercer.gram.storage.factored import FeatureExpansion
from mercer.gram.storage.precomputed import MatrixExpansion
from mercer.machines.margin.multiclass import ByClass
from mercer.machines.projection.origin import MovedExpansion
from mercer.points import is_sparse, to_dense


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
