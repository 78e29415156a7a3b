"""Active learning: which row to have labelled next."""

from mercer.selection.active.learner import ActiveEnding, ActiveLearner, ActiveRound
from mercer.selection.active.posterior import posterior_variance
from mercer.selection.active.query_rules import (
    EntropyQuery,
    ExpectedChangeQuery,
    MarginQuery,
    QueryRule,
    RandomQuery,
    VarianceQuery,
)

__all__ = [
    "ActiveLearner",
    "ActiveEnding",
    "EntropyQuery",
    "ExpectedChangeQuery",
    "MarginQuery",
    "QueryRule",
    "RandomQuery",
    "ActiveRound",
    "VarianceQuery",
    "posterior_variance",
]
