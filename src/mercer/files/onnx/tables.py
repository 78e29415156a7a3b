"""Tables as inputs of a graph: one input for each column, prepared as `TablePreparation` does.

Numbers are doubles, NaN where missing; categories are texts, the empty text where missing. Both
have the shape (n, 1) and the name of the column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.data import Table, TablePreparation
from mercer.data.preparation.plan import kinds_in
from mercer.files.onnx.errors import OnnxExportError
from mercer.files.onnx.graph import Graph

_ROWS = 200  # of a sample
_STRANGE = "a level that is none of those of the training rows"


def prepared(preparation: TablePreparation, graph: Graph) -> str:
    """Add one input for each column to a graph, and return the rows of numbers: (n, d)."""
    plan = preparation.plan_
    gaps, parts = set(plan["gaps"]), []
    absent = []
    for k, name in enumerate(plan["numbers"]):
        column = graph.input(name, graph.onnx.TensorProto.DOUBLE)
        missing = graph.op("IsNaN", column)
        parts.append(graph.where(missing, graph.number(preparation.medians_[k]), column))
        if name in gaps:
            absent.append(graph.op("Cast", missing, to=graph.onnx.TensorProto.DOUBLE))
    if parts:
        away = graph.sub(_beside(graph, parts), graph.constant(preparation.means_))
        parts = [graph.divided(away, preparation.scales_)]
    parts += absent
    for name, levels in plan["levels"].items():
        column = graph.input(name, graph.onnx.TensorProto.STRING)
        parts.append(_one_hot(graph, column, levels, name in gaps))
    return _beside(graph, parts)


def refuse_columns(preparation: TablePreparation) -> None:
    """Refuse columns that are neither numbers nor categories, by name."""
    plan = preparation.plan_
    for key, what in (("words", "text"), ("dates", "date"), ("sparse", "sparse")):
        if plan[key]:
            raise OnnxExportError(
                f"TablePreparation: the {what} column {next(iter(plan[key]))!r} is not exported to "
                "ONNX; numbers and categories are. Leave it out, or make numbers of it first"
            )
    for name, levels in plan["levels"].items():
        if "" in levels:
            raise OnnxExportError(
                f"TablePreparation: the empty text is a level of {name!r}; in the graph it stands "
                "for a missing entry"
            )


def _one_hot(graph: Graph, column: str, levels: list[str], gaps: bool) -> str:
    """Return a column of 0 and 1 for each level, and for the empty text where gaps were known."""
    words = [*levels, ""] if gaps else levels
    codes = graph.op(
        "LabelEncoder",
        column,
        domain="ai.onnx.ml",
        keys_strings=list(words),
        values_int64s=list(range(len(words))),
        default_int64=-1,
    )
    same = graph.op("Equal", codes, graph.constant(np.arange(len(words))[None]))
    return graph.op("Cast", same, to=graph.onnx.TensorProto.DOUBLE)


def _beside(graph: Graph, parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else graph.op("Concat", *parts, axis=1)


def table_sample(preparation: TablePreparation) -> Table:
    """Return rows like those of the training table, with gaps and levels that it did not have."""
    rng, plan = np.random.default_rng(0), preparation.plan_
    columns: dict[str, Any] = {}
    for k, name in enumerate(plan["numbers"]):
        values = preparation.means_[k] + preparation.scales_[k] * rng.normal(size=_ROWS)
        columns[name] = np.where(rng.random(_ROWS) < 0.1, np.nan, values)
    for name, levels in plan["levels"].items():
        words = np.array([*levels, _STRANGE, None], dtype=object)
        columns[name] = words[rng.integers(len(words), size=_ROWS)]
    return Table.of(columns, kinds=kinds_in(plan))


def feeds_of(preparation: TablePreparation, table: Table) -> dict[str, Array]:
    """Return the inputs of a graph for the rows of a table."""
    plan = preparation.plan_
    table = table[list(kinds_in(plan))].with_kinds(kinds_in(plan))
    feeds = {name: np.asarray(table[name], dtype=np.float64)[:, None] for name in plan["numbers"]}
    for name in plan["levels"]:
        words = ["" if word is None else word for word in table[name].tolist()]
        feeds[name] = np.array(words, dtype=object)[:, None]
    return feeds
