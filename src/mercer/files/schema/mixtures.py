"""Schema of mixtures, and of the distribution of maximum entropy."""

from mercer.files.schema.records import JUDGED, machine, record
from mercer.machines.entropy.maximum_entropy import MaximumEntropy
from mercer.machines.entropy.problem import GibbsAnswer
from mercer.machines.mixture.discrete_em_steps import (
    BernoulliMix,
    MultinomialMix,
    TableParts,
    TiedBernoulliMix,
    TopicMix,
    TopicParts,
)
from mercer.machines.mixture.discrete_mixtures import BernoulliMixture, MultinomialMixture
from mercer.machines.mixture.gaussian_em_steps import (
    Diagonal,
    Full,
    GaussianMix,
    GaussianParts,
    Shared,
    Spherical,
)
from mercer.machines.mixture.gaussian_mixture import GaussianMixture

for _kind in (Full, Shared, Diagonal, Spherical):
    record(_kind, group="covariance")
record(
    GaussianParts,
    """
    shares: f8[k]
    means: f8[k,d]
    covariances: f8[k,d,d] | f8[d,d] | f8[k,d] | f8[k]
    likelihoods: none | f8[_]
    """,
    group="answer",
)
record(TableParts, "shares: f8[k]\ntable: f8[k,d]\nlikelihoods: none | f8[_]", group="answer")
record(
    TopicParts,
    "table: f8[k,d]\nproportions: f8[_,k]\nlikelihoods: none | f8[_]",
    group="answer",
)
_ROWS = "X: rows[n,d]\nweights: f8[n]\ncount: int\n"
record(GaussianMix, _ROWS + "shape: @covariance\nfloor: float\nlog_volume: float", group="mixture")
record(BernoulliMix, _ROWS + "smoothing: float", group="mixture")
record(TiedBernoulliMix, _ROWS + "smoothing: float", group="mixture")
record(MultinomialMix, _ROWS + "smoothing: float", group="mixture")
record(TopicMix, _ROWS + "smoothing, document_smoothing: float", group="mixture")

_MIXTURE = (
    JUDGED
    + """
    n_components_: int=k
    n_iter_: int
    converged_: bool
    log_likelihoods_: f8[_]
    criteria_?: F[_]
    _parts: @answer{k=k,d=d}
    _problem: @mixture{d=d}
    weights_: f8[k]
    collapsed_: b[k]
"""
)
machine(
    GaussianMixture,
    _MIXTURE
    + """
    _origin, _scale: f8[d]
    means_: f8[k,d]
    covariances_: f8[k,d,d] | f8[d,d] | f8[k,d] | f8[k]
    """,
)
machine(
    BernoulliMixture,
    _MIXTURE
    + """
    tied?: param
    _level: none | float
    means_: f8[k,d]
    coins_?: f8[k]
    """,
)
machine(MultinomialMixture, _MIXTURE + "components_: f8[k,d]")

record(GibbsAnswer, "multipliers: f8[m]\nprobabilities: f8[n]\ndirection: f8[m]", group="answer")
machine(
    MaximumEntropy,
    """
    solution_: Solution
    certificate_: Certificate
    points_: param
    probabilities_: f8[n]
    multipliers_: f8[m]
    entropy_, relative_entropy_, log_partition_: number
    expectations_: f8[m]
    at_border_: bool
    """,
)
