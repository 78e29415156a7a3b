"""Errors of a backend, verb by verb: the worst of each is kept, and what is too much refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.array_types import Array
from mercer.backends.contract import Backend


class Finding(NamedTuple):
    """The worst error of a verb: over what is allowed, and where it was met."""

    share: float
    label: str


class Judge:
    """Compares what a backend found with what it should have found.

    Parameters
    ----------
    backend : Backend
        Who is judged.

    Attributes
    ----------
    worst : dict
        The worst finding of each verb.

    Examples
    --------
    >>> from mercer.backends.reference.backend import Reference
    >>> judge = Judge(Reference())
    >>> judge.close("sum", np.array([1.0]), np.array([1.5]), 1.0, "one number")
    >>> judge.shares()
    {'sum': 0.5}
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.worst: dict[str, Finding] = {}

    def close(self, verb: str, found: Array, wanted: Array, atol: Any, label: str) -> None:
        """Keep the largest difference, over `atol`; undefined entries belong where they are."""
        assert found.shape == wanted.shape, f"{label}: {found.shape}, expected {wanted.shape}"
        with np.errstate(all="ignore"):
            same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
            apart = np.where(same, 0.0, np.abs(found - wanted) / atol)
        worst = float(np.where(np.isnan(apart), np.inf, apart).max(initial=0.0))
        if verb not in self.worst or worst > self.worst[verb].share:
            self.worst[verb] = Finding(worst, label)

    def shares(self) -> dict[str, float]:
        """Return the worst error of each verb, over what is allowed."""
        return {verb: finding.share for verb, finding in self.worst.items()}

    def refuse(self) -> None:
        """Raise if an error was larger than what is allowed."""
        for verb, (share, label) in self.worst.items():
            assert share <= 1.0, f"{verb} is off by {share:.3g} times what is allowed: {label}"
