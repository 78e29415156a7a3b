"""Report section on model selection: compared kernels and the grid of the selected one."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.kernels import Kernel
from mercer.report.page import (
    Block,
    BulletList,
    Facts,
    Figure,
    Figures,
    Folded,
    Name,
    PageTable,
    Paragraph,
    Section,
)
from mercer.report.subject import Subject
from mercer.report.svg import (
    Drawing,
    Line,
    Rule,
    Whiskers,
    chart,
    heat_map,
    interval,
    linear,
    logarithmic,
)
from mercer.report.svg import Points as Dots
from mercer.report.text import clean, count, figure
from mercer.selection import Choice, Tuning

_BEST = 10  # grid points in the table
_AXIS = 14  # largest number of values per parameter in a heat map
_KERNEL = 90  # characters of a kernel
_DECIMALS = re.compile(r"\d+\.\d{3,}(?:e[+-]?\d+)?")


def choice(subject: Subject) -> Section | None:
    """Build the section."""
    blocks: list[Block] = []
    found = subject.choice
    lead = ""
    if found is not None:
        folds = found.contenders[found.chosen].tuning.scores.shape[1]
        lead = (
            f"{count(len(found.contenders), 'kernel')} with tuned hyperparameters compared on "
            f"the same {count(folds, 'fold')}. {found.reason}"
        )
        blocks += [contenders_table(found), *tuning_blocks(found)]
    blocks.append(Facts(tuple(parameters(subject.machine).items())))
    said = dict.fromkeys([*(found.notes if found is not None else ()), *subject.notes])
    if found is not None:
        said.pop(found.reason, None)  # already in the lead
    if said:
        blocks.append(Paragraph("Other decisions:"))
        blocks.append(BulletList(tuple(clean(note, 400) for note in list(said)[:40])))
    if found is None and subject.evaluation is not None:
        lead = "No kernels were compared because the estimator was specified."
    title = "Model selection" if found is not None else "Estimator"
    return Section("choice", title, lead, tuple(blocks))


def contenders_table(found: Choice) -> PageTable:
    """List the kernels that were compared."""
    means = [float(one.tuning.mean[one.tuning.best]) for one in found.contenders]
    errors = [float(one.tuning.standard_error[one.tuning.best]) for one in found.contenders]
    low = min(m - e for m, e in zip(means, errors, strict=True) if math.isfinite(m))
    high = max(m + e for m, e in zip(means, errors, strict=True) if math.isfinite(m))
    rows = []
    for one, mean, error in zip(found.contenders, means, errors, strict=True):
        drawing = interval(
            mean, mean - error, mean + error, (low, high), f"{one.name}: {mean:.4f} ± {error:.4f}"
        )
        behind = f"{one.behind:.4f} ± {one.behind_error:.4f}" if one.behind else "–"
        rows.append(
            (Name(one.name), f"{mean:.4f} ± {error:.4f}", drawing, behind,
             count(len(one.tuning.points)), f"{one.tuning.seconds:.1f} s")
        )  # fmt: skip
    metric = found.contenders[found.chosen].tuning.metric
    return PageTable(
        ("Kernel", "Score", "", "Difference to best", "Candidates", "Time"),
        tuple(rows), (1, 3, 4, 5),
        marked=found.chosen, title="Compared kernels",
        note=f"Score: mean of the best candidate over the folds ({_metric(metric)}; larger is "
        "better) ± standard error. The difference to the best is computed on the same folds. "
        "The selected kernel is marked.",
    )  # fmt: skip


def tuning_blocks(found: Choice) -> list[Block]:
    """Draw the grids of all kernels, and list the best candidates of the selected one."""
    taken = found.contenders[found.chosen]
    figures = [grid_figure(taken.name, taken.tuning)]
    others = [
        grid_figure(one.name, one.tuning)
        for k, one in enumerate(found.contenders)
        if k != found.chosen
    ]
    blocks: list[Block] = [Figures(tuple(f for f in figures if f is not None))]
    blocks.append(Folded("Best candidates", (points_table(taken.tuning),)))
    drawn = tuple(f for f in others if f is not None)
    if drawn:
        blocks.append(Folded("Grids of other kernels", (Figures(drawn),)))
    return blocks


def points_table(tuning: Tuning) -> PageTable:
    """List the best candidates."""
    mean, error = tuning.mean, tuning.standard_error
    order = np.argsort(-np.where(np.isnan(mean), -np.inf, mean), kind="stable")[:_BEST]
    rows = tuple(
        (clean(_setting(tuning.points[k]), 160), f"{mean[k]:.4f} ± {error[k]:.4f}")
        for k in map(int, order)
    )
    left = len(tuning.points) - len(rows)
    note = " ".join(tuning.notes) + (f" And {left} more candidates." if left > 0 else "")
    return PageTable(("Candidate", "Score"), rows, (1,), note=clean(note.strip(), 600))


def grid_figure(name: str, tuning: Tuning) -> Figure | None:
    """Draw the scores over one or two parameters, maximized over the others."""
    flat = [_numbers(point) for point in tuning.points]
    levels: dict[str, list[float]] = {}
    for key in dict.fromkeys(key for point in flat for key in point):
        values = sorted({point[key] for point in flat if key in point})
        if len(values) > 1:
            levels[key] = values
    # the factor of a kernel follows from its other parameters
    keys = sorted(levels, key=lambda key: (key == "factor", -len(levels[key])))[:2]
    if not keys:
        return None
    title = f"Grid scores: {clean(name, 40)}"
    if len(keys) == 1 or max(len(levels[key]) for key in keys) > _AXIS:
        return Figure(title, _curve(title, keys[0], flat, tuning), "Mean and standard error over "
                      "the folds. The dashed line marks the selected value.")  # fmt: skip
    down, across = keys[1], keys[0]
    table, best = _grid(flat, tuning.mean, levels[down], levels[across], down, across, tuning.best)
    drawing = heat_map(
        title,
        f"Mean score for each {_short(down)} (down) and {_short(across)} (across).",
        table,
        [figure(v, 3) for v in levels[down]],
        [figure(v, 3) for v in levels[across]],
        row_label=_short(down), column_label=_short(across), marked=best,
        said=[[_score(v) for v in row] for row in table],
    )  # fmt: skip
    more = len(levels) - 2
    rest = f" Maximized over {count(more, 'other parameter')}." if more > 0 else ""
    return Figure(
        title, drawing, f"Darker is better. The frame marks the selected candidate.{rest}"
    )


def _grid(
    flat: list[dict[str, float]],
    mean: Array,
    rows: list[float],
    columns: list[float],
    down: str,
    across: str,
    best: int,
) -> tuple[Array, tuple[int, int] | None]:
    table = np.full((len(rows), len(columns)), np.nan)
    marked = None
    for k, point in enumerate(flat):
        if down not in point or across not in point:
            continue
        i, j = rows.index(point[down]), columns.index(point[across])
        table[i, j] = np.nanmax([table[i, j], mean[k]]) if np.isfinite(mean[k]) else table[i, j]
        marked = (i, j) if k == best else marked
    return table, marked


def _curve(title: str, key: str, flat: list[dict[str, float]], tuning: Tuning) -> Drawing:
    known = [k for k, point in enumerate(flat) if key in point]
    values = np.array([flat[k][key] for k in known])
    mean, error = tuning.mean[known], np.nan_to_num(tuning.standard_error[known])
    at = np.unique(values)
    top = [int(np.nanargmax(np.where(values == v, mean, -np.inf))) for v in at]
    mean, error = mean[top], error[top]
    wide = at[0] > 0 and at[-1] / at[0] > 20
    x = logarithmic(at, _short(key)) if wide else linear(at, _short(key))
    y = linear(np.concatenate([mean - error, mean + error]), "score")
    marks: list[Any] = [Whiskers(at, mean - error, mean + error), Line(at, mean), Dots(at, mean)]
    taken = flat[tuning.best].get(key)
    if taken is not None:
        marks.append(Rule(taken, "selected"))
    return chart(title, f"Score against {_short(key)}.", x, y, marks)


def _numbers(point: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a candidate, including the parameters of kernels."""
    found: dict[str, float] = {}
    for key, value in point.items():
        inner = value.get_params() if isinstance(value, Kernel) else {key: value}
        for name, one in inner.items():
            number = isinstance(one, int | float | np.number) and not isinstance(one, bool)
            if number and math.isfinite(float(one)):
                found[name] = float(one)
    return found


def _score(value: float) -> str:
    """Write a score without its leading zero to save space."""
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.3g}"


def _setting(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{_short(name)} = {_value(value)}" for name, value in point.items())


def _value(value: Any) -> str:
    return figure(value) if isinstance(value, float) else clean(shortened(value), _KERNEL)


def _short(name: str) -> str:
    return name.rpartition("__")[2]


def _metric(name: str) -> str:
    return "the estimator's default score" if name == "score" else clean(name, 60)


def shortened(value: Any) -> str:
    """Write a value with its numbers rounded to four digits.

    Examples
    --------
    >>> shortened("0.0065483585 * Polynomial(degree=2, offset=12.357589803604146)")
    '0.006548 * Polynomial(degree=2, offset=12.36)'
    """
    return _DECIMALS.sub(lambda found: f"{float(found.group()):.4g}", str(value)[:20_000])


def parameters(machine: Any) -> dict[str, str]:
    """Return the estimator, its kernel and its parameters after the fit."""
    found = {"Estimator": type(machine).__name__}
    kernel = getattr(machine, "kernel_", None)
    if kernel is not None:
        found["Kernel"] = clean(shortened(kernel), 200)
    for name, value in sorted(machine.get_params(deep=False).items()):
        if name in ("kernel", "callback") or value is None:
            continue
        found[name] = _value(value)
    return found
