"""What kinds of columns a table has: numbers, categories, running text, and names of rows.

A column of numbers or truth values is numbers. A column of words is categories if it has few
different values, text if its entries are mostly of several words, and otherwise a name of its row,
which tells nothing about other rows. Dates have to be turned into numbers by who knows what they
mean.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

_FEW = 20  # different words that are categories in any table
_SHARE = 0.05  # of the rows: as many different words are categories in large tables
_WORDS = 2.5  # in a typical entry: running text
WORD = r"(?u)\b\w\w+\b"  # what counts as a word, as scikit-learn has it


@dataclass(frozen=True)
class Columns:
    """Columns of a table by kind; each name stands in one of the first four.

    Attributes
    ----------
    numbers, categories, texts, names : tuple
        Columns of numbers, of few different words, of running text, and of names of rows.
    incomplete : tuple
        Columns of numbers with missing entries.
    """

    numbers: tuple[Any, ...]
    categories: tuple[Any, ...]
    texts: tuple[Any, ...]
    names: tuple[Any, ...]
    incomplete: tuple[Any, ...]

    @property
    def plain(self) -> bool:
        """Whether the table is complete numbers only."""
        return not (self.categories or self.texts or self.names or self.incomplete)


def as_table(X: Any) -> pd.DataFrame:
    """See rows of mixed columns as a pandas table whose columns are named by text."""
    if isinstance(X, pd.DataFrame):
        table = X
    elif hasattr(X, "to_dict") and hasattr(X, "columns"):  # polars and its like
        table = pd.DataFrame({name: list(X[name]) for name in X.columns})
    else:
        table = pd.DataFrame(np.asarray(X, dtype=object) if not hasattr(X, "dtype") else X)
        table = table.infer_objects()
    # numbers as names would be taken for positions
    return table.set_axis([str(name) for name in table.columns], axis=1)


def columns_of(table: pd.DataFrame) -> Columns:
    """Sort the columns by kind.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [31, None], "town": ["Ulm", "Bern"], "sick": [True, False]})
    >>> found = columns_of(table)
    >>> found.numbers, found.categories, found.incomplete
    (('age', 'sick'), ('town',), ('age',))
    """
    kinds: dict[str, list[Any]] = {"numbers": [], "categories": [], "texts": [], "names": []}
    for name in table.columns:
        kinds[_kind(name, table[name])].append(name)
    incomplete = [name for name in kinds["numbers"] if table[name].isna().any()]
    return Columns(
        **{kind: tuple(names) for kind, names in kinds.items()}, incomplete=tuple(incomplete)
    )


def _kind(name: Any, column: pd.Series) -> str:
    if isinstance(column, pd.DataFrame):
        raise ValueError(f"choose: column {name!r} appears more than once; give each its own name")
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        raise ValueError(
            f"choose: column {name!r} holds dates. Turn them into numbers that mean something "
            "(days since an event, month, weekday), or leave the column out"
        )
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "categories"
    present = column.dropna()
    plain = pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)
    if plain or _are_numbers(present):
        if np.isinf(present.to_numpy(dtype=complex)).any():
            raise ValueError(f"choose: column {name!r} has infinite entries; fill them in")
        return "numbers"
    words = present.astype(str)
    different = words.nunique()
    if different > _FEW and np.median([len(re.findall(WORD, text)) for text in words]) >= _WORDS:
        return "texts"
    return "categories" if different <= max(_FEW, _SHARE * len(column)) else "names"


def _are_numbers(present: pd.Series) -> bool:
    """Return whether a column of objects holds nothing but numbers."""
    return bool(len(present)) and all(
        isinstance(entry, int | float | np.number | np.bool_) for entry in present
    )
