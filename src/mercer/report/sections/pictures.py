"""Report section with kernel plots: projection, kernel matrix and spectrum."""

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

_GROUPS = 7  # classes with their own color
_SECONDS = 2.0  # for a kernel matrix
_VALUES = 40  # eigenvalues in the plot


def pictures(subject: Subject) -> Section | None:
    """Build the section, or return None without plots."""
    support = support_figure(subject)
    drawn = (*kernel_figures(subject), *([support] if support is not None else []))
    if not drawn:
        return None
    sample = subject.sample
    lead = "The training rows as represented by the model."
    if sample is not None and len(sample.index) < sample.total:
        lead += f" Kernel plots show a random sample of {count(len(sample.index))} of "
        lead += f"{count(sample.total, 'row')}."
    return Section("pictures", "Plots", lead, (Figures(drawn),))


def kernel_figures(subject: Subject) -> list[Figure]:
    """Draw projection, kernel matrix and spectrum of a subsample."""
    sample, kernel = subject.sample, getattr(subject.machine, "kernel_", None)
    if sample is None or not isinstance(kernel, Kernel) or len(sample.index) < 3:
        return []
    try:
        with within(_SECONDS, "report"):
            K = np.asarray(kernel(sample.points), dtype=np.float64)
    except (ValueError, TypeError, TimeLimitError):
        return []  # a precomputed kernel has no rows; long strings can exceed the time limit
    if not np.isfinite(K).all():
        return []
    order, groups = ordered(sample, subject)
    values, vectors = np.linalg.eigh(_centred(K))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    total = float(values.sum()) or 1.0
    placed = hasattr(subject.result, "coordinates")  # drawn by another section
    return [
        *([] if placed else [projection_figure(subject, sample, values, vectors, total)]),
        matrix_figure(K[np.ix_(order, order)], groups, subject),
        *([spectrum_figure(values, total)] if values[0] > 0 else []),  # zero if all rows are equal
    ]


def _centred(K: Array) -> Array:
    mean = K.mean(axis=0)
    centred = K - mean - mean[:, None] + mean.mean()
    return np.asarray((centred + centred.T) / 2)


def ordered(sample: Sample, subject: Subject) -> tuple[Array, list[tuple[str, int]]]:
    """Return the order of rows by class or target, and the sizes of the classes."""
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
    """Draw the sorted kernel matrix."""
    by = "target" if subject.truth is not None else "row number"
    if groups:
        by = "cluster" if subject.task == "clustering" else "class"
    off = K[~np.eye(len(K), dtype=bool)]
    low, high = (float(q) for q in np.quantile(off, [0.01, 0.99]))
    ends = (low, high) if low >= 0 else None
    most = max(abs(low), abs(high))
    shown = K if ends else np.clip(K, -most, most)
    said = f"Kernel values of pairs of rows, ordered by {by}."
    drawing = matrix("Kernel matrix", said, shown, groups, ends=ends)
    said = "Kernel values of all pairs of rows, ordered by "
    said += f"{by}. Darker pairs are more similar"
    said += (
        f", from {figure(low, 2)} to {figure(high, 2)}."
        if ends
        else "; orange values are negative."
    )
    if groups:
        said += " Dark blocks along the diagonal are classes with similar rows."
    return Figure("Kernel matrix", drawing, said)


def projection_figure(
    subject: Subject, sample: Sample, values: Array, vectors: Array, total: float
) -> Figure:
    """Draw rows in the plane of the first two kernel principal components."""
    x, y = (vectors[:, k] * np.sqrt(values[k]) for k in (0, 1))
    axes = [f"component {k + 1} ({share(float(values[k]) / total)})" for k in (0, 1)]
    marks, legend = colour_groups(subject, sample, x, y)
    drawing = chart(
        "Projection",
        "Rows in the plane of the first two kernel principal components.",
        linear(x, axes[0]), linear(y, axes[1]), marks, legend=legend,
    )  # fmt: skip
    said = "Rows in the plane of the first two kernel principal components, with their fractions "
    said += "of the variance."
    return Figure("Projection", drawing, said)


def colour_groups(
    subject: Subject, sample: Sample, x: Array, y: Array
) -> tuple[list[Points], list[tuple[str, int]]]:
    """Return points by class or by terciles of the target, and their legend."""
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
    """Draw the eigenvalues of the centered kernel matrix."""
    shares = values / total
    shown = shares[:_VALUES][shares[:_VALUES] > 1e-10]
    at = np.arange(1, len(shown) + 1)
    enough = int(np.searchsorted(np.cumsum(shares), 0.9) + 1)
    drawing = chart(
        "Spectrum",
        f"Fraction of the variance in feature space by component; {enough} explain 90 %.",
        linear([1, len(shown)], "component"),
        logarithmic(shown, "fraction of the variance"),
        [Line(at, shown, 0), Points(at, shown, 0, size=4.5)],
    )
    return Figure(
        "Spectrum",
        drawing,
        f"Fraction of the variance in feature space by kernel principal component. {count(enough)} "
        f"of {count(len(values))} components explain 90 % of the variance.",
    )
