"""Report section on performance: metrics with intervals, and pictures of a regression's errors."""

from __future__ import annotations

import math

import numpy as np

from mercer.fitting import Evaluation, Metric
from mercer.report.page import Block, Facts, Figure, Figures, PageTable, Paragraph, Section
from mercer.report.sections.classification import classification_blocks
from mercer.report.subject import Subject, sampled
from mercer.report.svg import Drawing, Line, Points, Rule, chart, histogram, interval, linear
from mercer.report.text import clean, count, figure, share

_POINTS = 800  # rows in a picture
_SHARES = ("accuracy", "balanced accuracy")

_KINDS = {
    "held-out": "that were held out: neither preparation nor choice nor fit has seen them",
    "test table": "of another table, which took no part in the fit",
    "cross-validated": (
        "that were each predicted by a fit without them, at the same parameters; a little too kind "
        "where the same rows chose these"
    ),
    "training": "that the machine was fitted to, which flatters every model",
}


def quality(subject: Subject) -> Section | None:
    """Write the section."""
    found = subject.evaluation
    if found is None:
        return None
    where = _KINDS.get(found.kind, found.kind)
    lead = f"Judged by {count(len(found.truth), 'row')} {where}."
    blocks: list[Block] = [metrics_table(found)]
    mean, error = found.cross_validated
    if math.isfinite(mean):
        known = f" ± {figure(error, 2)} (standard error)" if math.isfinite(error) else ""
        score = {"r2": "R²"}.get(found.scoring, clean(found.scoring, 60))
        blocks.append(
            Paragraph(
                f"In the comparison that chose the parameters, the mean {score} over the folds was "
                f"{figure(mean)}{known}. A choice among many looks better there than it is."
            )
        )
    make = classification_blocks if subject.task == "classification" else regression_blocks
    return Section("quality", "How good it is", lead, (*blocks, *make(subject, found)))


def metrics_table(found: Evaluation) -> PageTable:
    """Write all figures with their intervals."""
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
    note = f"Intervals of {100 * found.level:g} % ({', '.join(methods)})." if methods else ""
    constant = any(math.isfinite(one.baseline) for one in found.metrics)
    if constant:
        note += " The tick is the constant answer: the best that does not look at the row."
    head = ("Figure", "Value", "Interval", "", "Constant answer")
    return PageTable(head, rows, numbers=(1, 2, 4), note=note.strip())


def metric_name(metric: Metric) -> str:
    """Return the name of a metric as a heading."""
    name = clean(metric.name, 60).replace("R^2", "R²")
    return name[:1].upper() + name[1:]


def say(metric: Metric, value: float) -> str:
    """Write a figure of a metric: shares in per cent."""
    if not math.isfinite(value):
        return "–"
    if metric.name in _SHARES:
        return share(value)
    return f"{value:.3f}".replace("-", "−") if abs(value) < 10 else figure(value)


def has_interval(metric: Metric) -> bool:
    """Return whether it is known how sure the figure is."""
    return math.isfinite(metric.low) and math.isfinite(metric.high)


def drawn(metric: Metric, width: float = 130.0) -> Drawing | str:
    """Draw a figure with its interval, on a scale that begins at the constant answer."""
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
    """Return what a metric is at best."""
    if metric.better == "lower":
        return 0.0
    return 1.0


def main_metric(found: Evaluation | None) -> Metric | None:
    """Return the figure that is shown first."""
    return found.metrics[0] if found is not None and found.metrics else None


def regression_blocks(subject: Subject, found: Evaluation) -> list[Block]:
    """Write what there is to see about a regression."""
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
        "Prediction and truth",
        "Predicted value of each row against its true value; a perfect model has all dots on the "
        "dashed line.",
        axis,
        linear(both, "predicted"),
        [Points(truth[some], predicted[some], 0, size=3.4), Line(ends, ends, 6, dashed=True)],
    )
    said = "On the dashed line the prediction is right."
    return Figure("Prediction and truth", drawing, _with_count(len(some), len(truth), said))


def _residuals(left: np.ndarray) -> Figure:
    drawing = histogram(
        "Residuals", "How often each size of error occurs.", {"residual": left},
        "truth less prediction", marks=[Rule(0.0)],
    )  # fmt: skip
    return Figure("Residuals", drawing, "Truth less prediction, of all rows that were judged.")


def _spread(predicted: np.ndarray, left: np.ndarray) -> Figure:
    some = sampled(len(left), _POINTS)
    drawing = chart(
        "Residuals by prediction",
        "Truth less prediction against the prediction.",
        linear(predicted[some], "predicted"),
        linear(left[some], "truth less prediction"),
        [Points(predicted[some], left[some], 0, size=3.4), Rule(0.0, upright=False)],
    )
    said = "A bend or a fan here is structure that the model has missed."
    return Figure("Residuals by prediction", drawing, _with_count(len(some), len(left), said))


def _facts(left: np.ndarray) -> Facts:
    low, middle, high = np.quantile(np.abs(left), [0.5, 0.9, 0.99])
    return Facts(
        (
            ("Half of the errors are below", figure(float(low), 3)),
            ("Nine in ten are below", figure(float(middle), 3)),
            ("99 in 100 are below", figure(float(high), 3)),
            ("Mean residual", figure(float(left.mean()), 3)),
        )
    )


def _with_count(some: int, total: int, said: str) -> str:
    if some == total:
        return said
    return f"{said} {count(some)} of {count(total, 'row')} are drawn."
