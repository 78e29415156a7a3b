"""Pictures of the kernel: projection, matrix, spectrum."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.deadline import TimeLimitError, within
from mercer.kernels import Kernel
from mercer.report.page import Figure, Figures, Section
from mercer.report.sections.classification import support_figure
from mercer.report.subject import Sample, Subject
from mercer.report.svg import (
    Line,
    Points,
    chart,
    linear,
    logarithmic,
    matrix,
)
from mercer.report.text import clean, count, figure, share

_GROUPS = 7  # classes with a colour of their own
_SECONDS = 2.0  # for a kernel matrix
_VALUES = 40  # eigenvalues that are drawn


def pictures(subject: Subject) -> Section | None:
    """Write the section."""
    support = support_figure(subject)
    drawn = (*kernel_figures(subject), *([support] if support is not None else []))
    if not drawn:
        return None
    sample = subject.sample
    lead = "What the machine sees."
    if sample is not None and len(sample.index) < sample.total:
        lead += (
            f" Kernel pictures are of {count(len(sample.index))} of {count(sample.total, 'row')}"
        )
        lead += ", drawn by chance."
    return Section("pictures", "Pictures", lead, (Figures(drawn),))


def kernel_figures(subject: Subject) -> list[Figure]:
    """Draw projection, kernel matrix and spectrum, all from one matrix of sampled rows."""
    sample, kernel = subject.sample, getattr(subject.machine, "kernel_", None)
    if sample is None or not isinstance(kernel, Kernel) or len(sample.index) < 3:
        return []
    try:
        with within(_SECONDS, "report"):
            K = np.asarray(kernel(sample.points), dtype=np.float64)
    except (ValueError, TypeError, TimeLimitError):
        return []  # a matrix that was given has no rows of its own; long strings take long
    if not np.isfinite(K).all():
        return []
    order, groups = ordered(sample, subject)
    values, vectors = np.linalg.eigh(_centred(K))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    total = float(values.sum()) or 1.0
    placed = hasattr(subject.result, "coordinates")  # and drawn with the result
    return [
        *([] if placed else [projection_figure(subject, sample, values, vectors, total)]),
        matrix_figure(K[np.ix_(order, order)], groups, subject),
        *([spectrum_figure(values, total)] if values[0] > 0 else []),  # equal rows have none
    ]


def _centred(K: Array) -> Array:
    mean = K.mean(axis=0)
    centred = K - mean - mean[:, None] + mean.mean()
    return np.asarray((centred + centred.T) / 2)


def ordered(sample: Sample, subject: Subject) -> tuple[Array, list[tuple[str, int]]]:
    """Return rows by class, or by target, and the sizes of the classes."""
    if sample.truth is None:
        return np.arange(len(sample.index)), []
    if not subject.classes:
        return np.argsort(np.asarray(sample.truth, dtype=np.float64), kind="stable"), []
    place = {label: k for k, label in enumerate(subject.classes)}
    number = np.array([place.get(label, len(place)) for label in sample.truth.tolist()])
    groups = [
        (clean(label, 20), int((number == k).sum()))
        for k, label in enumerate(subject.classes)
        if (number == k).any()
    ]
    return np.argsort(number, kind="stable"), groups


def matrix_figure(K: Array, groups: list[tuple[str, int]], subject: Subject) -> Figure:
    """Draw the kernel matrix in order."""
    by = "target" if subject.truth is not None else "place in the table"
    if groups:
        by = "cluster" if subject.task == "clustering" else "class"
    off = K[~np.eye(len(K), dtype=bool)]
    low, high = (float(q) for q in np.quantile(off, [0.01, 0.99]))
    ends = (low, high) if low >= 0 else None
    most = max(abs(low), abs(high))
    shown = K if ends else np.clip(K, -most, most)
    said = f"Similarity of rows, ordered by {by}."
    drawing = matrix("Kernel matrix", said, shown, groups, ends=ends)
    said = "Similarity of each row with each other one, ordered by "
    said += f"{by}; the darker, the more alike"
    said += f", from {figure(low, 2)} to {figure(high, 2)}." if ends else "; orange is negative."
    if groups:
        said += " Blocks along the diagonal are classes that are alike inside."
    return Figure("Kernel matrix", drawing, said)


def projection_figure(
    subject: Subject, sample: Sample, values: Array, vectors: Array, total: float
) -> Figure:
    """Draw rows in the plane of the two largest kernel principal components."""
    x, y = (vectors[:, k] * np.sqrt(values[k]) for k in (0, 1))
    axes = [f"component {k + 1} ({share(float(values[k]) / total)})" for k in (0, 1)]
    marks, legend = colour_groups(subject, sample, x, y)
    drawing = chart(
        "Projection",
        "Rows in the plane of the two directions of feature space with most variance.",
        linear(x, axes[0]), linear(y, axes[1]), marks, legend=legend,
    )  # fmt: skip
    said = "Rows in the plane of the two directions of feature space with most variance (kernel "
    said += "principal components); in brackets their share of it."
    return Figure("Projection", drawing, said)


def colour_groups(
    subject: Subject, sample: Sample, x: Array, y: Array
) -> tuple[list[Points], list[tuple[str, int]]]:
    """Return points by class, or by thirds of the target, and their legend."""
    if sample.truth is None:
        return [Points(x, y)], []
    if not subject.classes:
        target = np.asarray(sample.truth, dtype=np.float64)
        low, high = np.quantile(target, [1 / 3, 2 / 3])
        parts = [target <= low, (target > low) & (target <= high), target > high]
        names = ["lowest third", "middle", "highest third"]
    else:
        common = sorted(subject.classes, key=lambda c: -int((sample.truth == c).sum()))[:_GROUPS]
        kept = [c for c in subject.classes if c in common]
        parts = [sample.truth == c for c in kept]
        names = [clean(c, 24) for c in kept]
        if len(kept) < len(subject.classes):
            parts.append(~np.isin(sample.truth, np.array(kept, dtype=sample.truth.dtype)))
            names.append("others")
    return (
        [Points(x[part], y[part], k) for k, part in enumerate(parts)],
        [(name, k) for k, name in enumerate(names)],
    )


def spectrum_figure(values: Array, total: float) -> Figure:
    """Draw the eigenvalues of the centred kernel matrix."""
    shares = values / total
    shown = shares[:_VALUES][shares[:_VALUES] > 1e-10]
    at = np.arange(1, len(shown) + 1)
    enough = int(np.searchsorted(np.cumsum(shares), 0.9) + 1)
    drawing = chart(
        "Spectrum",
        f"Share of the variance in feature space of each direction; {enough} of them have nine "
        "tenths.",
        linear([1, len(shown)], "direction"),
        logarithmic(shown, "share of the variance"),
        [Line(at, shown, 0), Points(at, shown, 0, size=4.5)],
    )
    return Figure(
        "Spectrum",
        drawing,
        f"Shares of the variance in feature space, direction by direction. {count(enough)} of "
        f"{count(len(values))} directions have 90 % of it: the fewer, the simpler the data look to "
        "this kernel.",
    )
