"""`fit`: fit the machine of a scene and draw it."""

from __future__ import annotations

import warnings
from typing import Any

from mercer.studio.jobs.answers import answer_of
from mercer.studio.jobs.bench import Bench
from mercer.studio.jobs.fitting import Tell


def fit_job(bench: Bench, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Fit, and return how it ended and what is drawn of it."""
    scene, fitted = bench.fitted(request, tell)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = answer_of(scene, fitted)
    said = [*fitted.warnings, *(str(one.message) for one in caught)]
    return {**found, "warnings": list(dict.fromkeys(said))}
