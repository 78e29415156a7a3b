"""Which columns a table becomes: decided once from its rows, then the same for every part of them.

A plan is plain lists and words, so that it can be a parameter, be cloned and be stored:

- ``numbers``, ``dates``, ``left_out``: names of columns;
- ``gaps``: numbers and dates with missing entries, which get a column that says so, and categories
  for which "missing" is a level;
- ``cycles``: for each date the cycles it goes through;
- ``levels``: for each category its levels, in order;
- ``words``: for each text its words, in order;
- ``sparse``: numbers that are held sparse, and stay so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data.column import different
from mercer.data.errors import DataError
from mercer.data.kinds import Kind
from mercer.data.preparation.dates import cycles_in
from mercer.data.preparation.tfidf import words_in
from mercer.data.table import Table

MOST_WORDS = 20_000  # of a text: the most frequent ones
MISSING_LEVEL = "(missing)"


def plan_of(table: Table, most_words: int = MOST_WORDS) -> dict[str, Any]:
    """Decide which columns a table becomes.

    Examples
    --------
    >>> plan = plan_of(Table.of({"age": [31, None, 52], "town": ["Ulm", "Bern", "Riga"]}))
    >>> plan["numbers"], plan["gaps"], plan["levels"]
    (['age'], ['age'], {'town': ['Bern', 'Riga', 'Ulm']})
    """
    plan: dict[str, Any] = {"numbers": [], "dates": [], "left_out": [], "gaps": []}
    plan |= {"cycles": {}, "levels": {}, "words": {}, "sparse": table.sparse_columns}
    for name in table.dense_columns:
        column = table.column(name)
        kind, values = column.kind, column.values
        if kind is Kind.IDENTIFIER:
            plan["left_out"].append(name)
            continue
        if values.dtype.kind == "f":
            if np.isinf(values).any():
                raise DataError("has infinite entries; fill them in, or drop it", column=name)
            plan["numbers"].append(name)
        elif kind is Kind.DATE:
            plan["dates"].append(name)
            plan["cycles"][name] = cycles_in(values)
        elif kind is Kind.TEXT:
            plan["words"][name] = words_in(values.tolist(), most_words)
        else:
            plan["levels"][name] = different(values)
        if kind is not Kind.TEXT and column.missing.any():
            plan["gaps"].append(name)
    return plan


def kinds_in(plan: dict[str, Any]) -> dict[str, Kind]:
    """Return the kinds that a plan sees its columns as."""
    found = dict.fromkeys(plan["numbers"], Kind.NUMBER) | dict.fromkeys(plan["dates"], Kind.DATE)
    found |= dict.fromkeys(plan["levels"], Kind.CATEGORY) | dict.fromkeys(plan["words"], Kind.TEXT)
    return found | dict.fromkeys(plan["sparse"], Kind.NUMBER)
