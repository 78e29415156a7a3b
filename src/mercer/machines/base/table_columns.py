"""Columns of a table as a machine sees them: numbers, by the names of the fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Points
from mercer.data.table import Table


def numbers_of(machine: Any, table: Table) -> Points:
    """Return the columns of a table as rows of numbers; another kind of column is named."""
    try:
        return table.matrix()
    except TypeError as error:
        raise TypeError(f"{type(machine).__name__}: {error}") from error


def remember_columns(machine: Any, table: Table, fitting: bool) -> None:
    """Let the machine remember the columns of a table, or compare them with those of the fit."""
    names, known = table.columns, getattr(machine, "feature_names_in_", None)
    if fitting:
        machine.n_features_in_ = len(names)
        machine.feature_names_in_ = np.array(names, dtype=object)
    elif known is not None and list(known) != names:
        unseen = [name for name in names if name not in set(known)]
        lacking = [name for name in known if name not in set(names)]
        what = "they come in another order"
        if unseen or lacking:
            what = f"new: {_some(unseen)}; lacking: {_some(lacking)}"
        raise ValueError(
            f"{type(machine).__name__}: the feature names should match those that were passed "
            f"during fit ({what}); choose the columns by name, table[list(names)]"
        )


def _some(names: list[str]) -> str:
    return (", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")) or "none"
