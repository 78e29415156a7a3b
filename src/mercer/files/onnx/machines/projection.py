"""Projections: principal components, and the first view of canonical correlations."""

from __future__ import annotations

import numpy as np

from mercer.files.onnx.errors import OnnxExportError
from mercer.files.onnx.expansions import functions
from mercer.files.onnx.expressions import kernel_values
from mercer.files.onnx.features import features
from mercer.files.onnx.graph import Graph
from mercer.files.onnx.outputs import Output, exported, transformed
from mercer.machines import CCA, PCA
from mercer.machines.projection.subspace import FeatureSubspace, MatrixSubspace, PointSubspace


@transformed.register
def _(machine: PCA, graph: Graph, x: str) -> str:
    space = machine._subspace
    if isinstance(space, FeatureSubspace):
        away = graph.sub(features(space.features, graph, x), graph.constant(space.mean))
        scores = graph.matmul(away, space.directions)
    elif isinstance(space, PointSubspace):
        K = kernel_values(space.source.expression, graph, x, space.source.X)
        scores = graph.sub(graph.matmul(K, space.coef), graph.constant(space.centre[:-1]))
    elif isinstance(space, MatrixSubspace):
        scores = functions(space.expansion, graph, x)
    else:
        raise OnnxExportError(f"PCA: {type(space).__name__} is not exported")
    stretch = machine._stretch()
    return scores if (stretch == 1.0).all() else graph.scaled(scores, stretch)


@transformed.register
def _(machine: CCA, graph: Graph, x: str) -> str:
    return functions(machine._x.expansion, graph, x)


@exported.register(PCA)
@exported.register(CCA)
def _(machine: PCA | CCA, graph: Graph, x: str) -> list[Output]:
    return [Output("transformed", transformed(machine, graph, x), "transform", np.asarray)]
