"""Approximations as text: "nystrom:1000", "random_features:2000:quasi"."""

from __future__ import annotations

import difflib
from dataclasses import fields
from typing import Any

from mercer.approximation.base import Approximation
from mercer.approximation.nystrom import Nystrom
from mercer.approximation.random_features import RandomFeatures

NAMES: dict[str, type[Approximation]] = {"nystrom": Nystrom, "random_features": RandomFeatures}


def parse_approximation(text: str) -> Approximation:
    """Return the approximation that a name, with a number of features or without, stands for.

    Parameters
    ----------
    text : str
        A name, then its parameters in order, separated by colons.

    Returns
    -------
    Approximation

    Examples
    --------
    >>> parse_approximation("nystrom:500")
    Nystrom(n_components=500, sampling='pivoted', random_state=0)
    >>> parse_approximation("random_features:2000:quasi")
    RandomFeatures(n_components=2000, draws='quasi', random_state=0)
    """
    name, *given = (part.strip() for part in text.lower().split(":"))
    kind = NAMES.get(name.replace(" ", "_").replace("-", "_"))
    if kind is None:
        raise ValueError(f"no approximation is called {name!r}{_hint(name)}; there are {_known()}")
    parameters = [field.name for field in fields(kind)]
    if len(given) > len(parameters):
        order = ":".join(parameters)
        raise ValueError(f"{text!r} has too many parameters; write {name}:{order}")
    values: dict[str, Any] = {}
    for parameter, value in zip(parameters, given, strict=False):
        values[parameter] = value if parameter in ("sampling", "draws") else _whole(text, value)
    return kind(**values)


def _whole(text: str, value: str) -> int:
    try:
        return int(value.replace("_", ""))
    except ValueError:
        raise ValueError(
            f"{value!r} in {text!r} must be an integer; write a number of features, as in "
            "'nystrom:1000'"
        ) from None


def _hint(name: str) -> str:
    near = difflib.get_close_matches(name, NAMES, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _known() -> str:
    return " and ".join(f"'{name}:1000'" for name in NAMES)
