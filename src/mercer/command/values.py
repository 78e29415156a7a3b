"""Values of options: sizes, seconds, and names with a value (`--kind zip=category`)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import click

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


class Size(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has no type of values
    """Bytes, as a number or as text such as 2GB."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return the number of bytes."""
        from mercer.resources import parse_bytes  # noqa: PLC0415  help needs none of it

        try:
            found = parse_bytes(value)
        except ValueError:
            self.fail(f"{value!r} is no size; write bytes, or text such as 2GB", param, ctx)
        if found <= 0:
            self.fail(f"{value!r} must be positive", param, ctx)
        return found


class Seconds(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has no type of values
    """Seconds, as a number or as text such as 10m."""

    name = "seconds"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return the seconds."""
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([smh]?)\s*", str(value).lower())
        seconds = float(match[1]) * _SECONDS[match[2]] if match else math.nan
        if not 0 < seconds < math.inf:
            self.fail(f"{value!r} is no time; write seconds, or text such as 10m", param, ctx)
        return seconds


SIZE, SECONDS = Size(), Seconds()


def pairs(entries: Iterable[str], option: str) -> dict[str, str]:
    """Read `name=value` texts; the last `=` separates, so that names may have some.

    Examples
    --------
    >>> pairs(["zip=category", "a=b=text"], "--kind")
    {'zip': 'category', 'a=b': 'text'}
    """
    found = {}
    for entry in entries:
        name, sign, value = entry.rpartition("=")
        if not sign or not name or not value:
            raise click.UsageError(f"{option} {entry!r} must be NAME=VALUE")
        found[name] = value
    return found
