"""Every stored form of an answer is judged: each of its fields, wrong by a thousandth or by all.

`WITHIN` lists what a certificate lets pass, and why: nothing else may.
"""

import re
from dataclasses import fields, replace
from functools import cache, partial

import numpy as np
import pytest
from scipy import sparse

from mercer import certify
from mercer.gram import CenteredGram, Need, PartGram, PrecomputedGram, centered, make_gram
from mercer.kernels import Gaussian, Linear
from mercer.machines.mixture.em_loop import EM
from mercer.machines.mixture.gaussian_em_steps import Full
from mercer.machines.svm import problem as svm
from mercer.problems import (
    BernoulliMix,
    ClassMeans,
    Correlation,
    Discriminant,
    Duals,
    Eigenproblem,
    Expectations,
    GaussianClasses,
    GaussianMix,
    KernelAlignment,
    KernelCombination,
    LatentGaussian,
    LinearSystem,
    LogLoss,
    Many,
    MinimumCut,
    MultinomialMix,
    ProcessClassification,
    ProcessRegression,
    RidgePath,
    Scaling,
    Scatter,
    Separation,
    SmoothRisk,
    SquaredLoss,
    TanhLoss,
    TaskRegression,
    TiedBernoulliMix,
    TopicMix,
)
from mercer.solvers import SMO, Watch, solve

pytestmark = pytest.mark.numerics

rng = np.random.default_rng(0)
n = 60
X = rng.standard_normal((n, 4)) + 1.0
codes = (X @ [1.0, -1.0, 0.5, 0.0] + 0.5 * rng.standard_normal(n) > 0.5).astype(int)
three = np.argsort(np.argsort(X[:, 0])) * 3 // n
y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n) + 2.0
ones = np.ones(n)
counts = rng.poisson(2.0, (n, 6)).astype(float) + 3 * (np.arange(6) % 3 == three[:, None])
blobs = rng.standard_normal((300, 2)) + 4.0 * (np.arange(300) % 3)[:, None]


def dense():
    return make_gram(Gaussian(1.5), X, Need.MATRIX)


def factored():
    return make_gram(Linear(), X, Need.PRODUCTS)


def scatter():
    means = np.stack([X[three == c].mean(axis=0) for c in range(3)])
    left = [X[three == c] - means[c] for c in range(3)]
    return Scatter(np.bincount(three).astype(float), means, np.stack([r.T @ r for r in left]))


def pairs(gram):
    index = [np.flatnonzero(three != c) for c in range(3)]
    signs = [np.where(three[i] == three[i].min(), 1.0, -1.0) for i in index]
    parts = zip(index, signs, strict=True)
    return Many(tuple(svm.svc(PartGram(gram, i), s, np.full(len(i), 2.0)) for i, s in parts))


def risk(gram, loss, classes=codes):
    return SmoothRisk(gram, classes, int(classes.max()) + 1, ones, 0.7, loss, True)


def correlation(kind, penalty):
    first, second = centered(kind(X[:, :2])), centered(kind(X[:, 1:]))
    return Correlation(first, second, 2, (penalty, penalty))


def features(rows):
    return make_gram(Linear(), rows, Need.PRODUCTS)


def rows(points):
    return make_gram(Gaussian(1.5), points, Need.MATRIX)


signs = np.where(codes == 1, 1.0, -1.0)
both, shared = np.column_stack([y, X[:, 1]]), np.array([[1.0, 0.4], [0.4, 0.7]])
gaps = np.where(np.arange(2 * n).reshape(n, 2) % 5 == 0, np.nan, both)
far = np.where(codes[:, None] == 1, X + 4.0, X - 4.0)
CASES = {
    "ridge": LinearSystem(dense(), np.column_stack([y, X[:, 1]]), np.array([0.1, 1.0]), ones, True),
    "ridge, features": LinearSystem(factored(), y[:, None], np.array([0.5]), ones, True),
    "ridge, features, no penalty": LinearSystem(factored(), y[:, None], np.zeros(1), ones, True),
    "path": RidgePath(dense(), y[:, None], ones, np.logspace(-3, 1, 5), True),
    "path, features": RidgePath(factored(), y[:, None], ones, np.logspace(-3, 1, 5), True),
    "svc": svm.svc(dense(), signs, np.full(n, 3.0)),
    "svc, squared slack": svm.svc_l2(dense(), signs, np.full(n, 3.0)),
    "svc, three classes": pairs(dense()),
    "logistic": risk(dense(), LogLoss()),
    "logistic, features": risk(factored(), LogLoss()),
    "logistic, three classes": risk(factored(), LogLoss(), three),
    "squared loss": risk(factored(), SquaredLoss()),
    "tanh loss": risk(factored(), TanhLoss()),
    "eigen": Eigenproblem(CenteredGram(dense()), 3),
    "correlation": correlation(rows, 0.5),
    "correlation, features": correlation(features, 0.5),
    "correlation, features, no penalty": correlation(features, 0.0),
    "discriminant": Discriminant(dense(), three, ones / n, np.bincount(three) / n, 0.01, 2),
    "discriminant, features": Discriminant(
        factored(), three, ones / n, np.bincount(three) / n, 0.01, 2
    ),
    "means": ClassMeans(dense(), three, ones, 3),
    "separation, features": Separation(features(far), codes, 2, True),
    "scaling": Scaling(dense()),
    "gaussian mixture": GaussianMix(blobs, np.ones(300), 3, Full(), 1e-6),
    "bernoulli mixture": BernoulliMix((counts > 3).astype(float), ones, 2),
    "tied bernoulli mixture": TiedBernoulliMix(
        (counts > 4 * codes[:, None]).astype(float), ones, 2
    ),
    "multinomial mixture": MultinomialMix(counts, ones, 3),
    "topics": TopicMix(sparse.csr_array(counts), ones, 2, 0.5, 0.5),
    "entropy": Expectations(np.arange(6.0)[:, None], np.array([3.2]), np.full(6, 1 / 6)),
    "plane": LatentGaussian(X, ones, 2, 1e-9),
    "gaussian classes": GaussianClasses(scatter(), False, False, 1e-9, False),
    "combination": KernelCombination(
        (dense(), factored()), np.ones(2), partial(svm.svc, signs=signs, C=np.full(n, 2.0))
    ),
    "alignment": KernelAlignment((dense(), factored()), np.ones(2), signs[:, None], ones),
    "process": ProcessRegression(dense(), y[:, None], 0.1, ones, True),
    "process, features": ProcessRegression(factored(), y[:, None], 0.1, ones, True),
    "process of classes": ProcessClassification(dense(), signs[:, None], ones),
    "process of classes, features": ProcessClassification(factored(), signs[:, None], ones),
    "tasks": TaskRegression(dense(), both, shared, 0.1, ones),
    "tasks, gaps": TaskRegression(dense(), gaps, shared, 0.1, ones),
    "tasks, features": TaskRegression(factored(), both, shared, 0.1, ones),
    "tasks, features, gaps": TaskRegression(factored(), gaps, shared, 0.1, ones),
    "cut": MinimumCut(PrecomputedGram(np.exp(-np.square(X[:8, None] - X[None, :8]).sum(-1)))),
}
# A support vector machine and a mixture are solved to a tolerance, 1e-3 and 1e-6 by default, within
# which a thousandth of a coefficient may lie: they are judged here after they were solved better.
SHARP = {name: (SMO(tol=1e-8), 1e-6) for name in CASES if name.startswith("svc")}
SHARP |= {
    name: (EM(tol=1e-12, max_iter=5000), 1e-10)
    for name in CASES
    if "mixture" in name or name == "topics"
}
# fields that tell of the way there, are counts, or are tested by themselves below
RECORDS = {"likelihoods", "traces", "log", "labels", "best", "index", "mistakes", "forgotten"}
RECORDS |= {"rank_x", "rank_y", "bound", "direction", "parts", "duals"}
DISTRIBUTIONS = {"shares", "probabilities", "proportions", "table"}
# Any function that keeps classes apart is an answer, whatever its length; of the average over the
# steps nothing can be said without them.
WITHIN = {
    ("separation, features", field)
    for field in ("weights", "intercept", "mean_weights", "mean_intercept")
}


@cache
def answered(name):
    solver, tol = SHARP.get(name, (None, None))
    return solve(CASES[name], solver).value, tol


def named_parts(value):
    """Return each array or number of an answer, by name, and what puts another in its place."""
    if isinstance(value, Duals):
        for k, part in enumerate(value.parts):
            for name, held, put in named_parts(part):
                yield f"{name} {k}", held, lambda x, put=put, k=k: _with_part(value, k, put(x))
        return
    for field in fields(value):
        held = getattr(value, field.name)
        if field.name not in RECORDS and held is not None and np.size(held):
            yield field.name, held, lambda x, name=field.name: replace(value, **{name: x})


def _with_part(value, k, part):
    return Duals(tuple(part if i == k else held for i, held in enumerate(value.parts)))


def spoilt(name, held, share):
    """Return wrong values: all scaled, and each changed by itself."""
    x = np.asarray(held, dtype=float)
    turn = np.random.default_rng(1).choice([-1.0, 1.0], x.shape)
    moved = x * (1 + share * turn)
    if name.split()[0] not in DISTRIBUTIONS:
        found = [x * (1 + share), moved]
    elif x.ndim == 2 and not np.allclose(x.sum(axis=1), 1.0):  # chances of heads
        found = [np.clip(moved, 0, 1)]
    else:  # still distributions: they must not be found out by their sums
        moved = np.abs(moved) + 1e-3 * share
        found = [moved / moved.sum(axis=-1, keepdims=True)]
    return found if np.ndim(held) else [float(v) for v in found]


@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_certified(name):
    value, tol = answered(name)
    assert certify(CASES[name], value, tol).ok


def figures_below_zero(statement):
    """Find negative distances in words; the logarithm of a likelihood is none."""
    return re.findall(r"(?<![\w.])-\d\S*", re.sub(r"log-likelihood -\S+", "", statement))


@pytest.mark.parametrize("name", CASES)
def test_no_sentence_speaks_of_a_negative_distance(name):
    value, tol = answered(name)
    assert not figures_below_zero(certify(CASES[name], value, tol).statement)


def test_rounding_below_zero_is_not_put_in_words():
    draw, gaps, gains = np.random.default_rng(3), [], []
    for _ in range(30):
        points = draw.standard_normal((8, 2))
        asked = Expectations(
            points, draw.dirichlet(np.ones(8)) @ points, draw.dirichlet(np.ones(8))
        )
        found = certify(asked, solve(asked).value)
        gaps.append(found.quantities.gap)
        assert not figures_below_zero(found.statement)
        rows = draw.standard_normal((40, 2)) + 5.0 * (np.arange(40) % 2)[:, None]
        mix = GaussianMix(rows, np.ones(40), 2, Full(), 1e-6)
        found = certify(mix, EM(tol=1e-15, max_iter=2000).run(mix, Watch()).value)
        gains.append(found.quantities.step_gain)
        assert not figures_below_zero(found.statement)
    assert min(gaps) < 0 or min(gains) < 0, "these answers are as good as rounding lets them be"


@pytest.mark.parametrize("share", [1e-3, 1.0])
@pytest.mark.parametrize("name", CASES)
def test_every_form_is_judged(name, share):
    value, tol = answered(name)
    looked_at = 0
    for field, held, put in named_parts(value):
        for wrong in spoilt(field, held, share):
            with np.errstate(all="ignore"):
                judged = certify(CASES[name], put(wrong), tol)
            looked_at += 1
            assert judged.ok == ((name, field) in WITHIN), (field, judged)
    assert looked_at or name == "combination"


@pytest.mark.parametrize("name", CASES)
def test_no_nan_is_certified(name):
    value, tol = answered(name)
    for field, held, put in named_parts(value):
        for place in {0, np.size(held) // 2, np.size(held) - 1}:
            wrong = np.array(held, dtype=float)
            wrong.flat[place] = np.nan
            with np.errstate(all="ignore"):
                judged = certify(CASES[name], put(wrong if np.ndim(held) else np.nan), tol)
            assert not judged.ok, (field, place, judged)


def test_both_forms_of_a_direction_are_judged():
    problem = CASES["discriminant, features"]
    value, _ = answered("discriminant, features")
    coef = np.linalg.pinv(problem.gram.factor.T) @ value.weights
    assert certify(problem, replace(value, coef=coef)).ok
    assert not certify(problem, replace(value, coef=1.001 * coef)).ok


def test_a_separator_that_does_not_is_not_certified():
    problem, (value, _) = CASES["separation, features"], answered("separation, features")
    assert not certify(problem, replace(value, weights=-value.weights)).ok
    coef = np.linalg.pinv(problem.gram.factor.T) @ value.weights
    assert certify(problem, replace(value, coef=coef)).ok
    assert not certify(problem, replace(value, coef=1.001 * coef)).ok
    wrong = replace(
        value, mean_coef=1.001 * np.linalg.pinv(problem.gram.factor.T) @ value.mean_weights
    )
    assert not certify(problem, wrong).ok


@pytest.mark.parametrize("share", [1e-3, 1.0])
def test_weights_and_machines_of_a_combination_are_judged(share):
    problem, (value, _) = CASES["combination"], answered("combination")
    dual = value.duals.parts[0]
    moved = value.weights + share * np.array([1.0, -1.0]) * value.weights[1]
    wrong = [
        replace(value, duals=Duals((replace(dual, coef=(1 + share) * dual.coef),))),
        replace(value, duals=Duals((replace(dual, intercept=dual.intercept + share),))),
        replace(value, weights=(1 + share) * value.weights),
        replace(value, weights=moved),
    ]
    judged = [certify(problem, one, 1e-6).ok for one in wrong]
    assert not any(judged[:3])
    assert share < 1 or not judged[3]  # of weights that add up to one a thousandth may be allowed


def test_forms_that_are_not_there_are_not_judged():
    problem, (value, _) = CASES["ridge, features"], answered("ridge, features")
    assert certify(problem, replace(value, coef=np.empty((0, 1)))).ok
    assert certify(problem, replace(value, weights=None)).ok


def test_a_tiny_penalty_does_not_blame_rounding_on_the_coefficients():
    for penalty in (1e-6, 1e-9, 1e-12, 1e-15, 0.0):
        problem = LinearSystem(factored(), y[:, None], np.array([penalty]), ones, True)
        assert certify(problem, solve(problem).value).ok, penalty
    exact = LinearSystem(factored(), X[:, :1], np.array([1e-10]), ones, False)
    assert certify(exact, solve(exact).value).ok


def test_columns_of_any_scale_do_not_blame_rounding_on_the_coefficients():
    wide = X * [1.0, 1e6, 1e-6, 1e3]
    views = centered(features(wide)), centered(features(X[:, :2]))
    problem = Correlation(*views, 2, (0.0, 0.0))
    assert certify(problem, solve(problem).value).ok


def test_a_plane_without_noise_is_no_error():
    value, _ = answered("plane")
    for noise in (0.0, -1.0, np.nan, np.inf):
        assert not certify(CASES["plane"], replace(value, noise=noise)).ok
    assert not certify(CASES["plane"], replace(value, loadings=value.loadings[:, :1])).ok
