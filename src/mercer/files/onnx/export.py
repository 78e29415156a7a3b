"""Function `to_onnx`; tables as inputs, sample rows, and comparison with onnxruntime."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.data import Table, TablePreparation
from mercer.data.preparation import kinds_in
from mercer.expression import Statistic, bind_columns, walk
from mercer.files.container import write_file
from mercer.files.libsvm.machines import machine_of
from mercer.files.libsvm.model import LibsvmModel
from mercer.files.onnx.graph import (
    INPUT,
    IR_VERSION,
    LABELS,
    ML_OPSET,
    OPSET,
    Graph,
    OnnxExportError,
    Output,
    exported,
    require_runtime,
    transformed,
)
from mercer.files.onnx.kernels import points_of, size_of_sums
from mercer.files.onnx.machines import last_of, table_answers, through
from mercer.fitting import TableModel
from mercer.gram import Source
from mercer.gram.evaluated import KernelExpansion
from mercer.kernels import Kernel, Precomputed
from mercer.machines.bayes.naive_bayes import NaiveBayes
from mercer.machines.clustering.kmeans import KMeans
from mercer.machines.decomposition.components import PointSubspace
from mercer.machines.decomposition.whiten import LogShift
from mercer.machines.svm.novelty import EnclosingBall
from mercer.rows.points import is_objects, to_dense

# --- export --------------------------------------------------------------------------------------
#
# From a fitted estimator to an equivalent ONNX file.

_LARGEST = 2**31 - 1  # bytes of a protobuf message, that is of the whole file


def to_onnx(
    machine: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    rows_sample: npt.ArrayLike | None = None,
) -> Any:
    """Return a fitted estimator as an ONNX graph in double precision.

    The graph is made of plain operators, with opset 17 and ir_version 8 (onnxruntime 1.12 and
    later). Its input `X` is a table of doubles, (n, n_features). The graph is first run in
    onnxruntime on sample rows. Every value must equal that of the estimator to 1e-12 of the
    largest, or to the rounding of its sums. Every label off the decision boundary must be the same.
    Otherwise the export raises `OnnxExportError`.

    Parameters
    ----------
    machine : fitted machine, Pipeline, Tuned or LibsvmModel
        SVC, SVR, OneClassSVM, EnclosingBall and their drop-ins; KernelRidge, LogisticRegression,
        FisherDiscriminant, NearestMean, GaussianClassifier; PCA, CCA (its first view), ICA,
        ProjectionPursuit, Whiten; KMeans, GaussianMixture; pipelines of those behind
        StandardScaler, MinMaxScaler and the projections; pipelines and table models (`mercer.fit`)
        behind `TablePreparation`, whose graph has one input for each column: (n, 1), doubles with
        NaN if missing, or texts, empty if missing. Other estimators raise an error,
        and so are text and date columns.
    path : str or path, optional
        Path of the file; the file gets its name once it is complete.
    rows_sample : array-like of shape (n_samples, n_features) or Table, optional
        Rows to compare at, in addition to those that the estimator holds (support vectors, means),
        moved a little and a lot, and points at which labels change.

    Returns
    -------
    onnx.ModelProto
        The graph. Classifiers have outputs `label`, `decision` and, if the estimator has them,
        `probabilities`; regressors `prediction`; projections `transformed`; clusterings `label`
        with `squared_distances` (KMeans) or `probabilities` and `log_density` (GaussianMixture).
        Its metadata hold the differences from the estimator.

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
        f"{type(machine).__name__}: the graph differs from the estimator on {parity.rows} rows by "
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
            f"{type(machine).__name__}: it was fitted to sequences, or with a kernel that is a "
            "function; ONNX export needs rows of numbers"
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
        raise OnnxExportError(f"column {clash.pop()!r} has the name of an output; rename it")
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
        producer_version=sys.modules["mercer"].__version__,  # subpackages do not import mercer
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
    """Add inputs and outputs to a graph."""
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
    """Write the types of the outputs, which ONNX infers from those of the nodes."""
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


# --- tables --------------------------------------------------------------------------------------
#
# Tables as inputs of a graph: one input for each column, prepared as `TablePreparation` does.
#
# Numbers are doubles, NaN where missing; categories are texts, the empty text where missing. Both
# have the shape (n, 1) and the name of the column.

_TABLES_ROWS = 200  # of a sample
_STRANGE = "a level that is none of those of the training rows"


def prepared(preparation: TablePreparation, graph: Graph) -> str:
    """Add one input for each column to a graph, and return the rows of numbers: (n, d)."""
    plan = preparation.plan_
    gaps, parts = set(plan["gaps"]), []
    absent = []
    for k, name in enumerate(plan["numbers"]):
        column = graph.input(name, graph.onnx.TensorProto.DOUBLE)
        missing = graph.op("IsNaN", column)
        parts.append(graph.where(missing, graph.number(preparation.medians_[k]), column))
        if name in gaps:
            absent.append(graph.op("Cast", missing, to=graph.onnx.TensorProto.DOUBLE))
    if parts:
        away = graph.sub(_beside(graph, parts), graph.constant(preparation.means_))
        parts = [graph.divided(away, preparation.scales_)]
    parts += absent
    for name, levels in plan["levels"].items():
        column = graph.input(name, graph.onnx.TensorProto.STRING)
        parts.append(_one_hot(graph, column, levels, name in gaps))
    return _beside(graph, parts)


def refuse_columns(preparation: TablePreparation) -> None:
    """Raise an error that names columns that are neither numbers nor categories."""
    plan = preparation.plan_
    for key, what in (("words", "text"), ("dates", "date"), ("sparse", "sparse")):
        if plan[key]:
            raise OnnxExportError(
                f"TablePreparation: the {what} column {next(iter(plan[key]))!r} is not exported to "
                "ONNX; numbers and categories are. Leave it out, or make numbers of it first"
            )
    for name, levels in plan["levels"].items():
        if "" in levels:
            raise OnnxExportError(
                f"TablePreparation: the empty text is a level of {name!r}; in the graph it stands "
                "for a missing entry"
            )


def _one_hot(graph: Graph, column: str, levels: list[str], gaps: bool) -> str:
    """Return an indicator column per level, and for the empty text if values were missing."""
    words = [*levels, ""] if gaps else levels
    codes = graph.op(
        "LabelEncoder",
        column,
        domain="ai.onnx.ml",
        keys_strings=list(words),
        values_int64s=list(range(len(words))),
        default_int64=-1,
    )
    same = graph.op("Equal", codes, graph.constant(np.arange(len(words))[None]))
    return graph.op("Cast", same, to=graph.onnx.TensorProto.DOUBLE)


def _beside(graph: Graph, parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else graph.op("Concat", *parts, axis=1)


def table_sample(preparation: TablePreparation) -> Table:
    """Return rows like the training rows, with missing values and unknown levels."""
    rng, plan = np.random.default_rng(0), preparation.plan_
    columns: dict[str, Any] = {}
    for k, name in enumerate(plan["numbers"]):
        values = preparation.means_[k] + preparation.scales_[k] * rng.normal(size=_TABLES_ROWS)
        columns[name] = np.where(rng.random(_TABLES_ROWS) < 0.1, np.nan, values)
    for name, levels in plan["levels"].items():
        words = np.array([*levels, _STRANGE, None], dtype=object)
        columns[name] = words[rng.integers(len(words), size=_TABLES_ROWS)]
    return Table.of(columns, kinds=kinds_in(plan))


def feeds_of(preparation: TablePreparation, table: Table) -> dict[str, Array]:
    """Return the inputs of a graph for the rows of a table."""
    plan = preparation.plan_
    table = table[list(kinds_in(plan))].with_kinds(kinds_in(plan))
    feeds = {name: np.asarray(table[name], dtype=np.float64)[:, None] for name in plan["numbers"]}
    for name in plan["levels"]:
        words = ["" if word is None else word for word in table[name].tolist()]
        feeds[name] = np.array(words, dtype=object)[:, None]
    return feeds


# --- sample --------------------------------------------------------------------------------------
#
# Rows for comparing a graph with its estimator: like training rows, and near the boundary.

_SAMPLE_ROWS = 96  # rows of the estimator, and as many again of other kinds
_BISECTIONS = 30  # of a segment between two labels: 10^-9 of its length is left
_NEAR = 1e-3  # of the spread of the rows


def sample_rows(machine: Any, width: int) -> Array:
    """Return rows to compare at: (n, width).

    Rows that the estimator holds (support vectors, means), the same with small and large changes,
    and for classifiers points where labels change.

    Parameters
    ----------
    machine : fitted estimator or pipeline
        The estimator.
    width : int
        The number of columns of the rows it takes.
    """
    rng = np.random.default_rng(0)
    last, steps = last_of(machine)
    if isinstance(last, NaiveBayes) and not steps:
        return _bayes_rows(last, width, rng)
    first = steps[0] if steps else last
    held = _held(first, width, rng)
    spread = held.std(axis=0) + 1e-300
    near = held + _NEAR * spread * rng.normal(size=held.shape)
    far = held[rng.permutation(len(held))] + spread * rng.normal(size=held.shape)
    rows = np.concatenate([held, near, far])
    if _is_nonnegative(last):
        rows = np.abs(rows)
    if isinstance(first, LogShift):  # no logarithm below
        rows = np.abs(rows) - first.shift_ + 1e-3
    return np.concatenate([rows, border_rows(machine, rows, rng)])


def border_rows(
    machine: Any, rows: Array, rng: np.random.Generator, count: int = _SAMPLE_ROWS
) -> Array:
    """Return points between rows of different labels, next to where the label changes.

    Parameters
    ----------
    machine : fitted estimator or pipeline
        With labels; others have no such points.
    rows : (n, d) array
        Rows that span the search region.
    rng : Generator
        Source of random numbers.
    count : int
        Number of pairs of rows.
    """
    if not _gives_labels(machine):
        return rows[:0]
    a = rows[rng.integers(len(rows), size=count)]
    b = rows[rng.integers(len(rows), size=count)]
    label = np.asarray(machine.predict(a))
    different = np.asarray(machine.predict(b)) != label
    a, b, label = a[different], b[different], label[different]
    low, high = np.zeros(len(a)), np.ones(len(a))
    for _ in range(_BISECTIONS):
        if not len(a):
            break
        middle = (low + high) / 2
        same = np.asarray(machine.predict(a + middle[:, None] * (b - a))) == label
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    ends = [a + t[:, None] * (b - a) for t in (low, high)]
    return np.concatenate(ends) if len(a) else rows[:0]


def _gives_labels(machine: Any) -> bool:
    last, _ = last_of(machine)
    kinds = getattr(last, "_estimator_type", None) or last.__sklearn_tags__().estimator_type
    return hasattr(machine, "predict") and kinds in ("classifier", "clusterer", "outlier_detector")


def _held(machine: Any, width: int, rng: np.random.Generator) -> Array:
    """Return rows that an estimator or step holds; random ones if it holds none."""
    if isinstance(machine, StandardScaler):
        scale = machine.scale_ if machine.scale_ is not None else 1.0
        mean = machine.mean_ if machine.mean_ is not None else 0.0
        return np.asarray(mean + scale * rng.normal(size=(_SAMPLE_ROWS, width)))
    if isinstance(machine, MinMaxScaler):
        share = rng.random((_SAMPLE_ROWS, width))
        return np.asarray(machine.data_min_ + share * (machine.data_max_ - machine.data_min_))
    inner = getattr(machine, "machine_", machine)
    if isinstance(getattr(inner, "kernel_", None), Precomputed):
        return rng.random((_SAMPLE_ROWS, width))
    points = _points(inner)
    if points is None or is_objects(points) or points.shape[1] != width:
        return rng.normal(size=(_SAMPLE_ROWS, width))
    kept = rng.permutation(points.shape[0])[:_SAMPLE_ROWS]
    rows = to_dense(points[kept])
    if len(rows) < _SAMPLE_ROWS // 4:  # a few means show the location, not the spread
        scale = rows.std(axis=0) + (1.0 if len(rows) < 2 else 0.0)
        more = rows[rng.integers(len(rows), size=_SAMPLE_ROWS)] + scale * rng.normal(
            size=(_SAMPLE_ROWS, width)
        )
        rows = np.concatenate([rows, more])
    return rows


def _bayes_rows(machine: NaiveBayes, width: int, rng: np.random.Generator) -> Array:
    """Draw columns of the kinds that naive Bayes knows, some entries missing."""
    layout, model = machine._layout, machine.solution_.value
    count = 4 * _SAMPLE_ROWS
    rows = rng.poisson(2.0, size=(count, width)).astype(np.float64)
    rows[:, layout.binary] = rng.random((count, len(layout.binary))) < 0.5
    of = rng.integers(len(model.prior), size=count)
    bells = rng.normal(size=(count, len(layout.gaussian)))
    if len(layout.gaussian):
        rows[:, layout.gaussian] = model.mean[of] + bells * np.sqrt(model.variance[of])
    gaps = rng.random(rows.shape) < 0.02
    gaps[:, layout.count] = False
    rows[gaps] = np.nan
    return rows


def _points(machine: Any) -> Any:
    view = getattr(machine, "_x", None)
    expansion = getattr(machine, "_expansion", getattr(view, "expansion", None))
    found = points_of(expansion)
    if found is not None:
        return found
    space = machine.__dict__.get("_subspace")
    if isinstance(space, PointSubspace):
        return space.source.X
    for name in ("support_vectors_", "cluster_centers_", "means_"):
        value = getattr(machine, name, None)
        if value is not None and value.ndim == 2 and value.shape[0]:
            return value
    mean = getattr(machine, "mean_", None) if not hasattr(machine, "kernel_") else None
    return None if mean is None else np.asarray(mean)[None]


def _is_nonnegative(machine: Any) -> bool:
    """Return whether the kernel takes histograms and counts only."""
    kernel = getattr(getattr(machine, "machine_", machine), "kernel_", None)
    if kernel is None or isinstance(kernel, Precomputed):
        return False
    nodes = walk(kernel.expression())
    return any(isinstance(node, Statistic) and node.needs_nonnegative for node in nodes)


# --- parity --------------------------------------------------------------------------------------
#
# Compare a graph with its estimator in onnxruntime, before it is returned.

Feeds = dict[str, Array]

PARITY = 1e-12  # of the largest value
_ROUNDING = 4 * float(np.finfo(np.float64).eps)  # of the sums that values are
_CLEAR = 1e-9  # of the largest value: nearer to a boundary, rounding may decide


@dataclass(frozen=True)
class Parity:
    """The difference between a graph and its estimator.

    Attributes
    ----------
    errors : dict of str to float
        The largest difference of each output over the largest value; of labels, the fraction of
        rows off the boundary on which they differ.
    allowed : dict of str to float
        The bound on each.
    rows : int
        Number of compared rows.
    """

    errors: dict[str, float]
    allowed: dict[str, float]
    rows: int

    @property
    def ok(self) -> bool:
        """Whether every output is within its bound."""
        return all(error <= self.allowed[name] for name, error in self.errors.items())

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {error:.1e} (at most {self.allowed[name]:.1e})"
            for name, error in self.errors.items()
        )


def run(model: bytes, feeds: dict[str, Array]) -> dict[str, Array]:
    """Return the outputs of a graph, by name, for inputs by name."""
    runtime = require_runtime()
    options = runtime.SessionOptions()
    options.log_severity_level = 3  # errors alone
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def compare(machine: Any, model: bytes, outputs: list[Output], X: Any, feeds: Feeds) -> Parity:
    """Compare all outputs at rows X.

    Parameters
    ----------
    machine : fitted estimator or pipeline
        The estimator.
    model : bytes
        The serialized graph.
    outputs : list of Output
        The outputs of the graph.
    X : (n, d) array or Table
        Rows to compare at.
    feeds : dict of str to array
        The same as inputs of the graph.
    """
    found = run(model, feeds)
    rounding = _ROUNDING * _sums(machine, X)
    clear = _clear(machine, X, rounding)
    errors, allowed = {}, {}
    logarithms = 0.0  # of the probabilities: what those are off by, these are off by in turn
    for output in outputs:
        expected, answer = output.expected(machine, X), found[output.name]
        if expected.shape != answer.shape:
            errors[output.name], allowed[output.name] = np.inf, 0.0
        elif output.name != LABELS:
            scale = float(np.abs(expected).max(initial=0.0)) or 1.0
            gap = np.abs(np.asarray(answer, dtype=np.float64) - expected)[clear]
            errors[output.name] = float(gap.max(initial=0.0)) / scale
            allowed[output.name] = max(PARITY, rounding / scale)
            if output.name in ("decision", "log_density"):
                logarithms = scale
        else:
            errors[output.name] = float((answer != expected)[clear].mean()) if clear.any() else 0.0
            allowed[output.name] = 0.0
    if "probabilities" in allowed:
        allowed["probabilities"] = max(allowed["probabilities"], _ROUNDING * logarithms)
    return Parity(errors, allowed, len(X))


def _clear(machine: Any, X: Any, rounding: float) -> Array:
    """Return which rows are off every boundary at which an output jumps."""
    last, steps = last_of(machine)
    values = border_values(last, through(steps, X))
    if isinstance(machine, TableModel) and machine.threshold is not None:
        values = np.asarray(machine.decision_function(X) - machine.threshold)[:, None]
    if values is None:
        return np.ones(len(X), dtype=bool)
    scale = float(np.abs(values).max(initial=0.0)) or 1.0
    return np.asarray(np.abs(values).min(axis=1) > max(_CLEAR * scale, rounding))


def border_values(machine: Any, X: Array) -> Array | None:
    """Return values, (n, m), that are zero where a label or a vote changes; None if there are none.

    Parameters
    ----------
    machine : fitted estimator
        Not a pipeline.
    X : (n, d) array
        Rows.
    """
    inner = getattr(machine, "machine_", machine)
    if hasattr(inner, "_scheme"):
        values = np.asarray(inner._values(X))
        if inner.probability:  # handed out in the order of the decisions
            gaps = np.diff(np.sort(inner._scheme.decide(values), axis=1))
            return np.column_stack([values, gaps])
        return values if inner.multiclass == "ovo" or len(inner.classes_) == 2 else _lead(values)
    if hasattr(machine, "decision_function"):
        decision = np.asarray(machine.decision_function(X))
        return decision[:, None] if decision.ndim == 1 else _lead(decision)
    if hasattr(machine, "cluster_sizes_"):
        return _lead(np.asarray(machine._values(X)))
    if hasattr(machine, "predict_proba"):
        return _lead(np.asarray(machine.predict_proba(X)))
    return None


def _lead(scores: Array) -> Array:
    """Return how far the best is ahead of the second."""
    if scores.shape[1] < 2:
        return np.ones((len(scores), 1))
    top = np.sort(scores, axis=1)
    return np.asarray(top[:, -1:] - top[:, -2:-1])


def _sums(machine: Any, X: Any) -> float:
    last, steps = last_of(machine)
    inner = getattr(last, "machine_", last)
    expansion, points = getattr(inner, "_expansion", None), through(steps, X)
    space = inner.__dict__.get("_subspace")
    if isinstance(space, PointSubspace):
        coef = space.coef * inner._stretch()
        expansion = KernelExpansion(space.source.expression, space.source.X, coef, coef[0])
    if expansion is None:
        return 0.0
    sums = size_of_sums(expansion, points)
    if isinstance(inner, EnclosingBall):  # k(x, x) - 2 f(x) + |c|^2
        own = _largest_diagonal(inner.kernel_, inner._column_names(), points)
        return 2.0 * sums + abs(inner._centre) + own
    if isinstance(inner, KMeans) and inner._own is not None:  # k(x, x) - 2 f(x)
        return 2.0 * sums + float(np.abs(inner._own(points)).max(initial=0.0))
    return sums


def _largest_diagonal(kernel: Kernel, names: list[str] | None, points: Any) -> float:
    """Return the largest k(x, x)."""
    values = Source(bind_columns(kernel.expression(), names), points).diag()
    return float(np.abs(values).max(initial=0.0))
