"""Ridge regression, logistic regression, discriminants and nearest means."""

from __future__ import annotations

import numpy as np

from mercer.files.onnx.errors import OnnxExportError
from mercer.files.onnx.expansions import functions
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
    transformed,
)
from mercer.machines import FisherDiscriminant, KernelRidge, LogisticRegression, NearestMean
from mercer.machines.classification.gaussian_rule import _FARTHEST, Mahalanobis, SharedGaussian


@exported.register
def _(machine: KernelRidge, graph: Graph, x: str) -> list[Output]:
    values = functions(machine._expansion, graph, x)
    if np.ndim(machine.intercept_) == 0:
        values = graph.column(values, 0)
    return [Output("prediction", values, "predict")]


@exported.register
def _(machine: LogisticRegression, graph: Graph, x: str) -> list[Output]:
    scores = functions(machine._expansion, graph, x)
    two = np.size(machine.intercept_) == 1
    decision = graph.column(scores, 0) if two else scores
    if two:
        chosen = second_if(graph, graph.op("Greater", decision, graph.number(0.0)))
    else:
        chosen = largest(graph, scores)
    found = [
        Output(LABELS, labels(graph, machine.classes_, chosen), "predict"),
        Output("decision", decision, "decision_function"),
    ]
    if machine.loss == "squared":
        return found
    shares = _shares(machine.loss, graph, scores, two)
    return [*found, Output("probabilities", shares, "predict_proba")]


def _shares(loss: str, graph: Graph, scores: str, two: bool) -> str:
    if loss not in ("log", "tanh"):
        raise OnnxExportError(f"LogisticRegression: loss={loss!r} is not exported")
    if loss == "tanh":
        scores = graph.add(scores, scores)
    if two:
        both = graph.op("Concat", graph.op("Neg", scores), scores, axis=1)
        return graph.op("Sigmoid", both)
    if loss == "tanh":  # the logarithm of the logistic function
        small = graph.op("Exp", graph.op("Neg", graph.op("Abs", scores)))
        log = graph.op("Log", graph.add(graph.number(1.0), small))
        scores = graph.sub(graph.op("Min", scores, graph.number(0.0)), log)
    return softmax(graph, scores)


@transformed.register
def _(machine: FisherDiscriminant, graph: Graph, x: str) -> str:
    return functions(machine._expansion, graph, x)


@exported.register
def _(machine: FisherDiscriminant, graph: Graph, x: str) -> list[Output]:
    places = transformed(machine, graph, x)
    scores = _rule_scores(machine._rule, graph, places)
    decision = scores
    if len(machine.classes_) == 2:
        decision = graph.sub(graph.column(scores, 1), graph.column(scores, 0))
    shares = graph.op("Exp", log_softmax(graph, scores))
    return [
        Output(LABELS, labels(graph, machine.classes_, largest(graph, scores)), "predict"),
        Output("decision", decision, "decision_function"),
        Output("probabilities", shares, "predict_proba"),
        Output("transformed", places, "transform"),
    ]


def _rule_scores(rule: object, graph: Graph, places: str) -> str:
    if isinstance(rule, SharedGaussian):
        own = 0.5 * np.square(rule.means).sum(axis=1)
        with np.errstate(divide="ignore"):
            logs = np.log(rule.priors)
        if not np.isfinite(logs).all():
            raise OnnxExportError("FisherDiscriminant: a prior of zero is not exported")
        less = graph.sub(graph.matmul(places, rule.means.T), graph.constant(own))
        scaled = graph.scaled(less, np.full(len(own), 1.0 / rule.variance))
        return graph.add(scaled, graph.constant(logs))
    if isinstance(rule, Mahalanobis):
        columns = []
        for mean, factor in zip(rule.means, rule.factors, strict=True):
            away = graph.sub(places, graph.constant(mean))
            columns.append(squared_lengths(graph, graph.matmul(away, factor.T)))
        squared = graph.op("Min", graph.op("Concat", *columns, axis=1), graph.number(_FARTHEST))
        return graph.scaled(squared, np.full(len(columns), -0.5))
    raise OnnxExportError(f"the rule {type(rule).__name__} is not exported")


@exported.register
def _(machine: NearestMean, graph: Graph, x: str) -> list[Output]:
    scores = functions(machine._expansion, graph, x)
    decision = scores
    if len(machine.classes_) == 2:
        difference = graph.sub(graph.column(scores, 1), graph.column(scores, 0))
        decision = graph.div(difference, graph.number(2.0))
    chosen = largest(graph, scores)
    return [
        Output(LABELS, labels(graph, machine.classes_, chosen), "predict"),
        Output("decision", decision, "decision_function"),
    ]
