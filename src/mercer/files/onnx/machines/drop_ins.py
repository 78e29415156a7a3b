"""Drop-ins for scikit-learn's classes: what the machine inside says, under the names outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.compat.sklearn import (
    KernelPCA,
    KernelRidge,
    KMeans,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    QuadraticDiscriminantAnalysis,
)
from mercer.files.onnx.graph import Graph
from mercer.files.onnx.outputs import (
    LABELS,
    Output,
    exported,
    labels,
    largest,
    second_if,
    transformed,
)


@exported.register(KernelPCA)
@exported.register(KernelRidge)
@exported.register(KMeans)
@exported.register(LogisticRegression)
def _(machine: Any, graph: Graph, x: str) -> list[Output]:
    answers = exported(machine.machine_, graph, x)
    return [answer for answer in answers if hasattr(machine, answer.method)]


@exported.register
def _(machine: QuadraticDiscriminantAnalysis, graph: Graph, x: str) -> list[Output]:
    answers = exported(machine.machine_, graph, x)
    if len(machine.classes_) == 2:
        return answers
    # of more classes scikit-learn's values are log-densities, not log-probabilities
    return [answer for answer in answers if answer.name != "decision"]


@transformed.register
def _(machine: KernelPCA, graph: Graph, x: str) -> str:
    return transformed(machine.machine_, graph, x)


@exported.register
def _(machine: LinearSVC, graph: Graph, x: str) -> list[Output]:
    scores = _linear(machine, graph, x)
    if len(machine.classes_) == 2:
        scores = graph.column(scores, 0)
        chosen = second_if(graph, graph.op("Greater", scores, graph.number(0.0)))
    else:
        chosen = largest(graph, scores)
    return [
        Output(LABELS, labels(graph, machine.classes_, chosen), "predict"),
        Output("decision", scores, "decision_function"),
    ]


@exported.register
def _(machine: LinearSVR, graph: Graph, x: str) -> list[Output]:
    return [Output("prediction", graph.column(_linear(machine, graph, x), 0), "predict")]


def _linear(machine: Any, graph: Graph, x: str) -> str:
    """Return x'w + b of each column of weights."""
    constants = np.broadcast_to(machine.intercept_, (np.atleast_2d(machine.coef_).shape[0],))
    values = graph.matmul(x, np.atleast_2d(machine.coef_).T)
    return graph.add(values, graph.constant(np.array(constants)))
