"""Does a graph say what its machine says? Compared in onnxruntime, before it is handed out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.expression import bind_columns
from mercer.files.onnx.expansions import size_of_sums
from mercer.files.onnx.graph import require_runtime
from mercer.files.onnx.machines.linear_steps import last_of, through
from mercer.files.onnx.outputs import LABELS, Output
from mercer.fitting import TableModel
from mercer.gram import Source
from mercer.gram.source import KernelExpansion
from mercer.kernels import Kernel
from mercer.machines import EnclosingBall, KMeans
from mercer.machines.projection.subspace import PointSubspace

Feeds = dict[str, Array]

PARITY = 1e-12  # of the largest value
_ROUNDING = 4 * float(np.finfo(np.float64).eps)  # of the sums that values are
_CLEAR = 1e-9  # of the largest value: nearer to a border, rounding may decide for either side


@dataclass(frozen=True)
class Parity:
    """How far a graph is from its machine.

    Attributes
    ----------
    errors : dict of str to float
        The largest difference of each answer over the largest value; of labels, the share of rows
        off the border on which they differ.
    allowed : dict of str to float
        What each may be.
    rows : int
        How many rows were compared.
    """

    errors: dict[str, float]
    allowed: dict[str, float]
    rows: int

    @property
    def ok(self) -> bool:
        """Whether no answer differs by more than it may."""
        return all(error <= self.allowed[name] for name, error in self.errors.items())

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {error:.1e} (at most {self.allowed[name]:.1e})"
            for name, error in self.errors.items()
        )


def run(model: bytes, feeds: dict[str, Array]) -> dict[str, Array]:
    """Return the answers of a graph, by name, to inputs by name."""
    runtime = require_runtime()
    options = runtime.SessionOptions()
    options.log_severity_level = 3  # errors alone
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def compare(machine: Any, model: bytes, outputs: list[Output], X: Any, feeds: Feeds) -> Parity:
    """Compare all answers at rows X.

    Parameters
    ----------
    machine : fitted machine or pipeline
        The machine.
    model : bytes
        The serialised graph.
    outputs : list of Output
        Its answers.
    X : (n, d) array or Table
        Where to compare.
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
    """Return which rows are off every border at which an answer jumps."""
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
    machine : fitted machine
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
