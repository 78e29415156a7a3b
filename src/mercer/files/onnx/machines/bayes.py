"""Classifiers by class densities: Gaussians, and naive Bayes of numbers."""

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
from mercer.machines import GaussianClassifier, NaiveBayes
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


@exported.register
def _(machine: NaiveBayes, graph: Graph, x: str) -> list[Output]:
    layout, model = machine._layout, machine.solution_.value
    if len(layout.categorical):
        raise OnnxExportError(
            f"NaiveBayes: column {int(layout.categorical[0])} is categorical, which is not "
            "exported; numbers, counts and zeros and ones are"
        )
    if not machine.prior_.all():
        raise OnnxExportError("NaiveBayes: a prior of zero is not exported")
    terms = []
    if len(layout.binary):
        bits, present = _with_gaps(graph, graph.columns(x, layout.binary))
        terms.append(graph.matmul(bits, (model.ones - model.zeros).T))
        terms.append(graph.matmul(present, model.zeros.T))
    if len(layout.count):
        terms.append(graph.matmul(graph.columns(x, layout.count), model.words.T))
    if len(layout.gaussian):
        terms += _bells(graph, graph.columns(x, layout.gaussian), model)
    total = terms[0]
    for term in terms[1:]:
        total = graph.add(total, term)
    return posterior(machine, graph, graph.add(total, graph.constant(model.prior)))


def _with_gaps(graph: Graph, x: str) -> tuple[str, str]:
    """Return columns with zeros where entries are missing, and ones where they are not."""
    missing = graph.op("IsNaN", x)
    present = graph.op("Cast", graph.op("Not", missing), to=graph.onnx.TensorProto.DOUBLE)
    return graph.where(missing, graph.number(0.0), x), present


def _bells(graph: Graph, x: str, model: Any) -> list[str]:
    """Return the two parts of Gaussian log-densities: squares, and constants of what is there."""
    missing, (_, present) = graph.op("IsNaN", x), _with_gaps(graph, x)
    columns = []
    for mean, variance in zip(model.mean, model.variance, strict=True):
        centre = graph.constant(mean)
        away = graph.sub(graph.where(missing, centre, x), centre)
        columns.append(squared_lengths(graph, graph.scaled(away, 1.0 / np.sqrt(variance))))
    squares = graph.scaled(graph.op("Concat", *columns, axis=1), np.full(len(columns), -0.5))
    constants = graph.matmul(present, -0.5 * np.log(2.0 * np.pi * model.variance).T)
    return [squares, constants]


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
