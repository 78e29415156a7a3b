"""Steps before a machine, and machines made of machines: pipelines, tuned ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from mercer.files.onnx.errors import OnnxExportError
from mercer.files.onnx.graph import Graph
from mercer.files.onnx.outputs import LABELS, Output, exported, labels, second_if, transformed
from mercer.fitting import TableModel
from mercer.machines import ICA, LogShift, ProjectionPursuit, Whiten
from mercer.points import to_dense
from mercer.selection import Tuned


@transformed.register
def _(machine: StandardScaler, graph: Graph, x: str) -> str:
    if machine.with_mean:
        x = graph.sub(x, graph.constant(machine.mean_))
    if machine.with_std:
        x = graph.divided(x, machine.scale_)
    return x


@transformed.register
def _(machine: MinMaxScaler, graph: Graph, x: str) -> str:
    scaled = graph.scaled(x, machine.scale_)
    moved = graph.add(scaled, graph.constant(machine.min_))
    if not machine.clip:
        return moved
    low, high = machine.feature_range
    return graph.op("Clip", moved, graph.number(low), graph.number(high))


@transformed.register
def _(machine: Whiten, graph: Graph, x: str) -> str:
    away = graph.sub(x, graph.constant(machine.mean_))
    return graph.matmul(away, machine.whitening_)


@transformed.register(ICA)
@transformed.register(ProjectionPursuit)
def _(machine: Any, graph: Graph, x: str) -> str:
    away = graph.sub(x, graph.constant(machine.mean_))
    return graph.matmul(away, machine.components_.T)


@transformed.register
def _(machine: LogShift, graph: Graph, x: str) -> str:
    return graph.op("Log", graph.add(x, graph.constant(machine.shift_)))


@exported.register(StandardScaler)
@exported.register(MinMaxScaler)
@exported.register(Whiten)
@exported.register(ICA)
@exported.register(ProjectionPursuit)
@exported.register(LogShift)
def _(machine: Any, graph: Graph, x: str) -> list[Output]:
    return [Output("transformed", transformed(machine, graph, x), "transform")]


@exported.register
def _(machine: Pipeline, graph: Graph, x: str) -> list[Output]:
    *before, (_, last) = machine.steps
    for name, step in before:
        if step in (None, "passthrough"):
            continue
        try:
            x = transformed(step, graph, x)
        except OnnxExportError as error:
            raise OnnxExportError(f"step {name!r}: {error}") from error
    return exported(last, graph, x)


@exported.register(Tuned)
@exported.register(GridSearchCV)
@exported.register(RandomizedSearchCV)
def _(machine: Any, graph: Graph, x: str) -> list[Output]:
    return exported(machine.best_estimator_, graph, x)


def table_answers(model: TableModel, graph: Graph, answers: list[Output]) -> list[Output]:
    """Return the answers of a table model: classes in its order, and its own threshold."""
    if model.task == "regression":
        return answers
    own = np.asarray(model.pipeline.classes_).tolist()
    order = [own.index(label) for label in model.classes]
    named = {answer.name: answer for answer in answers}
    values = {name: answer.value for name, answer in named.items()}
    if order != sorted(order):
        if len(order) == 2:
            values["decision"] = graph.op("Neg", values["decision"])
        else:
            values["decision"] = graph.columns(values["decision"], order)
        if "probabilities" in values:
            values["probabilities"] = graph.columns(values["probabilities"], order)
    if model.threshold is not None:
        over = graph.op("GreaterOrEqual", values["decision"], graph.number(model.threshold))
        values[LABELS] = labels(graph, np.asarray(model.classes), second_if(graph, over))
    return [replace(answer, value=values[answer.name]) for answer in answers]


def last_of(machine: Any) -> tuple[Any, list[Any]]:
    """Return the machine that decides, out of pipelines and searches, and the steps before it."""
    if isinstance(machine, TableModel):
        return last_of(machine.pipeline)
    if isinstance(machine, Tuned | GridSearchCV | RandomizedSearchCV):
        return last_of(machine.best_estimator_)
    if isinstance(machine, Pipeline):
        if machine.steps[-1][1] in (None, "passthrough"):
            raise OnnxExportError("a pipeline that ends in 'passthrough' has no machine to export")
        steps = [step for _, step in machine.steps[:-1] if step not in (None, "passthrough")]
        last, more = last_of(machine.steps[-1][1])
        return last, steps + more
    return machine, []


def through(steps: list[Any], X: Any) -> Any:
    """Send rows through fitted steps."""
    for step in steps:
        X = to_dense(step.transform(X))
    return X
