"""A programme in the space of features, written for the compiled descent on single variables."""

from __future__ import annotations

from mercer.array_types import Array
from mercer.backends.contract import FeatureBox
from mercer.solvers.linear_margin.screening import FeatureProgramme


def feature_box(P: FeatureProgramme, b: Array, offsets: Array) -> FeatureBox:
    """Write the programme, from b and the multipliers of its sums."""
    return FeatureBox(
        P.linear,
        P.lower,
        P.upper,
        P.rows.group,
        P.totals,
        b,
        offsets,
        P.shift if P.shift.any() else None,
        P.epsilon if P.epsilon.any() else None,
    )
