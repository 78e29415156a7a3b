"""From a fitted machine to an ONNX file that says the same."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.data import Table, TablePreparation
from mercer.files.atomic import write_file
from mercer.files.libsvm.machines import machine_of
from mercer.files.libsvm.model import LibsvmModel
from mercer.files.onnx import machines
from mercer.files.onnx.errors import OnnxExportError
from mercer.files.onnx.graph import INPUT, IR_VERSION, ML_OPSET, OPSET, Graph
from mercer.files.onnx.machines.linear_steps import last_of, table_answers
from mercer.files.onnx.outputs import Output, exported, transformed
from mercer.files.onnx.parity import Parity, compare
from mercer.files.onnx.sample import sample_rows
from mercer.files.onnx.tables import feeds_of, prepared, refuse_columns, table_sample
from mercer.fitting import TableModel

_ = machines  # imported for the rules it registers
_LARGEST = 2**31 - 1  # bytes of a protobuf message: the whole file, since nothing lies beside it


def to_onnx(
    machine: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    rows_sample: npt.ArrayLike | None = None,
) -> Any:
    """Return a fitted machine as an ONNX graph in double precision.

    The graph is made of plain operators, with opset 17 and ir_version 8 (onnxruntime 1.12 and
    later). Its input `X` is a table of doubles, (n, n_features). Before it is handed out it runs in
    onnxruntime on sample rows: every value must be that of the machine to 1e-12 of the largest, or
    to the rounding of the sums that it is, and every label off the border the same; else it is
    refused.

    Parameters
    ----------
    machine : fitted machine, Pipeline, Tuned or LibsvmModel
        SVC, SVR, OneClassSVM, EnclosingBall and their drop-ins; KernelRidge, LogisticRegression,
        FisherDiscriminant, NearestMean, GaussianClassifier; PCA, CCA (its first view), ICA,
        ProjectionPursuit, Whiten; KMeans, GaussianMixture; pipelines of those behind
        StandardScaler, MinMaxScaler and the projections; pipelines and table models (`mercer.fit`)
        behind `TablePreparation`, whose graph has one input for each column: (n, 1), doubles with
        NaN where missing, or texts with the empty one where missing. Others are refused by name,
        and so are text and date columns.
    path : str or path, optional
        Where to write; the file takes its name when it is whole.
    rows_sample : array-like of shape (n_samples, n_features) or Table, optional
        Rows to compare at beside those that the machine holds (support vectors, means), moved a
        little and a lot, and points at which labels change.

    Returns
    -------
    onnx.ModelProto
        The graph. Classifiers have outputs `label`, `decision` and, where the machine has them,
        `probabilities`; regressors `prediction`; projections `transformed`; clusterings `label`
        with `squared_distances` (KMeans) or `probabilities` and `log_density` (GaussianMixture).
        Its metadata say how near to the machine it came.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> X = np.array([[-1.0, 0.0], [-2.0, 1.0], [1.0, 0.5], [2.0, -1.0]])
    >>> model = to_onnx(SVC().fit(X, ["no", "no", "yes", "yes"]))
    >>> [output.name for output in model.graph.output]
    ['label', 'decision']
    """
    if isinstance(machine, LibsvmModel):
        machine = machine_of(machine)
    rows, feeds = _sample(machine, rows_sample)
    for differences in (False, True):
        model, outputs = _made(machine, rows.shape[1], differences)
        parity = compare(machine, model.SerializeToString(), outputs, rows, feeds)
        if parity.ok:
            _describe(model, machine, parity)
            if path is not None:
                write_file(path, [model.SerializeToString()])
            return model
    raise OnnxExportError(
        f"{type(machine).__name__}: the graph differs from the machine on {parity.rows} rows by "
        f"more than rounding: {parity}, relative to the largest value. Scale the columns, or use "
        "a larger penalty or scale, so that sums cancel less"
    )


def _sample(machine: Any, given: Any) -> tuple[Any, dict[str, Array]]:
    """Return rows to compare at, and the same as inputs of the graph."""
    preparation = _preparation(machine)
    if preparation is not None:
        refuse_columns(preparation)
        table = table_sample(preparation) if given is None else Table.of(given)
        return table, feeds_of(preparation, table)
    check_is_fitted(machine)
    rows = np.ascontiguousarray(_rows(machine, given))
    return rows, {INPUT: rows}


def _preparation(machine: Any) -> TablePreparation | None:
    _, steps = last_of(machine)
    first = steps[0] if steps else None
    return first if isinstance(first, TablePreparation) else None


def _rows(machine: Any, given: npt.ArrayLike | None) -> Array:
    width = getattr(machine, "n_features_in_", None)
    if width is None:
        raise OnnxExportError(
            f"{type(machine).__name__} was fitted to sequences, or to what a function compares; "
            "ONNX takes rows of numbers"
        )
    rows = np.zeros((0, int(width)))
    if given is not None:
        rows = np.asarray(given, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != width or not np.isfinite(rows).all():
            raise ValueError(f"rows_sample must be a table of finite numbers, (n, {width})")
    return np.concatenate([rows, sample_rows(machine, int(width))])


def _made(machine: Any, width: int, differences: bool) -> tuple[Any, list[Output]]:
    graph = Graph(differences)
    outputs = _answers(machine, graph, width)
    onnx = graph.onnx
    clash = {output.name for output in outputs} & {one.name for one in graph.inputs}
    if clash:
        raise OnnxExportError(f"a column is called {clash.pop()!r}, as an answer is; rename it")
    for output in outputs:  # names of their own
        graph.nodes.append(onnx.helper.make_node("Identity", [output.value], [output.name]))
    untyped = [onnx.helper.make_empty_tensor_value_info(output.name) for output in outputs]
    held = onnx.helper.make_graph(graph.nodes, "mercer", graph.inputs, untyped, graph.constants)
    sets = {"": OPSET} | ({"ai.onnx.ml": ML_OPSET} if graph.uses_words else {})
    model = onnx.helper.make_model(
        held,
        opset_imports=[onnx.helper.make_opsetid(*pair) for pair in sets.items()],
        ir_version=IR_VERSION,
        producer_name="mercer",
        producer_version=sys.modules["mercer"].__version__,  # rooms do not import the front door
    )
    if model.ByteSize() > _LARGEST:
        raise OnnxExportError(
            f"{type(machine).__name__}: the graph has {model.ByteSize()} bytes, and a single ONNX "
            "file holds 2 GB; use fewer support vectors or columns"
        )
    _type_outputs(onnx, model, outputs)
    onnx.checker.check_model(model)
    return model, outputs


def _answers(machine: Any, graph: Graph, width: int) -> list[Output]:
    """Add inputs and answers to a graph."""
    preparation = _preparation(machine)
    if preparation is None:
        return exported(machine, graph, graph.input(INPUT, graph.onnx.TensorProto.DOUBLE, width))
    x = prepared(preparation, graph)
    last, steps = last_of(machine)
    for step in steps[1:]:
        x = transformed(step, graph, x)
    answers = exported(last, graph, x)
    return table_answers(machine, graph, answers) if isinstance(machine, TableModel) else answers


def _type_outputs(onnx: Any, model: Any, outputs: list[Output]) -> None:
    """Write the types of the answers, which ONNX finds from those of the nodes."""
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    known = {value.name: value for value in inferred.graph.output}
    for place, output in enumerate(outputs):
        model.graph.output[place].CopyFrom(known[output.name])


def _describe(model: Any, machine: Any, parity: Parity) -> None:
    told = {
        "mercer.machine": type(machine).__name__,
        "mercer.parity": f"on {parity.rows} rows, relative to the largest value: {parity}",
    }
    for key, value in told.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
