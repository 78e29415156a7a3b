"""Whether an answer holds numbers only."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from mercer.problems import Duals, FoldedPathValue, PathDuals
from mercer.problems.blocks.topics import BlockTopicParts


def is_finite(value: Any) -> bool:
    """Return whether an answer holds numbers only; scores may be infinite, which says unusable."""
    if isinstance(value, Duals):
        return all(map(is_finite, value.parts))
    if isinstance(value, BlockTopicParts):  # shares follow from the table
        return bool(np.isfinite(value.table).all())
    if isinstance(value, FoldedPathValue):
        return True  # fits without numbers are marked as not met
    if isinstance(value, PathDuals):  # settings that are not solved say so
        held = (*value.coef, *value.intercept, value.values)
        return all(bool(np.isfinite(part[value.solved]).all()) for part in held)
    parts = (getattr(value, field.name) for field in fields(value) if field.name != "scores")
    return all(
        is_finite(part)
        if isinstance(part, Duals)
        else part is None or bool(np.isfinite(part).all())
        for part in parts
    )
