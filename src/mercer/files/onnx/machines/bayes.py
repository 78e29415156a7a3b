"""Classifiers by class densities: Gaussians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.files.onnx.errors import OnnxExportError
from mercer.files.onnx.graph import Graph
from mercer.files.onnx.outputs import (
    LABELS,
    Output,
    exported,
    labels,
    largest,
    log_softmax,
    second_if,
    softmax,
    squared_lengths,
)
from mercer.machines import GaussianClassifier
from mercer.machines.base.decision import rule_of
from mercer.machines.bayes.gaussian_scores import planes


@exported.register
def _(machine: GaussianClassifier, graph: Graph, x: str) -> list[Output]:
    spread, prior = machine._spread, machine.prior_
    if not prior.all():
        raise OnnxExportError("GaussianClassifier: a prior of zero is not exported")
    if len(spread.values) < len(prior):
        normals, offsets, centre = planes(spread, prior)
        away = graph.sub(x, graph.constant(centre))
        scores = graph.add(graph.matmul(away, normals.T), graph.constant(offsets))
    else:
        scores = _quadratic(spread, prior, graph, x)
    return posterior(machine, graph, scores)


def _quadratic(spread: Any, prior: Array, graph: Graph, x: str) -> str:
    """Return log P(c) + log N(x; c) with a covariance for each class."""
    columns = []
    width = 1.0 / np.sqrt(spread.values)
    for c, mean in enumerate(spread.mean):
        away = graph.sub(x, graph.constant(mean))
        if spread.vectors is None:
            white = graph.scaled(away, width[c] / spread.scale)
        else:
            turned = spread.vectors[c] * width[c][None, :] / spread.scale[:, None]
            white = graph.matmul(away, turned)
        columns.append(squared_lengths(graph, white))
    d = spread.mean.shape[1]
    volume = np.log(spread.values).sum(axis=1) + 2 * np.log(spread.scale).sum()
    constants = np.log(prior) - 0.5 * (volume + d * np.log(2 * np.pi))
    squares = graph.scaled(graph.op("Concat", *columns, axis=1), np.full(len(prior), -0.5))
    return graph.add(squares, graph.constant(constants))


def posterior(machine: Any, graph: Graph, scores: str) -> list[Output]:
    """Return decision, label and probabilities from the logarithms of p(x, class)."""
    k = len(machine.classes_)
    loss, threshold = rule_of(machine, k)
    decision = _margins(machine, graph, scores, loss, threshold)
    if k == 2:
        chosen = second_if(graph, graph.op("Greater", decision, graph.number(0.0)))
    else:
        chosen = largest(graph, scores if loss is None else decision)
    return [
        Output(LABELS, labels(graph, machine.classes_, chosen), "predict"),
        Output("decision", decision, "decision_function"),
        Output("probabilities", softmax(graph, scores), "predict_proba"),
    ]


def _margins(machine: Any, graph: Graph, scores: str, loss: Any, threshold: float) -> str:
    k = len(machine.classes_)
    if k == 2:
        odds = graph.sub(graph.column(scores, 1), graph.column(scores, 0))
        if loss is not None:
            second, first = loss[1, 0] - loss[0, 0], loss[0, 1] - loss[1, 1]
            if not (second > 0 and first > 0):
                raise OnnxExportError(
                    f"{type(machine).__name__}: a loss by which a right decision costs more than a "
                    "wrong one is not exported"
                )
            threshold = math.log(second) - math.log(first)
        elif not math.isfinite(threshold):
            raise OnnxExportError(f"{type(machine).__name__}: an infinite threshold: not exported")
        return graph.sub(odds, graph.number(threshold))
    if loss is None:
        return log_softmax(graph, scores)
    return graph.op("Neg", graph.matmul(softmax(graph, scores), np.asarray(loss).T))
