"""What `cluster`, `project` and `topics` return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mercer.array_types import Array
from mercer.fitting.model import Settings

if TYPE_CHECKING:
    from mercer.data import Findings, Schema, Table


@dataclass(frozen=True, eq=False)
class UnsupervisedModel:
    """What models without a target have in common.

    Attributes
    ----------
    pipeline : Pipeline
        Steps "prepare" and "machine", fitted to all rows.
    schema : Schema
        Columns that new rows need.
    findings : Findings
        What `mercer.data.check` found.
    certificate : Certificate
        That of the machine.
    notes : tuple of str
        What was decided, in sentences.
    python : str
        A program that makes the same model.
    settings : Settings
        Seed, versions, digest, seconds.
    table : Table or None
        The rows, kept for reports.
    """

    pipeline: Any
    schema: Schema
    findings: Findings
    certificate: Any
    notes: tuple[str, ...]
    python: str
    settings: Settings
    table: Table | None

    @property
    def machine(self) -> Any:
        """The fitted machine, behind the preparation."""
        return self.pipeline[-1]


@dataclass(frozen=True, eq=False)
class ClusterModel(UnsupervisedModel):
    """Rows in groups.

    Attributes
    ----------
    labels : (n,) int array
        The cluster of each row.
    sizes : (k,) int array
        How many rows each has.
    criterion : str
        Which figure chose the number of clusters, in words.
    candidates : tuple of (int, float)
        Numbers of clusters, and the figure of each.
    profiles : tuple of tuple of str
        What sets each cluster apart, in sentences.
    coordinates : (n, 2) array
        Rows in the plane of their first two principal components, for a picture.
    """

    labels: Array
    sizes: Array
    criterion: str
    candidates: tuple[tuple[int, float], ...]
    profiles: tuple[tuple[str, ...], ...]
    coordinates: Array


@dataclass(frozen=True, eq=False)
class ProjectionModel(UnsupervisedModel):
    """Rows as points with few coordinates.

    Attributes
    ----------
    coordinates : (n, k) array
        Of each row.
    explained : (k,) array
        Share of the variance (in feature space) that each coordinate has.
    loadings : tuple of tuple of (str, float)
        For a linear kernel, the columns that weigh most in each coordinate; empty otherwise.
    """

    coordinates: Array
    explained: Array
    loadings: tuple[tuple[tuple[str, float], ...], ...]


@dataclass(frozen=True, eq=False)
class TopicModel(UnsupervisedModel):
    """Texts by what they are about.

    Attributes
    ----------
    topics : tuple of tuple of (str, float)
        For each topic the words that set it apart, with their probabilities.
    shares : (k,) array
        How much of the texts each topic has.
    weights : (n, k) array
        The probability of each topic for each text.
    candidates : tuple of (int, float)
        Numbers of topics, and the figure that chose.
    """

    topics: tuple[tuple[tuple[str, float], ...], ...]
    shares: Array
    weights: Array
    candidates: tuple[tuple[int, float], ...]
