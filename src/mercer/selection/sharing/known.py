"""What scorers ask for: whether known answers are enough for them.

Shared work gives values at the rows that were left out, not a fitted machine for each point. A
scorer of scikit-learn asks a machine for `predict` or `decision_function`; stand-ins answer with
what is known (`machines/base/sharing.py`), whatever rows they are handed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring, get_scorer

from mercer.machines.base.sharing import KnownClassifier, KnownDetector, KnownRegressor

__all__ = [
    "KnownClassifier",
    "KnownDetector",
    "KnownRegressor",
    "asks_for_probabilities",
    "asks_only_for_answers",
    "scores_of",
]


def asks_only_for_answers(scorers: Mapping[str, Any], machine: Any) -> bool:
    """Return whether scorers are scikit-learn's own kind, which ask for answers and nothing else.

    A callable of the user may look at anything a fitted machine has, so it gets one.
    """
    kinds = {type(get_scorer("accuracy")), type(get_scorer("roc_auc"))}
    if hasattr(machine, "score"):
        kinds.add(type(check_scoring(machine)))
    return all(type(scorer) in kinds for scorer in scorers.values())


def asks_for_probabilities(scorers: Mapping[str, Any]) -> bool:
    """Return whether a scorer asks for `predict_proba`, which needs a machine that is fitted."""
    asked = (getattr(scorer, "_response_method", "predict") for scorer in scorers.values())
    return any(method == "predict_proba" for method in asked)


def scores_of(scorers: Mapping[str, Any], known: Any, y: Any) -> dict[str, float]:
    """Score known answers against the truth."""
    nothing = np.empty((len(y), 0))
    return {name: float(scorer(known, nothing, y)) for name, scorer in scorers.items()}
