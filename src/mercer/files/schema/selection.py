"""Schema of tuning, kernel combination, elimination, pipelines, scalers, reinforcement."""

from __future__ import annotations

from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from mercer.files.schema.records import Fields, machine, record
from mercer.machines.kernel_learning.problem import KernelWeights, WeightedDuals
from mercer.machines.reinforcement.problem import KernelQ
from mercer.reinforcement import FittedQ, KernelLSPI
from mercer.selection import (
    ArtificialOutliers,
    Combined,
    EliminationPath,
    Exhaustive,
    FeatureElimination,
    Grid,
    Halve,
    MultipleKernel,
    Race,
    Refine,
    Trial,
    Tuned,
    Tuning,
)

for _kind in (Exhaustive, Halve, Race, Refine):
    record(_kind, group="search_rule")
record(ArtificialOutliers, group="scorer")

record(
    Trial,
    """
    params: dict(param)
    fold: int
    rows: none | int | i8[_]
    test, train: dict(number)
    fit_seconds, score_seconds: number
    failure: text
    """,
)
record(
    Tuning,
    """
    points: tuple(dict(param))[p]
    scores: F[p,_]
    best: int
    metric: text
    cv_results: dict(param)
    trials: tuple(Trial)
    complete: bool
    status: text
    notes: tuple(text)
    work: dict(int)
    seconds: number
    """,
)


def _tuned(value: Tuned) -> Fields:
    """Leave out what `tuning_` says already, and the scorer, which is found again by its name."""
    derived = {"best_params_", "best_score_", "best_index_", "cv_results_", "n_splits_"}
    held = {name: each for name, each in vars(value).items() if name not in derived}
    if "scorer_" in held:
        held["outliers"] = isinstance(held.pop("scorer_"), ArtificialOutliers)
    held.pop("multimetric_", None)
    return held


def _make_tuned(found: Fields) -> Tuned:
    fitted = {"tuning_", "best_estimator_", "refit_time_", "outliers"}
    made = Tuned(**{name: value for name, value in found.items() if name not in fitted})
    if "tuning_" in found:
        # the target counts only by whether there is one
        made._keep(found["tuning_"], None if found.get("outliers") else 0)
    for name in ("best_estimator_", "refit_time_"):
        if name in found:
            setattr(made, name, found[name])
    return made


machine(
    Tuned,
    """
    machine: @machine
    tuning_: Tuning
    outliers: bool
    best_estimator_?: @machine
    refit_time_?: float
    """,
    state=_tuned,
    make=_make_tuned,
)
record(Grid)
record(WeightedDuals, "weights: f8[m]\nduals: Duals", group="answer")
record(KernelWeights, "weights: f8[m]", group="answer")
record(
    Combined,
    """
    kernels: tuple(kernel)[m]
    method: text
    weights, factors: f8[m]
    solution: Solution
    certificate: Certificate
    """,
)
machine(MultipleKernel, "machine: @machine\ncombined_: Combined\nmachine_: @machine")

record(
    EliminationPath,
    "ranking: i8[d]\nsizes: i8[m]\nfeatures: tuple(i8[_]<d)[m]\nlosses: tuple(f8[_])[m]",
)
machine(
    FeatureElimination,
    """
    machine: none | @machine
    path_: EliminationPath{d=d}
    ranking_: i8[d]
    support_: b[d]
    n_features_: int
    sizes_?: i8[_]
    scores_?: F[_,_]
    machine_: @machine
    """,
)

# --- scikit-learn's own: steps, and what brings columns to one scale ------------------------------

machine(Pipeline, "steps: list(tuple(text | @machine | none))\nmemory: none\n")
_COUNT = "n_samples_seen_: int | number | i8[d]\n"
machine(StandardScaler, _COUNT + "mean_, var_, scale_: none | f[d]")
machine(MinMaxScaler, _COUNT + "min_, scale_, data_min_, data_max_, data_range_: f[d]")
machine(MaxAbsScaler, _COUNT + "scale_, max_abs_: f[d]")

# --- reinforcement learning ----------------------------------------------------------------------

record(KernelQ, "coef: f8[m]\nintercept: float", group="answer")
for _kind in (FittedQ, KernelLSPI):
    machine(
        _kind,
        """
        solution_: Solution
        certificate_: Certificate
        kernel_: kernel
        actions_: f8[_]
        _points: f8[_,_]
        n_iter_: int
        """,
    )
