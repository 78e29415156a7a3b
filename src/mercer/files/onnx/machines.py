"""Estimators, drop-ins and pipelines as ONNX nodes; votes and probabilities of class pairs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from mercer.array_types import Array
from mercer.compat.sklearn import KernelPCA, LinearSVC, LinearSVR, QuadraticDiscriminantAnalysis
from mercer.compat.sklearn import KernelRidge as CompatKernelRidge
from mercer.compat.sklearn import KMeans as CompatKMeans
from mercer.compat.sklearn import LogisticRegression as CompatLogisticRegression
from mercer.compat.sklearn.base import Compared
from mercer.compat.sklearn.svm.one_class import OneClassSVM as OneClassDropIn
from mercer.compat.sklearn.svm.svc import PairClassifier
from mercer.compat.sklearn.svm.svr import TubeRegressor
from mercer.expression import bind_columns
from mercer.files.onnx.graph import (
    LABELS,
    Graph,
    OnnxExportError,
    Output,
    exported,
    labels,
    largest,
    log_softmax,
    second_if,
    softmax,
    squared_lengths,
    transformed,
)
from mercer.files.onnx.kernels import diagonal, features, functions, kernel_values
from mercer.fitting import TableModel
from mercer.gram.centering import CenteredFeatures
from mercer.kernels import Precomputed
from mercer.machines.base.targets import rule_of
from mercer.machines.bayes.gaussian_classifier import GaussianClassifier
from mercer.machines.bayes.gaussian_scores import planes
from mercer.machines.bayes.naive_bayes import NaiveBayes
from mercer.machines.clustering.kmeans import KernelDiagonal, KMeans
from mercer.machines.correlation.cca import CCA
from mercer.machines.decomposition.components import FeatureSubspace, MatrixSubspace, PointSubspace
from mercer.machines.decomposition.ica import ICA, ProjectionPursuit
from mercer.machines.decomposition.pca import PCA
from mercer.machines.decomposition.whiten import LogShift, Whiten
from mercer.machines.discriminant.fisher import (
    _FARTHEST,
    FisherDiscriminant,
    Mahalanobis,
    SharedGaussian,
)
from mercer.machines.logistic.logistic_regression import LogisticRegression
from mercer.machines.mixture.gaussian_em_steps import _constants
from mercer.machines.mixture.gaussian_mixture import GaussianMixture
from mercer.machines.neighbors.nearest_mean import NearestMean
from mercer.machines.ridge.kernel_ridge import KernelRidge
from mercer.machines.svm.multiclass import _EDGE, OneVsOne, OneVsRest, Scheme
from mercer.machines.svm.novelty import EnclosingBall, OneClassSVM
from mercer.machines.svm.probabilities import _TIE, Calibration
from mercer.machines.svm.svc import SVC
from mercer.machines.svm.svr import SVR
from mercer.rows.points import to_dense
from mercer.selection import Tuned

# --- votes ---------------------------------------------------------------------------------------
#
# From values of pairs of classes to one decision: votes, and confidence below a third of one.


def decided(scheme: Scheme, graph: Graph, values: str) -> str:
    """Return the decision of a scheme: (n,) for two classes, else (n, classes)."""
    if scheme.count == 2:
        return graph.column(values, 0)
    if not isinstance(scheme, OneVsOne):
        return values
    won = votes(scheme, graph, graph.op("Greater", values, graph.number(0.0)))
    first, second = _incidence(scheme)
    confidence = graph.matmul(values, second - first)
    size = graph.add(graph.op("Abs", confidence), graph.number(1.0))
    return graph.add(won, graph.div(confidence, graph.mul(graph.number(3.0), size)))


def votes(scheme: OneVsOne, graph: Graph, later: str) -> str:
    """Count the pairs that each class wins."""
    first, second = _incidence(scheme)
    wins = graph.op("Cast", later, to=graph.onnx.TensorProto.DOUBLE)
    losses = graph.sub(graph.number(1.0), wins)
    return graph.add(graph.matmul(wins, second), graph.matmul(losses, first))


def _incidence(scheme: OneVsOne) -> tuple[Array, Array]:
    """Return which class is the first, and which the second, of each pair: (pairs, classes)."""
    a, b = np.array(scheme.pairs()).T
    return np.eye(scheme.count)[a], np.eye(scheme.count)[b]


# --- coupling ------------------------------------------------------------------------------------
#
# Probabilities of support vector classifiers as nodes: slopes, coupled pairs, their order.


def probabilities(calibration: Calibration, graph: Graph, values: str) -> str:
    """Return probabilities (n, classes) from values of all parts (n, parts)."""
    scheme, slopes = calibration.scheme, calibration.slopes
    above = graph.op("Greater", values, graph.number(0.0))
    slope = graph.where(above, graph.constant(slopes[:, 1]), graph.constant(slopes[:, 0]))
    pairs = graph.op("Sigmoid", graph.mul(slope, values))
    return in_order(graph, _mixed(scheme, graph, pairs), _decision(scheme, graph, values))


def _mixed(scheme: Scheme, graph: Graph, pairs: str) -> str:
    if isinstance(scheme, OneVsOne):
        return _coupled(scheme, graph, pairs)
    if isinstance(scheme, OneVsRest):
        total = graph.sum_columns(pairs)
        some = graph.op("Greater", total, graph.number(0.0))
        shares = graph.div(pairs, graph.where(some, total, graph.number(1.0)))
        return graph.where(some, shares, graph.number(1.0 / scheme.count))
    return graph.op("Concat", graph.sub(graph.number(1.0), pairs), pairs, axis=1)


def _decision(scheme: Scheme, graph: Graph, values: str) -> str:
    if scheme.count > 2:
        return decided(scheme, graph, values)
    return graph.op("Concat", graph.op("Neg", values), values, axis=1)


def _coupled(scheme: OneVsOne, graph: Graph, later: str) -> str:
    """Minimize sum (r_ba p_a - r_ab p_b)^2 with sum p = 1.

    With Q the matrix of the squares, (Q + ee') p is a multiple of e at the minimum; that matrix is
    positive definite, so elimination needs no pivots.
    """
    k = scheme.count
    first, second = np.array(scheme.pairs()).T
    r = graph.op("Clip", later, graph.number(_EDGE), graph.number(1.0 - _EDGE))
    rest = graph.sub(graph.number(1.0), r)
    # column a k + b holds r_ab
    n_pairs = len(first)
    place = np.zeros((2 * n_pairs, k * k))
    place[np.arange(n_pairs), second * k + first] = 1.0
    place[n_pairs + np.arange(n_pairs), first * k + second] = 1.0
    flat = graph.matmul(graph.op("Concat", r, rest, axis=1), place)
    across = graph.columns(flat, np.arange(k * k).reshape(k, k).T.ravel())
    of_columns = np.zeros((k * k, k * k))
    for a in range(k):  # the diagonal: sum over b of r_ba^2
        of_columns[np.arange(k) * k + a, a * k + a] = 1.0
    Q = graph.sub(graph.matmul(graph.mul(flat, flat), of_columns), graph.mul(flat, across))
    shape = graph.constant(np.array([-1, k, k]))
    system = graph.add(graph.op("Reshape", Q, shape), graph.number(1.0))
    p = _solved(graph, system, k)
    p = graph.op("Max", p, graph.number(0.0))
    return graph.div(p, graph.sum_columns(p))


def _solved(graph: Graph, system: str, k: int) -> str:
    """Solve for a right side of ones, row by row: Gauss-Jordan elimination of (n, k, k)."""
    side = graph.op("ReduceSum", system, graph.constant(np.array([2])), keepdims=1)
    side = graph.add(graph.mul(side, graph.number(0.0)), graph.number(1.0))
    table = graph.op("Concat", system, side, axis=2)
    for t in range(k):
        place = graph.constant(np.array([t]))
        column = graph.op("Gather", table, place, axis=2)
        row = graph.op("Gather", table, place, axis=1)
        row = graph.div(row, graph.op("Gather", row, place, axis=2))
        unit = graph.constant(np.eye(k)[:, t][None, :, None])
        table = graph.sub(table, graph.mul(graph.sub(column, unit), row))
    last = graph.op("Gather", table, graph.constant(np.int64(k)), axis=2)
    return last


def in_order(graph: Graph, shares: str, decision: str) -> str:
    """Hand out probabilities so that a larger decision value has a larger probability."""
    count = graph.op("Gather", graph.op("Shape", shares), graph.constant(np.array([1])), axis=0)
    order = graph.ops("TopK", 2, decision, count, axis=1)[1]
    sorted_shares = graph.ops("TopK", 2, shares, count, axis=1)[0]
    zeros = graph.mul(shares, graph.number(0.0))
    ranked = graph.op("ScatterElements", zeros, order, sorted_shares, axis=1)
    best = graph.op("Gather", order, graph.constant(np.array([0])), axis=1)
    found = graph.op("Unsqueeze", largest(graph, ranked), graph.constant(np.array([1])))
    tied = graph.op("Not", graph.op("Equal", best, found))
    raised = graph.where(tied, graph.number(1.0 + _TIE), graph.number(1.0))
    ones = graph.add(zeros, graph.number(1.0))
    factors = graph.op("ScatterElements", ones, best, raised, axis=1)
    ranked = graph.mul(ranked, factors)
    return graph.div(ranked, graph.sum_columns(ranked))


# --- margin --------------------------------------------------------------------------------------
#
# Support vector machines: decisions, votes of pairs, probabilities.


@exported.register
def _(machine: SVC, graph: Graph, x: str) -> list[Output]:
    values = functions(machine._expansion, graph, x)
    scheme = machine._scheme
    decision = decided(scheme, graph, values)
    if scheme.count == 2:
        chosen = second_if(graph, graph.op("Greater", decision, graph.number(0.0)))
    else:
        chosen = largest(graph, decision)
    found = [
        Output(LABELS, labels(graph, machine.classes_, chosen), "predict"),
        Output("decision", decision, "decision_function"),
    ]
    return found + _probabilities(machine, graph, values)


@exported.register
def _(machine: PairClassifier, graph: Graph, x: str) -> list[Output]:
    _refuse_functions(machine)
    inner = machine.machine_
    scheme = inner._scheme
    values = functions(inner._expansion, graph, x)
    zero = graph.number(0.0)
    if not isinstance(scheme, OneVsOne):
        decision = graph.column(values, 0)
        chosen = second_if(graph, graph.op("GreaterOrEqual", decision, zero))
    else:
        decision = decided(scheme, graph, values)
        later = graph.op("GreaterOrEqual", values, zero)
        chosen = largest(graph, decision if machine.break_ties else votes(scheme, graph, later))
        if machine.decision_function_shape == "ovo":
            decision = graph.op("Neg", values)
    found = [
        Output(LABELS, labels(graph, machine.classes_, chosen), "predict"),
        Output("decision", decision, "decision_function"),
    ]
    return found + _probabilities(inner, graph, values)


@exported.register
def _(machine: SVR, graph: Graph, x: str) -> list[Output]:
    return [
        Output("prediction", graph.column(functions(machine._expansion, graph, x), 0), "predict")
    ]


@exported.register
def _(machine: TubeRegressor, graph: Graph, x: str) -> list[Output]:
    _refuse_functions(machine)
    return exported(machine.machine_, graph, x)


@exported.register
def _(machine: OneClassSVM, graph: Graph, x: str) -> list[Output]:
    score = graph.column(functions(machine._expansion, graph, x), 0)
    return _novelty(graph, score, float(machine.offset_))


@exported.register
def _(machine: OneClassDropIn, graph: Graph, x: str) -> list[Output]:
    _refuse_functions(machine)
    return exported(machine.machine_, graph, x)


@exported.register
def _(machine: EnclosingBall, graph: Graph, x: str) -> list[Output]:
    if isinstance(machine.kernel_, Precomputed):
        raise OnnxExportError("EnclosingBall: a precomputed kernel does not tell k(x, x)")
    moved = getattr(machine._expansion, "features", None)
    if isinstance(moved, CenteredFeatures):
        own = graph.column(squared_lengths(graph, features(moved, graph, x)), 0)
    else:
        expression = bind_columns(machine.kernel_.expression(), machine._column_names())
        own = graph.column(diagonal(expression, graph, x), 0)
    f = graph.column(functions(machine._expansion, graph, x), 0)
    squared = graph.add(graph.sub(own, graph.add(f, f)), graph.number(machine._centre))
    return _novelty(graph, graph.op("Neg", squared), float(machine.offset_))


def _novelty(graph: Graph, score: str, offset: float) -> list[Output]:
    decision = graph.sub(score, graph.number(offset))
    common = graph.op("GreaterOrEqual", decision, graph.number(0.0))
    label = graph.where(common, graph.constant(np.int64(1)), graph.constant(np.int64(-1)))
    return [Output(LABELS, label, "predict"), Output("decision", decision, "decision_function")]


def _probabilities(machine: SVC, graph: Graph, values: str) -> list[Output]:
    if not machine.probability or machine._calibration is None:
        return []
    found = probabilities(machine._calibration, graph, values)
    return [Output("probabilities", found, "predict_proba")]


def _refuse_functions(machine: Any) -> None:
    if isinstance(machine._reader, Compared):
        raise OnnxExportError(
            f"{type(machine).__name__}: the kernel is a function of Python, which ONNX cannot "
            "hold; fit with kernel='precomputed'"
        )


# --- regression ----------------------------------------------------------------------------------
#
# Ridge regression, logistic regression, discriminants and nearest means.


@exported.register
def _(machine: KernelRidge, graph: Graph, x: str) -> list[Output]:
    values = functions(machine._expansion, graph, x)
    if np.ndim(machine.intercept_) == 0:
        values = graph.column(values, 0)
    return [Output("prediction", values, "predict")]


@exported.register
def _(machine: LogisticRegression, graph: Graph, x: str) -> list[Output]:
    scores = functions(machine._expansion, graph, x)
    two = np.size(machine.intercept_) == 1
    decision = graph.column(scores, 0) if two else scores
    if two:
        chosen = second_if(graph, graph.op("Greater", decision, graph.number(0.0)))
    else:
        chosen = largest(graph, scores)
    found = [
        Output(LABELS, labels(graph, machine.classes_, chosen), "predict"),
        Output("decision", decision, "decision_function"),
    ]
    if machine.loss == "squared":
        return found
    shares = _shares(machine.loss, graph, scores, two)
    return [*found, Output("probabilities", shares, "predict_proba")]


def _shares(loss: str, graph: Graph, scores: str, two: bool) -> str:
    if loss not in ("log", "tanh"):
        raise OnnxExportError(f"LogisticRegression: loss={loss!r} is not exported")
    if loss == "tanh":
        scores = graph.add(scores, scores)
    if two:
        both = graph.op("Concat", graph.op("Neg", scores), scores, axis=1)
        return graph.op("Sigmoid", both)
    if loss == "tanh":  # the logarithm of the logistic function
        small = graph.op("Exp", graph.op("Neg", graph.op("Abs", scores)))
        log = graph.op("Log", graph.add(graph.number(1.0), small))
        scores = graph.sub(graph.op("Min", scores, graph.number(0.0)), log)
    return softmax(graph, scores)


@transformed.register
def _(machine: FisherDiscriminant, graph: Graph, x: str) -> str:
    return functions(machine._expansion, graph, x)


@exported.register
def _(machine: FisherDiscriminant, graph: Graph, x: str) -> list[Output]:
    places = transformed(machine, graph, x)
    scores = _rule_scores(machine._rule, graph, places)
    decision = scores
    if len(machine.classes_) == 2:
        decision = graph.sub(graph.column(scores, 1), graph.column(scores, 0))
    shares = graph.op("Exp", log_softmax(graph, scores))
    return [
        Output(LABELS, labels(graph, machine.classes_, largest(graph, scores)), "predict"),
        Output("decision", decision, "decision_function"),
        Output("probabilities", shares, "predict_proba"),
        Output("transformed", places, "transform"),
    ]


def _rule_scores(rule: object, graph: Graph, places: str) -> str:
    if isinstance(rule, SharedGaussian):
        own = 0.5 * np.square(rule.means).sum(axis=1)
        with np.errstate(divide="ignore"):
            logs = np.log(rule.priors)
        if not np.isfinite(logs).all():
            raise OnnxExportError("FisherDiscriminant: a prior of zero is not exported")
        less = graph.sub(graph.matmul(places, rule.means.T), graph.constant(own))
        scaled = graph.scaled(less, np.full(len(own), 1.0 / rule.variance))
        return graph.add(scaled, graph.constant(logs))
    if isinstance(rule, Mahalanobis):
        columns = []
        for mean, factor in zip(rule.means, rule.factors, strict=True):
            away = graph.sub(places, graph.constant(mean))
            columns.append(squared_lengths(graph, graph.matmul(away, factor.T)))
        squared = graph.op("Min", graph.op("Concat", *columns, axis=1), graph.number(_FARTHEST))
        return graph.scaled(squared, np.full(len(columns), -0.5))
    raise OnnxExportError(f"the rule {type(rule).__name__} is not exported")


@exported.register
def _(machine: NearestMean, graph: Graph, x: str) -> list[Output]:
    scores = functions(machine._expansion, graph, x)
    decision = scores
    if len(machine.classes_) == 2:
        difference = graph.sub(graph.column(scores, 1), graph.column(scores, 0))
        decision = graph.div(difference, graph.number(2.0))
    chosen = largest(graph, scores)
    return [
        Output(LABELS, labels(graph, machine.classes_, chosen), "predict"),
        Output("decision", decision, "decision_function"),
    ]


# --- projection ----------------------------------------------------------------------------------
#
# Projections: principal components, and the first view of canonical correlations.


@transformed.register
def _(machine: PCA, graph: Graph, x: str) -> str:
    space = machine._subspace
    if isinstance(space, FeatureSubspace):
        away = graph.sub(features(space.features, graph, x), graph.constant(space.mean))
        scores = graph.matmul(away, space.directions)
    elif isinstance(space, PointSubspace):
        K = kernel_values(space.source.expression, graph, x, space.source.X)
        scores = graph.sub(graph.matmul(K, space.coef), graph.constant(space.centre[:-1]))
    elif isinstance(space, MatrixSubspace):
        scores = functions(space.expansion, graph, x)
    else:
        raise OnnxExportError(f"PCA: {type(space).__name__} is not exported")
    stretch = machine._stretch()
    return scores if (stretch == 1.0).all() else graph.scaled(scores, stretch)


@transformed.register
def _(machine: CCA, graph: Graph, x: str) -> str:
    return functions(machine._x.expansion, graph, x)


@exported.register(PCA)
@exported.register(CCA)
def _(machine: PCA | CCA, graph: Graph, x: str) -> list[Output]:
    return [Output("transformed", transformed(machine, graph, x), "transform", np.asarray)]


# --- clustering ----------------------------------------------------------------------------------
#
# Clusterings: k-means in feature space, mixtures of Gaussians.


@exported.register
def _(machine: KMeans, graph: Graph, x: str) -> list[Output]:
    closeness = functions(machine._expansion, graph, x)
    found = [Output(LABELS, largest(graph, closeness), "predict")]
    if machine._own is None:
        return found
    if isinstance(machine._own, KernelDiagonal):
        own = diagonal(machine._own.expression, graph, x)
    else:
        own = squared_lengths(graph, features(machine._own.features, graph, x))
    twice = graph.add(closeness, closeness)
    squared = graph.op("Max", graph.sub(own, twice), graph.number(0.0))
    # squared: the root of a distance near zero has half of its digits
    return [*found, Output("squared_distances", squared, "transform", np.square)]


@exported.register
def _(machine: GaussianMixture, graph: Graph, x: str) -> list[Output]:
    parts, problem = machine._parts, machine._problem
    k, d = parts.means.shape
    roots = problem.shape.roots(parts.covariances, k, d)
    away = graph.sub(x, graph.constant(machine._origin))
    rows = graph.divided(away, machine._scale)
    columns = []
    for mean, root in zip(parts.means, roots, strict=True):
        near = graph.sub(rows, graph.constant(mean))
        flat = root.ndim == 1
        white = graph.scaled(near, root) if flat else graph.matmul(near, root.T)
        columns.append(squared_lengths(graph, white))
    squares = graph.op("Concat", *columns, axis=1) if k > 1 else columns[0]
    joint = graph.add(
        graph.scaled(squares, np.full(k, -0.5)), graph.constant(_constants(parts, roots))
    )
    logs = log_softmax(graph, joint)
    shares = graph.op("Exp", logs)
    density = graph.column(graph.sub(joint, logs), 0)
    return [
        Output(LABELS, largest(graph, shares), "predict"),
        Output("probabilities", shares, "predict_proba"),
        Output(
            "log_density", graph.add(density, graph.number(problem.log_volume)), "score_samples"
        ),
    ]


# --- bayes ---------------------------------------------------------------------------------------
#
# Classifiers by class densities: Gaussians, and naive Bayes of numbers.


@exported.register
def _(machine: GaussianClassifier, graph: Graph, x: str) -> list[Output]:
    spread, prior = machine._spread, machine.prior_
    if not prior.all():
        raise OnnxExportError("GaussianClassifier: a prior of zero is not exported")
    if len(spread.values) < len(prior):
        normals, offsets, centre = planes(spread, prior)
        away = graph.sub(x, graph.constant(centre))
        scores = graph.add(graph.matmul(away, normals.T), graph.constant(offsets))
    else:
        scores = _quadratic(spread, prior, graph, x)
    return posterior(machine, graph, scores)


def _quadratic(spread: Any, prior: Array, graph: Graph, x: str) -> str:
    """Return log P(c) + log N(x; c) with a covariance for each class."""
    columns = []
    width = 1.0 / np.sqrt(spread.values)
    for c, mean in enumerate(spread.mean):
        away = graph.sub(x, graph.constant(mean))
        if spread.vectors is None:
            white = graph.scaled(away, width[c] / spread.scale)
        else:
            turned = spread.vectors[c] * width[c][None, :] / spread.scale[:, None]
            white = graph.matmul(away, turned)
        columns.append(squared_lengths(graph, white))
    d = spread.mean.shape[1]
    volume = np.log(spread.values).sum(axis=1) + 2 * np.log(spread.scale).sum()
    constants = np.log(prior) - 0.5 * (volume + d * np.log(2 * np.pi))
    squares = graph.scaled(graph.op("Concat", *columns, axis=1), np.full(len(prior), -0.5))
    return graph.add(squares, graph.constant(constants))


@exported.register
def _(machine: NaiveBayes, graph: Graph, x: str) -> list[Output]:
    layout, model = machine._layout, machine.solution_.value
    if len(layout.categorical):
        raise OnnxExportError(
            f"NaiveBayes: column {int(layout.categorical[0])} is categorical, which is not "
            "exported; numbers, counts and zeros and ones are"
        )
    if not machine.prior_.all():
        raise OnnxExportError("NaiveBayes: a prior of zero is not exported")
    terms = []
    if len(layout.binary):
        bits, present = _with_gaps(graph, graph.columns(x, layout.binary))
        terms.append(graph.matmul(bits, (model.ones - model.zeros).T))
        terms.append(graph.matmul(present, model.zeros.T))
    if len(layout.count):
        terms.append(graph.matmul(graph.columns(x, layout.count), model.words.T))
    if len(layout.gaussian):
        terms += _bells(graph, graph.columns(x, layout.gaussian), model)
    total = terms[0]
    for term in terms[1:]:
        total = graph.add(total, term)
    return posterior(machine, graph, graph.add(total, graph.constant(model.prior)))


def _with_gaps(graph: Graph, x: str) -> tuple[str, str]:
    """Return columns with zeros for missing entries, and the indicators of present ones."""
    missing = graph.op("IsNaN", x)
    present = graph.op("Cast", graph.op("Not", missing), to=graph.onnx.TensorProto.DOUBLE)
    return graph.where(missing, graph.number(0.0), x), present


def _bells(graph: Graph, x: str, model: Any) -> list[str]:
    """Return the two parts of Gaussian log-densities: squares, and constants of present entries."""
    missing, (_, present) = graph.op("IsNaN", x), _with_gaps(graph, x)
    columns = []
    for mean, variance in zip(model.mean, model.variance, strict=True):
        centre = graph.constant(mean)
        away = graph.sub(graph.where(missing, centre, x), centre)
        columns.append(squared_lengths(graph, graph.scaled(away, 1.0 / np.sqrt(variance))))
    squares = graph.scaled(graph.op("Concat", *columns, axis=1), np.full(len(columns), -0.5))
    constants = graph.matmul(present, -0.5 * np.log(2.0 * np.pi * model.variance).T)
    return [squares, constants]


def posterior(machine: Any, graph: Graph, scores: str) -> list[Output]:
    """Return decision, label and probabilities from the logarithms of p(x, class)."""
    k = len(machine.classes_)
    loss, threshold = rule_of(machine, k)
    decision = _margins(machine, graph, scores, loss, threshold)
    if k == 2:
        chosen = second_if(graph, graph.op("Greater", decision, graph.number(0.0)))
    else:
        chosen = largest(graph, scores if loss is None else decision)
    return [
        Output(LABELS, labels(graph, machine.classes_, chosen), "predict"),
        Output("decision", decision, "decision_function"),
        Output("probabilities", softmax(graph, scores), "predict_proba"),
    ]


def _margins(machine: Any, graph: Graph, scores: str, loss: Any, threshold: float) -> str:
    k = len(machine.classes_)
    if k == 2:
        odds = graph.sub(graph.column(scores, 1), graph.column(scores, 0))
        if loss is not None:
            second, first = loss[1, 0] - loss[0, 0], loss[0, 1] - loss[1, 1]
            if not (second > 0 and first > 0):
                raise OnnxExportError(
                    f"{type(machine).__name__}: a loss by which a right decision costs more than a "
                    "wrong one is not exported"
                )
            threshold = math.log(second) - math.log(first)
        elif not math.isfinite(threshold):
            raise OnnxExportError(f"{type(machine).__name__}: an infinite threshold: not exported")
        return graph.sub(odds, graph.number(threshold))
    if loss is None:
        return log_softmax(graph, scores)
    return graph.op("Neg", graph.matmul(softmax(graph, scores), np.asarray(loss).T))


# --- linear steps --------------------------------------------------------------------------------
#
# Preprocessing steps, and estimators made of estimators: pipelines, tuned ones.


@transformed.register
def _(machine: StandardScaler, graph: Graph, x: str) -> str:
    if machine.with_mean:
        x = graph.sub(x, graph.constant(machine.mean_))
    if machine.with_std:
        x = graph.divided(x, machine.scale_)
    return x


@transformed.register
def _(machine: MinMaxScaler, graph: Graph, x: str) -> str:
    scaled = graph.scaled(x, machine.scale_)
    moved = graph.add(scaled, graph.constant(machine.min_))
    if not machine.clip:
        return moved
    low, high = machine.feature_range
    return graph.op("Clip", moved, graph.number(low), graph.number(high))


@transformed.register
def _(machine: Whiten, graph: Graph, x: str) -> str:
    away = graph.sub(x, graph.constant(machine.mean_))
    return graph.matmul(away, machine.whitening_)


@transformed.register(ICA)
@transformed.register(ProjectionPursuit)
def _(machine: Any, graph: Graph, x: str) -> str:
    away = graph.sub(x, graph.constant(machine.mean_))
    return graph.matmul(away, machine.components_.T)


@transformed.register
def _(machine: LogShift, graph: Graph, x: str) -> str:
    return graph.op("Log", graph.add(x, graph.constant(machine.shift_)))


@exported.register(StandardScaler)
@exported.register(MinMaxScaler)
@exported.register(Whiten)
@exported.register(ICA)
@exported.register(ProjectionPursuit)
@exported.register(LogShift)
def _(machine: Any, graph: Graph, x: str) -> list[Output]:
    return [Output("transformed", transformed(machine, graph, x), "transform")]


@exported.register
def _(machine: Pipeline, graph: Graph, x: str) -> list[Output]:
    *before, (_, last) = machine.steps
    for name, step in before:
        if step in (None, "passthrough"):
            continue
        try:
            x = transformed(step, graph, x)
        except OnnxExportError as error:
            raise OnnxExportError(f"step {name!r}: {error}") from error
    return exported(last, graph, x)


@exported.register(Tuned)
@exported.register(GridSearchCV)
@exported.register(RandomizedSearchCV)
def _(machine: Any, graph: Graph, x: str) -> list[Output]:
    return exported(machine.best_estimator_, graph, x)


def table_answers(model: TableModel, graph: Graph, answers: list[Output]) -> list[Output]:
    """Return the outputs of a table model: classes in its order, and its own threshold."""
    if model.task == "regression":
        return answers
    own = np.asarray(model.pipeline.classes_).tolist()
    order = [own.index(label) for label in model.classes]
    named = {answer.name: answer for answer in answers}
    values = {name: answer.value for name, answer in named.items()}
    if order != sorted(order):
        if len(order) == 2:
            values["decision"] = graph.op("Neg", values["decision"])
        else:
            values["decision"] = graph.columns(values["decision"], order)
        if "probabilities" in values:
            values["probabilities"] = graph.columns(values["probabilities"], order)
    if model.threshold is not None:
        over = graph.op("GreaterOrEqual", values["decision"], graph.number(model.threshold))
        values[LABELS] = labels(graph, np.asarray(model.classes), second_if(graph, over))
    return [replace(answer, value=values[answer.name]) for answer in answers]


def last_of(machine: Any) -> tuple[Any, list[Any]]:
    """Return the final estimator of pipelines and searches, and the steps before it."""
    if isinstance(machine, TableModel):
        return last_of(machine.pipeline)
    if isinstance(machine, Tuned | GridSearchCV | RandomizedSearchCV):
        return last_of(machine.best_estimator_)
    if isinstance(machine, Pipeline):
        if machine.steps[-1][1] in (None, "passthrough"):
            raise OnnxExportError(
                "a pipeline that ends in 'passthrough' has no estimator to export"
            )
        steps = [step for _, step in machine.steps[:-1] if step not in (None, "passthrough")]
        last, more = last_of(machine.steps[-1][1])
        return last, steps + more
    return machine, []


def through(steps: list[Any], X: Any) -> Any:
    """Send rows through fitted steps."""
    for step in steps:
        X = to_dense(step.transform(X))
    return X


# --- drop ins ------------------------------------------------------------------------------------
#
# Drop-ins for scikit-learn's classes: results of the inner estimator under their public names.


@exported.register(KernelPCA)
@exported.register(CompatKernelRidge)
@exported.register(CompatKMeans)
@exported.register(CompatLogisticRegression)
def _(machine: Any, graph: Graph, x: str) -> list[Output]:
    answers = exported(machine.machine_, graph, x)
    return [answer for answer in answers if hasattr(machine, answer.method)]


@exported.register
def _(machine: QuadraticDiscriminantAnalysis, graph: Graph, x: str) -> list[Output]:
    answers = exported(machine.machine_, graph, x)
    if len(machine.classes_) == 2:
        return answers
    # of more classes scikit-learn's values are log-densities, not log-probabilities
    return [answer for answer in answers if answer.name != "decision"]


@transformed.register
def _(machine: KernelPCA, graph: Graph, x: str) -> str:
    return transformed(machine.machine_, graph, x)


@exported.register
def _(machine: LinearSVC, graph: Graph, x: str) -> list[Output]:
    scores = _linear(machine, graph, x)
    if len(machine.classes_) == 2:
        scores = graph.column(scores, 0)
        chosen = second_if(graph, graph.op("Greater", scores, graph.number(0.0)))
    else:
        chosen = largest(graph, scores)
    return [
        Output(LABELS, labels(graph, machine.classes_, chosen), "predict"),
        Output("decision", scores, "decision_function"),
    ]


@exported.register
def _(machine: LinearSVR, graph: Graph, x: str) -> list[Output]:
    return [Output("prediction", graph.column(_linear(machine, graph, x), 0), "predict")]


def _linear(machine: Any, graph: Graph, x: str) -> str:
    """Return x'w + b of each column of weights."""
    constants = np.broadcast_to(machine.intercept_, (np.atleast_2d(machine.coef_).shape[0],))
    values = graph.matmul(x, np.atleast_2d(machine.coef_).T)
    return graph.add(values, graph.constant(np.array(constants)))
