"""Candidates for tables of mixed columns: what turns them into numbers, and a kernel per kind."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from mercer.kernels import Gaussian, Kernel, Linear
from mercer.selection.choosing.candidates import FACTORS, MOST_WORDS, Candidate, families
from mercer.selection.choosing.tables import WORD, Columns, as_table
from mercer.selection.default_grids import typical_distance

_ABSENT = "(missing)"


def of_table(table: pd.DataFrame, columns: Columns) -> list[Candidate]:
    """Return the candidates for a table: one kernel for all columns, and one for each kind."""
    prepare, widths = _preparation(table, columns)
    steps = (("table", FunctionTransformer(as_table)), ("columns", prepare))
    prepared = prepare.fit_transform(table)
    found = families(steps, prepared, dense=not columns.texts)
    if len(widths) > 1:
        found.append(Candidate("sum over kinds of columns", steps, _sums(prepared, widths)))
    return found


def _preparation(table: pd.DataFrame, columns: Columns) -> tuple[ColumnTransformer, list[int]]:
    """Return what turns a table into numbers, and how many columns each kind takes up then.

    Categories and words are those of all rows, so that every fold has the same columns; what they
    weigh is learnt in each fold.
    """
    parts: list[tuple[str, Any, Any]] = []
    widths = []
    if columns.numbers:
        fill = SimpleImputer(strategy="median", keep_empty_features=True)
        scale = Pipeline([("fill", fill), ("scale", StandardScaler())])
        parts.append(("numbers", scale, list(columns.numbers)))
        widths.append(len(columns.numbers) + len(columns.incomplete))
    if columns.incomplete:
        absent = Pipeline(
            [
                ("absent", MissingIndicator(features="all")),
                ("as_numbers", FunctionTransformer(_floats)),
            ]
        )
        parts.append(("missing", absent, list(columns.incomplete)))
    if columns.categories:
        names = list(columns.categories)
        levels = [np.unique(as_words(table[[name]])[:, 0]) for name in names]
        encoder = OneHotEncoder(
            categories=levels, handle_unknown="ignore", sparse_output=bool(columns.texts)
        )
        coded = Pipeline([("words", FunctionTransformer(as_words)), ("code", encoder)])
        parts.append(("categories", coded, names))
        widths.append(sum(len(level) for level in levels))
    for number, name in enumerate(columns.texts):
        words = CountVectorizer(max_features=MOST_WORDS, token_pattern=WORD)
        words.fit(as_text(table[name]))
        weigh = TfidfVectorizer(sublinear_tf=True, token_pattern=WORD, vocabulary=words.vocabulary_)
        text = Pipeline([("text", FunctionTransformer(as_text)), ("words", weigh)])
        parts.append((f"text {number}", text, name))
        widths.append(len(words.vocabulary_))
    return ColumnTransformer(parts, remainder="drop"), widths


def _sums(rows: Any, widths: list[int]) -> tuple[Kernel, ...]:
    """Return sums of a kernel for each kind: Gaussian where rows are dense, linear on words."""
    ends = np.cumsum([0, *widths])
    blocks = [range(a, b) for a, b in pairwise(ends.tolist())]
    typical = [typical_distance(rows[:, list(block)], 2) / 2 for block in blocks]
    return tuple(
        _added([_on(block, factor * scale) for block, scale in zip(blocks, typical, strict=True)])
        for factor in FACTORS
    )


def _on(block: range, scale: float) -> Kernel:
    wide = len(block) > 1000  # words
    kernel: Kernel = Linear() if wide else Gaussian(scale)
    return kernel.on(list(block))


def _added(kernels: list[Kernel]) -> Kernel:
    total = kernels[0]
    for kernel in kernels[1:]:
        total = total + kernel
    return total


def as_words(table: Any) -> Any:
    """Write categories as words; what is missing is a word of its own."""
    frame = pd.DataFrame(table)
    return frame.astype(object).where(frame.notna(), _ABSENT).astype(str).to_numpy(dtype=object)


def as_text(column: Any) -> list[str]:
    """Write a column of text as strings; what is missing says nothing."""
    series = pd.Series(column)
    return list(series.astype(object).where(series.notna(), "").astype(str))


def _floats(mask: Any) -> Any:
    return np.asarray(mask, dtype=np.float64)
