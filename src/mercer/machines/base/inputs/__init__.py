"""Rows and targets as they come in: checked once, with errors that say where and what to do."""

from mercer.machines.base.inputs.explaining import (
    explaining,
)
from mercer.machines.base.inputs.reading import (
    new_rows,
    read_array,
    read_rows,
    rows_of_fits,
    rows_with_gaps,
    training_rows,
    training_rows_alone,
)
from mercer.machines.base.inputs.refusals import (
    dates,
    refuse_dates,
    refuse_empty_columns,
    refuse_large_squares,
    refuse_nonfinite,
    refuse_overflown,
    refuse_twin_columns,
    warn_of_spread,
)

__all__ = [
    "dates",
    "explaining",
    "new_rows",
    "read_array",
    "read_rows",
    "refuse_dates",
    "refuse_empty_columns",
    "refuse_large_squares",
    "refuse_nonfinite",
    "refuse_overflown",
    "refuse_twin_columns",
    "rows_with_gaps",
    "training_rows",
    "rows_of_fits",
    "training_rows_alone",
    "warn_of_spread",
]
