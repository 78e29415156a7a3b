"""How good a regression is: predictions beside the truth, and what is left over."""

from __future__ import annotations

import numpy as np

from mercer.fitting import Evaluation
from mercer.report.page import Block, Facts, Figure, Figures
from mercer.report.subject import Subject, sampled
from mercer.report.svg import Line, Points, Rule, chart, histogram, linear
from mercer.report.text import clean, count, figure

_POINTS = 800  # rows in a picture


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
    return Figure("Prediction and truth", drawing, _drawn(len(some), len(truth), "On the dashed "
                  "line the prediction is right."))  # fmt: skip


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
    return Figure("Residuals by prediction", drawing, _drawn(len(some), len(left), said))


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


def _drawn(some: int, total: int, said: str) -> str:
    if some == total:
        return said
    return f"{said} {count(some)} of {count(total, 'row')} are drawn."
