"""ICA and ProjectionPursuit against known sources, scikit-learn's FastICA and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import kurtosis
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from mercer import ICA, ParameterError, ProjectionPursuit, certify
from mercer.machines.decomposition.ica_fixed_point import (
    joint_curvature,
    joint_moments,
    single_curvature,
    single_moments,
    tangent_basis,
)
from mercer.problems import CONTRASTS, IndependentComponents, Unmixing
from mercer.solvers import FixedPointICA, SolverError, solve

pytestmark = pytest.mark.numerics

FUNS = tuple(CONTRASTS)
A = np.array([[1.0, 0.4, -0.3], [0.2, 1.0, 0.5], [0.7, -0.2, 1.0]])


def sources(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [rng.uniform(-1, 1, n), rng.laplace(size=n), rng.choice([-1.0, 1.0], n, p=[0.4, 0.6])]
    )


X = sources() @ A.T + [3.0, -1.0, 0.5]


def rotated(angle):
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


@pytest.mark.parametrize("contrast", FUNS)
@pytest.mark.parametrize("algorithm", ["parallel", "deflation"])
def test_known_sources_are_unmixed(contrast, algorithm):
    machine = ICA(contrast=contrast, algorithm=algorithm).fit(X)
    # kurtosis, which a few rows decide, needs more of them than the others
    assert machine.amari_index(A) < (0.1 if contrast == "cube" else 0.03)
    assert machine.solution_.status.ok
    assert machine.certificate_.ok, machine.certificate_
    Y = machine.transform(X)
    assert np.allclose(Y.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(Y.T @ Y / len(Y), np.eye(3), atol=1e-12)
    assert np.allclose(machine.inverse_transform(Y), X)
    assert np.allclose(machine.mixing_, np.linalg.inv(machine.components_))


@pytest.mark.parametrize("contrast", FUNS)
def test_the_answer_is_a_fixed_point_of_fast_ica(contrast):
    machine = ICA(contrast=contrast).fit(X)
    options = {"fun": contrast, "tol": 1e-13, "max_iter": 2000, "random_state": 0}
    other = FastICA(whiten="unit-variance", **options).fit(X)
    P = np.abs(machine.components_ @ other.mixing_)
    assert np.allclose(np.sort(P, axis=1), [0.0, 0.0, 1.0], atol=1e-6)
    # and by its own step: orthonormalised E[g(y) y'] - E[g'(y)] leaves every direction in place
    Y = machine.transform(X)
    g, slope = CONTRASTS[contrast].slopes(Y)
    U, _, Vt = np.linalg.svd(g.T @ Y / len(Y) - np.diag(slope.mean(axis=0)))
    assert np.allclose(np.abs(U @ Vt), np.eye(3), atol=1e-6)


def test_order_and_signs_do_not_depend_on_the_start():
    one, two = ICA(random_state=1).fit(X), ICA(random_state=2).fit(X[::-1])
    assert np.allclose(one.components_, two.components_, atol=1e-6)
    assert (np.diff(one.non_gaussianity_) <= 0).all()
    Y = one.transform(X)
    assert (Y[np.abs(Y).argmax(axis=0), range(3)] > 0).all()


@pytest.mark.parametrize("contrast", FUNS)
def test_two_columns_by_brute_force(contrast):
    Z = X[:, :2] - X[:, :2].mean(axis=0)
    values, vectors = np.linalg.eigh(Z.T @ Z / len(Z))
    Z = Z @ (vectors / np.sqrt(values))
    G, gaussian = CONTRASTS[contrast].value, CONTRASTS[contrast].gaussian
    angles = np.linspace(0, np.pi, 3001)
    heights = [abs(G(Z @ [np.cos(t), np.sin(t)]).mean() - gaussian) for t in angles]
    found = ProjectionPursuit(1, contrast=contrast).fit(X[:, :2])
    assert found.non_gaussianity_[0] == pytest.approx(max(heights), rel=1e-4)


def test_derivatives_by_differences():
    rng = np.random.default_rng(3)
    Z, share = rng.laplace(size=(60, 3)), rng.dirichlet(np.ones(60))
    for contrast in CONTRASTS.values():
        at = joint_moments(Z, share, contrast)
        H, step = joint_curvature(Z, share, contrast, at), 1e-4

        def height(t, contrast=contrast, s=at.signs):
            M = np.zeros((3, 3))
            M[np.triu_indices(3, 1)] = t
            M = M - M.T
            turn = np.eye(3) + M + M @ M / 2 + M @ M @ M / 6
            return s @ (share @ contrast.value(Z @ turn.T))

        e = step * np.eye(3)
        slope = [(height(e[i]) - height(-e[i])) / (2 * step) for i in range(3)]
        assert np.allclose(slope, at.slope[np.triu_indices(3, 1)], atol=1e-6)
        second = [
            [
                (height(a + b) - height(a - b) - height(b - a) + height(-a - b)) / (4 * step**2)
                for a in e
            ]
            for b in e
        ]
        assert np.allclose(second, H, atol=1e-4)
        b = np.array([0.6, 0.8, 0.0])
        one = single_moments(Z, b, share, contrast)
        tangent, curve = tangent_basis(b), single_curvature(Z, b, share, contrast, one)
        for i in range(2):
            ways = [np.cos(t) * b + np.sin(t) * tangent[:, i] for t in (-step, 0.0, step)]
            low, mid, high = (one.sign * share @ contrast.value(Z @ w) for w in ways)
            assert (high - low) / (2 * step) == pytest.approx(
                tangent[:, i] @ one.slope(b), abs=1e-6
            )
            assert (high - 2 * mid + low) / step**2 == pytest.approx(curve[i, i], abs=1e-4)


def test_pursuit_finds_groups_where_variance_is_least():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 5)) * [9.0, 7.0, 5.0, 3.0, 0.2]
    rows[:, 4] += rng.choice([-1.0, 1.0], 400)
    Q = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    machine = ProjectionPursuit(2, contrast="cube").fit(rows @ Q)
    direction = Q.T @ (machine.components_[0] / np.linalg.norm(machine.components_[0]))
    assert np.allclose(machine.mixing_.T @ machine.components_.T, np.eye(2), atol=1e-10)
    assert machine.certificate_.ok
    assert abs((rows @ Q @ machine.components_[0]) @ rows[:, 4]) > 0.9 * np.linalg.norm(
        rows @ Q @ machine.components_[0]
    ) * np.linalg.norm(rows[:, 4])
    assert direction.shape == (5,)
    Y = machine.transform(rows @ Q)
    assert np.abs(kurtosis(Y)) / 4 == pytest.approx(machine.non_gaussianity_)
    assert machine.non_gaussianity_[0] > machine.non_gaussianity_[1]


def test_fewer_components_are_those_of_the_leading_principal_ones():
    machine = ICA(2).fit(X)
    centred = X - X.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:2]
    assert np.allclose(machine.components_ @ axes.T @ axes, machine.components_)
    assert np.allclose(machine.inverse_transform(machine.transform(X)) - X.mean(axis=0),
                       centred @ axes.T @ axes)  # fmt: skip
    assert machine.certificate_.ok


def test_weights_are_repetitions_and_sparse_rows_the_same():
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 3, 200)
    one = ICA().fit(X[:200], sample_weight=weights)
    two = ICA().fit(np.repeat(X[:200], weights, axis=0))
    assert np.array_equal(one.components_, two.components_)
    thin = np.where(np.abs(X) > 1, X, 0.0)
    full, csr = ICA().fit(thin), ICA().fit(sparse.csr_array(thin))
    assert np.allclose(full.components_, csr.components_, atol=1e-6)
    assert csr.certificate_.ok
    assert np.allclose(csr.transform(sparse.csr_array(thin)), full.transform(thin), atol=1e-6)


def test_wrong_answers_are_not_certified():
    machine = ICA().fit(X)
    weights = np.ones(len(X))
    problem = IndependentComponents(X, weights, 3, CONTRASTS["logcosh"], True, 3)
    mean, W = machine.mean_, machine.components_
    assert certify(problem, Unmixing(mean, W)).ok
    turn = np.eye(3)
    turn[:2, :2] = rotated(1e-3)
    assert "still rises" in certify(problem, Unmixing(mean, turn @ W)).statement
    turn[:2, :2] = rotated(np.pi / 4)
    assert not certify(problem, Unmixing(mean, turn @ W)).ok
    assert "not white" in certify(problem, Unmixing(mean, 1.001 * W)).statement
    assert not certify(problem, Unmixing(mean + 0.1, W)).ok
    assert not certify(problem, Unmixing(mean, W[:2])).ok
    minor = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    white = (minor[2] / minor[1][:, None] * np.sqrt(len(X)))[1:]  # not the leading two
    two = IndependentComponents(X, weights, 2, CONTRASTS["logcosh"], False, 2)
    assert certify(two, Unmixing(mean, white)).quantities.outside > 0.1


def test_a_saddle_is_no_answer():
    # four corners and their centre: by symmetry the axes are stationary, the diagonals are maxima
    corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    problem = IndependentComponents(corners, np.ones(4), 2, CONTRASTS["cube"], True, 2)
    signs = {certify(problem, Unmixing(np.zeros(2), rotated(t))).ok for t in (0.0, np.pi / 4)}
    assert signs == {True, False}
    assert solve(problem).status.ok
    assert certify(problem, solve(problem).value).ok


def test_endings_are_honest():
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        machine = ICA(max_iter=1, n_init=1).fit(X)
    assert not machine.converged_
    assert not machine.certificate_.ok
    with pytest.warns(ConvergenceWarning, match="callback"):
        ICA(callback=lambda progress: True).fit(X)
    noise = np.random.default_rng(5).normal(size=(30, 6))  # no sources at all: still a maximum
    for machine in (ICA(), ICA(algorithm="deflation"), ProjectionPursuit(3)):
        assert machine.fit(noise).certificate_.ok


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_units_do_not_matter(scale):
    near, far = ICA().fit(X), ICA().fit(X * scale)
    assert np.allclose(near.components_, far.components_ * scale, atol=1e-6)
    assert far.certificate_.ok


def test_far_rows_constant_columns_and_dependent_ones():
    shifted = ICA().fit(X + 1e7)
    assert shifted.certificate_.ok
    assert np.allclose(shifted.components_, ICA().fit(X).components_, atol=1e-5)
    wide = np.column_stack([X, np.full(len(X), 0.1), X[:, 0] - X[:, 1]])
    machine = ICA().fit(wide)
    assert machine.n_components_ == 3
    assert machine.certificate_.ok
    assert np.allclose(machine.inverse_transform(machine.transform(wide)), wide)


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (ICA(4), "n_components=4 must be at most 3"),
        (ProjectionPursuit(4), "n_components=4 must be at most 3"),
        (ICA(contrast="tanh"), "contrast='tanh' must be 'logcosh' or"),
        (ICA(algorithm="symmetric"), "algorithm"),
        (ICA(tol=0.0), "tol"),
        (ICA(n_init=0), "n_init"),
        (ProjectionPursuit(None), "n_components"),
    ],
)
def test_refusals(machine, message):
    with pytest.raises(ParameterError, match=message):
        machine.fit(X)


def test_more_refusals():
    with pytest.raises(ValueError, match="all are equal"):
        ICA().fit(np.full((5, 2), 0.1))
    with pytest.raises(TypeError, match="it is called contrast"):
        ICA(fun="logcosh")
    with pytest.raises(ValueError, match="end of float64"):
        ICA().fit(X * 1e290)
    with pytest.raises(ParameterError, match="mixing has shape"):
        ICA().fit(X).amari_index(np.eye(2))
    problem = IndependentComponents(X, np.ones(len(X)), 3, CONTRASTS["exp"], True, 3)
    with pytest.raises(SolverError, match="white rows"):
        solve(problem, FixedPointICA())
    with pytest.raises(ValueError, match="span their space"):
        IndependentComponents(X, np.ones(len(X)), 2, CONTRASTS["exp"], True, 3)
