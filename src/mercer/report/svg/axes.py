"""Axes: where values lie between the ends, and round numbers to read them by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array

_ALIKE, _NOTHING = 1e-12, 1e-290  # ends so close, relatively or at all, are one value
_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)  # steps of ticks, times a power of ten


@dataclass(frozen=True)
class Axis:
    """A range of values with ticks.

    Attributes
    ----------
    low, high : float
        The ends.
    ticks : tuple of float
        Where lines are drawn.
    names : tuple of str
        What is written there.
    label : str
        What the values are.
    log : bool
        Whether equal ratios are equal lengths.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    names: tuple[str, ...]
    label: str = ""
    log: bool = False

    def at(self, values: Any) -> Array:
        """Return where values lie, from 0 to 1 between the ends."""
        found = np.asarray(values, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.log:
                low, high = math.log(self.low), math.log(self.high)
                return np.asarray((np.log(found) - low) / (high - low))
            # halves, so that the ends may be as far apart as numbers go
            half = self.high / 2 - self.low / 2
            return np.asarray((found / 2 - self.low / 2) / half)


def linear(
    values: Any, label: str = "", *, zero: bool = False, count: int = 5, tight: bool = False
) -> Axis:
    """Return an axis that holds all finite values, ended at ticks or, if `tight`, at the values."""
    low, high = ends(values)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    size = max(abs(low), abs(high))
    if high / 2 - low / 2 <= max(_ALIKE * size, _NOTHING):
        half = size / 2 if size > _NOTHING else 0.5
        low, high = low - half, high + half
    ticks, step = round_ticks(low, high, count)
    if not tight:
        low, high = min(low, ticks[0]), max(high, ticks[-1])
        if low < ticks[0] or high > ticks[-1]:
            ticks, _ = round_ticks(low, high, count)
    kept = tuple(t for t in ticks if low - 1e-9 * step <= t <= high + 1e-9 * step)
    return Axis(low, high, kept, tick_names(kept, step), label)


def logarithmic(values: Any, label: str = "") -> Axis:
    """Return a logarithmic axis that holds all positive values; ticks at powers of ten."""
    found = np.asarray(values, dtype=np.float64)
    low, high = ends(found[found > 0])
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    step = max(1, math.ceil((last - first) / 5))
    powers = range(first, last + 1, step)
    ticks = tuple(10.0**p for p in powers)
    return Axis(
        min(low, 10.0**first), 10.0**last, ticks, tuple(power_name(p) for p in powers), label, True
    )


def categories(names: Sequence[str], label: str = "") -> Axis:
    """Return an axis with a tick in the middle of each of some boxes of width one."""
    ticks = tuple(k + 0.5 for k in range(len(names)))
    return Axis(0.0, float(max(len(names), 1)), ticks, tuple(names), label)


def ends(values: Any) -> tuple[float, float]:
    """Return the least and the largest finite value; 0 and 1 where there is none."""
    found = np.asarray(values, dtype=np.float64).ravel()
    found = found[np.isfinite(found)]
    return (float(found.min()), float(found.max())) if len(found) else (0.0, 1.0)


def round_ticks(low: float, high: float, count: int = 5) -> tuple[tuple[float, ...], float]:
    """Return about `count` round numbers from at most `low` to at least `high`, and their step.

    Examples
    --------
    >>> round_ticks(0.0, 9.3, 5)[0]
    (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)
    """
    rough = (high / count - low / count) or 1.0
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 1e-300 else 1e-300
    step = next(power * r for r in _ROUND if power * r >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [step * k for k in range(first, last + 1)] if last - first < 100 else [low, high]
    return tuple(t for t in ticks if math.isfinite(t)) or (low, high), step


def tick_names(ticks: Sequence[float], step: float) -> tuple[str, ...]:
    """Write ticks with as many decimals as their step has."""
    most = max((abs(t) for t in ticks), default=0.0)
    if most >= 1e6 or (most and most < 1e-3):
        return tuple("0" if t == 0 else f"{t:.3g}".replace("-", "−", 1) for t in ticks)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 0
    if round(step, decimals) != round(step, decimals + 1):
        decimals += 1
    return tuple(f"{t:,.{decimals}f}".replace("-", "−") for t in ticks)


def power_name(power: int) -> str:
    """Write a power of ten: the number itself where that is short."""
    if -3 <= power <= 4:
        return f"{10.0**power:g}"
    signs = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return "10" + str(power).translate(signs)
