"""Schema of table models: preparation, evaluation, choice, findings, and text filters."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from mercer.data import Kind, Schema, TablePreparation
from mercer.data.check import Finding, Findings
from mercer.files.schema.records import ENUMS, Fields, machine, record
from mercer.fitting.evaluation import CalibrationTable, Evaluation, Importance, Metric
from mercer.fitting.model import Settings, TableModel
from mercer.fitting.text_filter import TextFilter
from mercer.fitting.unsupervised import ClusterModel, ProjectionModel, TopicModel
from mercer.selection import Choice, Contender, Roc
from mercer.theory import Bound

ENUMS.update(Kind=Kind)

# what annotations of dataclasses mean in a file
_MEANINGS = {
    "float": "number",
    "float | None": "none | number",
    "int": "int",
    "bool": "bool",
    "str": "text",
    "Array": "array",
    "Array | None": "none | array",
    "tuple[str, ...]": "tuple(text)",
    "tuple[float, float]": "tuple(number)",
    "Mapping[str, str]": "dict(text)",
    "Mapping[str, float]": "dict(number)",
}


def _annotated(kind: Any, **others: str) -> str:
    """Return the fields of a dataclass as it annotates them; `others` are in other words."""
    return "\n".join(
        f"{each.name}: {others.get(each.name) or _MEANINGS.get(str(each.type), 'param')}"
        for each in fields(kind)
    )


def _without_table(value: Any) -> Fields:
    """Drop the training rows: a model needs only those that its estimator keeps."""
    bare = replace(value, table=None)
    return {each.name: getattr(bare, each.name) for each in fields(bare)}


machine(
    TablePreparation,
    """
    plan_: dict(param)
    medians_, means_, scales_: f8[m]
    weights_: dict(f8[_])
    sparse_scales_: f8[_]
    """,
)
record(Schema, "kinds: dict(Kind)\nparsed: dict(text)\nformat, decimal: text\nmissing: tuple(text)")
record(Metric, _annotated(Metric))
record(Importance, _annotated(Importance))
record(CalibrationTable, _annotated(CalibrationTable))
record(Roc, _annotated(Roc))
record(Bound, _annotated(Bound))
record(
    Evaluation,
    _annotated(
        Evaluation,
        metrics="tuple(Metric)",
        roc="none | Roc",
        calibration="none | CalibrationTable",
        importance="tuple(Importance)",
    ),
)
record(Settings, _annotated(Settings))
record(Contender, _annotated(Contender, tuning="Tuning"))
record(Choice, _annotated(Choice, machine="@machine", contenders="tuple(Contender)"))
record(Finding, _annotated(Finding, level="text"))
record(Findings, "_found: tuple(Finding)", closed=True, bare=True)

_COMMON = {"pipeline": "Pipeline", "schema": "Schema", "certificate": "none | Certificate"}
_COMMON |= {"settings": "Settings", "table": "none", "findings": "Findings"}
record(
    TableModel,
    _annotated(
        TableModel,
        **_COMMON,
        classes="tuple(param)",
        choice="none | Choice",
        evaluation="Evaluation",
        bounds="tuple(Bound)",
    ),
    whole=True,
    state=_without_table,
)
for _kind in (ClusterModel, ProjectionModel, TopicModel):
    record(_kind, _annotated(_kind, **_COMMON), whole=True, state=_without_table)
record(
    TextFilter,
    """
    labels: tuple(text)
    method: text
    words: BagOfWords
    machine: NaiveBayes | Perceptron
    seen, mistakes: int
    mistakes_by_label: dict(int)
    _order: list(text)
    """,
    closed=True,
    bare=True,
    whole=True,
)
