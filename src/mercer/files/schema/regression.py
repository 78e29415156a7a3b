"""Schema of ridge regression, logistic regression, and Gaussian processes."""

from typing import Any

from mercer.files.schema.records import FITTED, machine, record
from mercer.machines.gaussian_process.classifier import GaussianProcessClassifier
from mercer.machines.gaussian_process.covariance import (
    FeatureSpread,
    LaplaceFeatureSpread,
    LaplaceSpread,
    MatrixSpread,
    PointSpread,
)
from mercer.machines.gaussian_process.problem import LaplacePosterior, ProcessPosterior
from mercer.machines.gaussian_process.regressor import GaussianProcess
from mercer.machines.logistic.logistic_regression import LogisticRegression
from mercer.machines.logistic.stochastic_gradient import SGDState, StreamPreconditioner
from mercer.machines.multitask.gaussian_process import (
    MultiTaskGaussianProcess,
    TaskFeatureSpread,
    TaskSpread,
)
from mercer.machines.multitask.problem import TaskPosterior
from mercer.machines.ridge.kernel_ridge import KernelRidge
from mercer.machines.ridge.problem import Coefficients, PathValue


def check_functions(machine: Any) -> None:
    """Raise an error if the number of classes does not match the number of functions."""
    classes, functions = len(machine.classes_), machine.solution_.value.coef.shape[1]
    if functions != (1 if classes == 2 else classes):
        raise ValueError(f"{classes} classes do not have {functions} function(s)")


record(
    Coefficients,
    "coef: none | f8[n,k]\nintercept: f8[k]\nweights: none | f8[w,k]",
    group="answer",
)
record(
    PathValue,
    """
    scores: F[p,k]
    coef: f8[n,k]
    intercept: f8[k]
    residuals: F[n,k]
    weights: none | f8[w,k]
    best: i8[k]<p
    """,
    group="answer",
)
machine(
    KernelRidge,
    FITTED
    + """
    penalty_: f8[k] | float
    _expansion: @expansion{d=d}
    dual_coef_?: f8[n] | f8[n,k]
    intercept_: f8[k] | float
    penalties_?: f8[p]
    loo_scores_?: F[p] | F[p,k]
    loo_residuals_?: F[n] | F[n,k]
    _weights?: f8[d,_]
    """,
)

record(
    StreamPreconditioner,
    """
    full: bool
    _width: int
    _weight, _next: number
    _batches: int
    _scatter, _bend, _turn, _axes: F[_,_] | F[_]
    _bends, _scales, _sizes: F[_]
    """,
    bare=True,
    closed=True,
)
record(
    SGDState,
    """
    solver: AnnealedGradient
    features: int=w
    columns: int=k
    bias: bool
    steps: int
    w, mean_w: f8[w,k]
    b, mean_b: f8[k]
    shape: StreamPreconditioner
    """,
)
LOGISTIC = (
    FITTED
    + """
    classes_: labels[c]
    _weights: none | f8[_,k]
    _expansion: @expansion{d=d,k=k}
    intercept_: f8[k]
    dual_coef_?: f8[n,k]
    _seen?, _met?, _streamed?: number
    _walk?: SGDState
    """
)
machine(LogisticRegression, LOGISTIC, check=check_functions)

# --- Gaussian processes ---------------------------------------------------------------------------

record(
    ProcessPosterior,
    """
    coef: f8[n,k]
    intercept: f8[k]
    weights: none | f8[w,k]
    factor: f8[f,f]
    log_likelihood: number
    logs: none | f8[_]
    """,
    group="answer",
)
record(PointSpread, "source: Source{n=n,d=d}\nfactor: f8[n,n]\nones: none | f8[n]", group="spread")
record(
    MatrixSpread,
    "given: int=d\nrows: i8[n]<d\nfactor: f8[n,n]\nones: none | f8[n]",
    group="spread",
)
record(
    FeatureSpread,
    """
    features: @features{d=d} | function
    factor: f8[w,w]
    mean: f8[w]
    noise, level: float
    own: f8[_]
    """,
    group="spread",
)
machine(
    GaussianProcess,
    FITTED
    + """
    noise_: float
    _expansion: @expansion{d=d}
    _spread: @spread{d=d}
    dual_coef_: f8[n] | f8[n,k]
    intercept_: f8[k] | float
    log_marginal_likelihood_value_: number
    n_iter_: int
    _weights: f8[n]
    _targets: f8[n,k]
    """,
)
record(
    LaplacePosterior,
    """
    coef, roots: f8[n,k]
    factors: f8[k,f,f]
    log_likelihood: number
    logs: none | f8[_]
    weights?: none | f8[f,k]
    """,
    group="answer",
)
record(
    LaplaceSpread,
    """
    source: none | Source{n=n,d=d}
    given: int=g
    rows: i8[n]<g
    roots: f8[n,k]
    factors: f8[k,n,n]
    """,
    group="latent",
)
record(
    LaplaceFeatureSpread,
    "features: @features{d=d} | function\nfactors: f8[k,w,w]",
    group="latent",
)
machine(
    GaussianProcessClassifier,
    FITTED
    + """
    classes_: labels[c]
    _expansion: @expansion{d=d,k=k}
    _spread: @latent{d=d,k=k}
    dual_coef_: f8[n,k]
    log_marginal_likelihood_value_: number
    n_iter_: int
    """,
    check=check_functions,
)
record(
    TaskPosterior,
    """
    coef: f8[n,k]
    basis: none | f8[b,b]
    values: none | f8[b]
    factor: none | f8[r,r]
    log_likelihood: number
    logs: none | f8[_]
    weights?: none | f8[w,k]
    """,
    group="answer",
)
record(
    TaskSpread,
    """
    source: none | Source{n=n,d=d}
    given: int=g
    rows: i8[n]<g
    tasks: f8[k,k]
    basis: none | f8[n,n]
    shares: none | f8[n,k]
    factor: none | f8[r,r]
    task: none | i8[r]<k
    row: none | i8[r]<n
    """,
    group="tasks",
)
record(
    TaskFeatureSpread,
    """
    features: @features{d=d} | function
    root: f8[k,k]
    noise: float
    basis: none | f8[w,w]
    shares: none | f8[w,k]
    factor: none | f8[r,r]
    """,
    group="tasks",
)
machine(
    MultiTaskGaussianProcess,
    FITTED
    + """
    task_covariance_: f8[k,k]
    noise_: float
    _expansion: @expansion{d=d,k=k}
    _spread: @tasks{d=d,k=k}
    dual_coef_: f8[n] | f8[n,k]
    log_marginal_likelihood_value_: number
    n_iter_: int
    """,
)
