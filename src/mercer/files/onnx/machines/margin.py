"""Support vector machines: decisions, votes of pairs, probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.compat.sklearn.base.classifier import PairClassifier
from mercer.compat.sklearn.base.inputs import Compared
from mercer.compat.sklearn.base.regressor import TubeRegressor
from mercer.compat.sklearn.svm.one_class import OneClassSVM as OneClassDropIn
from mercer.expression import bind_columns
from mercer.files.onnx.errors import OnnxExportError
from mercer.files.onnx.expansions import functions
from mercer.files.onnx.expressions import diagonal
from mercer.files.onnx.graph import Graph
from mercer.files.onnx.machines.coupling import probabilities
from mercer.files.onnx.machines.votes import decided, votes
from mercer.files.onnx.outputs import LABELS, Output, exported, labels, largest, second_if
from mercer.kernels import Precomputed
from mercer.machines import SVC, SVR, EnclosingBall, OneClassSVM
from mercer.machines.margin.multiclass import OneVsOne


@exported.register
def _(machine: SVC, graph: Graph, x: str) -> list[Output]:
    values = functions(machine._expansion, graph, x)
    scheme = machine._scheme
    decision = decided(scheme, graph, values)
    if scheme.count == 2:
        chosen = second_if(graph, graph.op("Greater", decision, graph.number(0.0)))
    else:
        chosen = largest(graph, decision)
    found = [
        Output(LABELS, labels(graph, machine.classes_, chosen), "predict"),
        Output("decision", decision, "decision_function"),
    ]
    return found + _probabilities(machine, graph, values)


@exported.register
def _(machine: PairClassifier, graph: Graph, x: str) -> list[Output]:
    _refuse_functions(machine)
    inner = machine.machine_
    scheme = inner._scheme
    values = functions(inner._expansion, graph, x)
    zero = graph.number(0.0)
    if not isinstance(scheme, OneVsOne):
        decision = graph.column(values, 0)
        chosen = second_if(graph, graph.op("GreaterOrEqual", decision, zero))
    else:
        decision = decided(scheme, graph, values)
        later = graph.op("GreaterOrEqual", values, zero)
        chosen = largest(graph, decision if machine.break_ties else votes(scheme, graph, later))
        if machine.decision_function_shape == "ovo":
            decision = graph.op("Neg", values)
    found = [
        Output(LABELS, labels(graph, machine.classes_, chosen), "predict"),
        Output("decision", decision, "decision_function"),
    ]
    return found + _probabilities(inner, graph, values)


@exported.register
def _(machine: SVR, graph: Graph, x: str) -> list[Output]:
    return [
        Output("prediction", graph.column(functions(machine._expansion, graph, x), 0), "predict")
    ]


@exported.register
def _(machine: TubeRegressor, graph: Graph, x: str) -> list[Output]:
    _refuse_functions(machine)
    return exported(machine.machine_, graph, x)


@exported.register
def _(machine: OneClassSVM, graph: Graph, x: str) -> list[Output]:
    score = graph.column(functions(machine._expansion, graph, x), 0)
    return _novelty(graph, score, float(machine.offset_))


@exported.register
def _(machine: OneClassDropIn, graph: Graph, x: str) -> list[Output]:
    _refuse_functions(machine)
    return exported(machine.machine_, graph, x)


@exported.register
def _(machine: EnclosingBall, graph: Graph, x: str) -> list[Output]:
    if isinstance(machine.kernel_, Precomputed):
        raise OnnxExportError("EnclosingBall: a precomputed kernel does not tell k(x, x)")
    expression = bind_columns(machine.kernel_.expression(), machine._column_names())
    own = graph.column(diagonal(expression, graph, x), 0)
    f = graph.column(functions(machine._expansion, graph, x), 0)
    squared = graph.add(graph.sub(own, graph.add(f, f)), graph.number(machine._centre))
    return _novelty(graph, graph.op("Neg", squared), float(machine.offset_))


def _novelty(graph: Graph, score: str, offset: float) -> list[Output]:
    decision = graph.sub(score, graph.number(offset))
    common = graph.op("GreaterOrEqual", decision, graph.number(0.0))
    label = graph.where(common, graph.constant(np.int64(1)), graph.constant(np.int64(-1)))
    return [Output(LABELS, label, "predict"), Output("decision", decision, "decision_function")]


def _probabilities(machine: SVC, graph: Graph, values: str) -> list[Output]:
    if not machine.probability or machine._calibration is None:
        return []
    found = probabilities(machine._calibration, graph, values)
    return [Output("probabilities", found, "predict_proba")]


def _refuse_functions(machine: Any) -> None:
    if isinstance(machine._reader, Compared):
        raise OnnxExportError(
            f"{type(machine).__name__}: the kernel is a function of Python, which ONNX cannot "
            "hold; fit with kernel='precomputed'"
        )
