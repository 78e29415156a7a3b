"""Dates as numbers: days, and where the year, the week and the day stand."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array

DAY = np.timedelta64(1, "D")
# length in days; one full turn must be in the rows before its place in the turn can mean anything
PERIODS = {"year": 365.2425, "week": 7.0, "day": 1.0}


def days_of(values: Array) -> Array:
    """Return days since 1970, with nan where a date is missing."""
    days = (values - np.datetime64(0, "us")) / DAY
    return np.where(np.isnat(values), np.nan, days)


def cycles_in(values: Array) -> list[str]:
    """Return the cycles that dates go through: the year, the week, the day.

    A year is one if the dates span one, a week if they span two; the time of day matters if not
    all entries have the same.

    Examples
    --------
    >>> cycles_in(np.array(["2020-01-01", "2020-01-20"], dtype="datetime64[us]"))
    ['week']
    """
    days = days_of(values)
    days = days[~np.isnan(days)]
    if len(days) < 2:
        return []
    span = float(np.ptp(days))
    found = ["year"] if span >= PERIODS["year"] else []
    if span >= 2 * PERIODS["week"]:
        found.append("week")
    if span >= 2 * PERIODS["day"] and float(np.ptp(days % 1.0)) > 0.0:
        found.append("day")
    return found


def parts_of(values: Array, cycles: list[str]) -> Array:
    """Return days, and sine and cosine of the place in each cycle, as columns."""
    days = days_of(values)
    turns = [2.0 * np.pi * days / PERIODS[cycle] for cycle in cycles]
    waves = [wave for turn in turns for wave in (np.sin(turn), np.cos(turn))]
    return np.column_stack([days, *waves])


def names_of(name: str, cycles: list[str]) -> list[str]:
    """Return the names of those columns."""
    waves = [f"{name}_{cycle}_{wave}" for cycle in cycles for wave in ("sin", "cos")]
    return [f"{name}_days", *waves]
