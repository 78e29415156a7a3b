"""Clusterings: k-means in feature space, mixtures of Gaussians."""

from __future__ import annotations

import numpy as np

from mercer.files.onnx.expansions import functions
from mercer.files.onnx.expressions import diagonal
from mercer.files.onnx.features import features
from mercer.files.onnx.graph import Graph
from mercer.files.onnx.outputs import (
    LABELS,
    Output,
    exported,
    largest,
    log_softmax,
    squared_lengths,
)
from mercer.machines import GaussianMixture, KMeans
from mercer.machines.clustering.means import KernelDiagonal
from mercer.problems.mixture.gaussian_mixture import _constants


@exported.register
def _(machine: KMeans, graph: Graph, x: str) -> list[Output]:
    closeness = functions(machine._expansion, graph, x)
    found = [Output(LABELS, largest(graph, closeness), "predict")]
    if machine._own is None:
        return found
    if isinstance(machine._own, KernelDiagonal):
        own = diagonal(machine._own.expression, graph, x)
    else:
        own = squared_lengths(graph, features(machine._own.features, graph, x))
    twice = graph.add(closeness, closeness)
    squared = graph.op("Max", graph.sub(own, twice), graph.number(0.0))
    # squared: the root of a distance near zero has half of its digits
    return [*found, Output("squared_distances", squared, "transform", np.square)]


@exported.register
def _(machine: GaussianMixture, graph: Graph, x: str) -> list[Output]:
    parts, problem = machine._parts, machine._problem
    k, d = parts.means.shape
    roots = problem.shape.roots(parts.covariances, k, d)
    away = graph.sub(x, graph.constant(machine._origin))
    rows = graph.divided(away, machine._scale)
    columns = []
    for mean, root in zip(parts.means, roots, strict=True):
        near = graph.sub(rows, graph.constant(mean))
        flat = root.ndim == 1
        white = graph.scaled(near, root) if flat else graph.matmul(near, root.T)
        columns.append(squared_lengths(graph, white))
    squares = graph.op("Concat", *columns, axis=1) if k > 1 else columns[0]
    joint = graph.add(
        graph.scaled(squares, np.full(k, -0.5)), graph.constant(_constants(parts, roots))
    )
    logs = log_softmax(graph, joint)
    shares = graph.op("Exp", logs)
    density = graph.column(graph.sub(joint, logs), 0)
    return [
        Output(LABELS, largest(graph, shares), "predict"),
        Output("probabilities", shares, "predict_proba"),
        Output(
            "log_density", graph.add(density, graph.number(problem.log_volume)), "score_samples"
        ),
    ]
