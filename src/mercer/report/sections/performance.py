"""Report section on performance: metrics with intervals, and residual plots."""

from __future__ import annotations

import math

import numpy as np

from mercer.fitting import Evaluation, Metric
from mercer.report.page import Block, Facts, Figure, Figures, PageTable, Paragraph, Section
from mercer.report.sections.classification import classification_blocks
from mercer.report.subject import Subject, sampled
from mercer.report.svg import Drawing, Line, Points, Rule, chart, histogram, interval, linear
from mercer.report.text import clean, count, figure, share

_POINTS = 800  # rows in a plot
_SHARES = ("accuracy", "balanced accuracy")

_KINDS = {
    "held-out": "that were held out; preprocessing, kernel selection and fitting did not use them",
    "test table": "of the test table, which was not used for the fit",
    "cross-validated": (
        "by cross-validation with the selected hyperparameters; slightly optimistic if the same "
        "rows were used to select them"
    ),
    "training": "of the training set, which is optimistic for every model",
}


def quality(subject: Subject) -> Section | None:
    """Build the section, or return None without an evaluation."""
    found = subject.evaluation
    if found is None:
        return None
    where = _KINDS.get(found.kind, found.kind)
    lead = f"Evaluated on {count(len(found.truth), 'row')} {where}."
    blocks: list[Block] = [metrics_table(found)]
    mean, error = found.cross_validated
    if math.isfinite(mean):
        known = f" ± {figure(error, 2)} (standard error)" if math.isfinite(error) else ""
        score = {"r2": "R²"}.get(found.scoring, clean(found.scoring, 60))
        blocks.append(
            Paragraph(
                f"During model selection, the mean {score} over the folds was "
                f"{figure(mean)}{known}. The maximum over many candidates is optimistic."
            )
        )
    make = classification_blocks if subject.task == "classification" else regression_blocks
    return Section("quality", "Performance", lead, (*blocks, *make(subject, found)))


def metrics_table(found: Evaluation) -> PageTable:
    """List all metrics with their intervals."""
    rows = tuple(
        (
            metric_name(one) + (", lower is better" if one.better == "lower" else ""),
            say(one, one.value),
            f"{say(one, one.low)} to {say(one, one.high)}" if has_interval(one) else "–",
            drawn(one),
            say(one, one.baseline) if math.isfinite(one.baseline) else "–",
        )
        for one in found.metrics
    )
    methods = sorted({one.method for one in found.metrics if has_interval(one) and one.method})
    note = f"{100 * found.level:g} % intervals: {', '.join(methods)}." if methods else ""
    constant = any(math.isfinite(one.baseline) for one in found.metrics)
    if constant:
        note += " Tick: the best constant prediction."
    head = ("Metric", "Value", "Interval", "", "Constant prediction")
    return PageTable(head, rows, numbers=(1, 2, 4), note=note.strip())


def metric_name(metric: Metric) -> str:
    """Return the name of a metric as a heading."""
    name = clean(metric.name, 60).replace("R^2", "R²")
    return name[:1].upper() + name[1:]


def say(metric: Metric, value: float) -> str:
    """Write the value of a metric; fractions as percentages."""
    if not math.isfinite(value):
        return "–"
    if metric.name in _SHARES:
        return share(value)
    return f"{value:.3f}".replace("-", "−") if abs(value) < 10 else figure(value)


def has_interval(metric: Metric) -> bool:
    """Return whether a metric has an interval."""
    return math.isfinite(metric.low) and math.isfinite(metric.high)


def drawn(metric: Metric, width: float = 130.0) -> Drawing | str:
    """Draw a metric with its interval, on a scale that starts at the constant prediction."""
    if not has_interval(metric) or not math.isfinite(metric.value):
        return ""
    base = metric.baseline if math.isfinite(metric.baseline) else metric.low
    best = perfect(metric)
    ends = sorted((base, best)) if best is not None else sorted((base, metric.low, metric.high))
    low = min(ends[0], metric.low)
    high = max(ends[-1], metric.high)
    return interval(
        metric.value, metric.low, metric.high, (low, high),
        f"{metric.name} {say(metric, metric.value)}, from {say(metric, metric.low)} to "
        f"{say(metric, metric.high)}", width=width,
        tick=metric.baseline,
    )  # fmt: skip


def perfect(metric: Metric) -> float | None:
    """Return the best possible value of a metric."""
    if metric.better == "lower":
        return 0.0
    return 1.0


def main_metric(found: Evaluation | None) -> Metric | None:
    """Return the first metric."""
    return found.metrics[0] if found is not None and found.metrics else None


def regression_blocks(subject: Subject, found: Evaluation) -> list[Block]:
    """Build the plots and facts of a regression."""
    truth = np.asarray(found.truth, dtype=np.float64)
    predicted = np.asarray(found.predictions, dtype=np.float64)
    if truth.ndim != 1 or not len(truth):
        return []
    left = truth - predicted
    return [
        Figures((_scatter(subject, truth, predicted), _residuals(left), _spread(predicted, left))),
        _facts(left),
    ]


def _scatter(subject: Subject, truth: np.ndarray, predicted: np.ndarray) -> Figure:
    some = sampled(len(truth), _POINTS)
    both = np.concatenate([truth[some], predicted[some]])
    name = clean(subject.target, 30) or "truth"
    axis = linear(both, f"true {name}")
    ends = [axis.low, axis.high]
    drawing = chart(
        "Predicted and true values",
        "Predicted value against true value of each row. Dots of exact predictions are on the "
        "dashed line.",
        axis,
        linear(both, "predicted"),
        [Points(truth[some], predicted[some], 0, size=3.4), Line(ends, ends, 6, dashed=True)],
    )
    said = "Dashed line: exact predictions."
    return Figure("Predicted and true values", drawing, _with_count(len(some), len(truth), said))


def _residuals(left: np.ndarray) -> Figure:
    drawing = histogram(
        "Residuals", "Histogram of the residuals.", {"residual": left},
        "true minus predicted", marks=[Rule(0.0)],
    )  # fmt: skip
    return Figure("Residuals", drawing, "True minus predicted values of the evaluated rows.")


def _spread(predicted: np.ndarray, left: np.ndarray) -> Figure:
    some = sampled(len(left), _POINTS)
    drawing = chart(
        "Residuals by prediction",
        "True minus predicted value against predicted value.",
        linear(predicted[some], "predicted"),
        linear(left[some], "true minus predicted"),
        [Points(predicted[some], left[some], 0, size=3.4), Rule(0.0, upright=False)],
    )
    said = "A trend or changing spread indicates structure that the model missed."
    return Figure("Residuals by prediction", drawing, _with_count(len(some), len(left), said))


def _facts(left: np.ndarray) -> Facts:
    low, middle, high = np.quantile(np.abs(left), [0.5, 0.9, 0.99])
    return Facts(
        (
            ("Median absolute error", figure(float(low), 3)),
            ("90 % of absolute errors are below", figure(float(middle), 3)),
            ("99 % of absolute errors are below", figure(float(high), 3)),
            ("Mean residual", figure(float(left.mean()), 3)),
        )
    )


def _with_count(some: int, total: int, said: str) -> str:
    if some == total:
        return said
    return f"{said} Shown: {count(some)} of {count(total, 'row')}."
