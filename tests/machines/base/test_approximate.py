"""The parameter `approximation`: the same machines over exact and over factored Grams."""

import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import (
    CCA,
    PCA,
    SVC,
    SVR,
    FisherDiscriminant,
    GaussianProcess,
    GaussianProcessClassifier,
    KernelRidge,
    KMeans,
    LogisticRegression,
    MemoryBudgetError,
    MultiTaskGaussianProcess,
    NearestMean,
    NearestNeighbors,
    OneClassSVM,
    Perceptron,
    SpectralClustering,
)
from mercer.approximation import (
    ApproximateKernel,
    ApproximationError,
    Nystrom,
    RandomFeatures,
)
from mercer.approximation.nystrom import RULES
from mercer.certificates import certify
from mercer.data import Table
from mercer.gram import Need, make_gram
from mercer.gram.factored import StreamedGram
from mercer.kernels import Gaussian, Linear, Matern, Polynomial, Spectrum, Subsequence
from mercer.machines import ApproximationWarning
from mercer.machines.base.parameters import ParameterError
from mercer.problems import ProcessClassification, TaskRegression

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(80, 2))
labels = np.where(X[:, 0] ** 2 + X[:, 1] > 1, "in", "out")
y = np.sin(X[:, 0]) + X[:, 1]
NEW = rng.uniform(-2, 2, size=(15, 2))
ROUGH = Matern(0.5, 1.0)  # of full rank on the rows: with all of them for landmarks it is exact

SEVERAL = np.column_stack([y, y**2, X[:, 0]])
GAPS = np.where(rng.uniform(size=SEVERAL.shape) < 0.3, np.nan, SEVERAL)
TASKS = [[1.0, 0.5, 0.2], [0.5, 2.0, 0.0], [0.2, 0.0, 0.5]]

# name: machine, targets, what it answers for new rows
MACHINES = {
    "SVC": (SVC(C=2.0, tol=1e-8), labels, "decision_function"),
    "SVC l2": (SVC(C=2.0, slack="l2", tol=1e-8), labels, "decision_function"),
    "SVC nu": (SVC(nu=0.3, tol=1e-8), labels, "decision_function"),
    "SVR": (SVR(C=2.0, tol=1e-8), y, "predict"),
    "OneClassSVM": (OneClassSVM(nu=0.3, tol=1e-8), None, "decision_function"),
    "KernelRidge": (KernelRidge(0.1), y, "predict"),
    "KernelRidge loo": (KernelRidge("loo", penalties=[0.01, 0.1, 1.0]), y, "predict"),
    "LogisticRegression": (LogisticRegression(penalty=0.1), labels, "decision_function"),
    "GaussianProcess": (GaussianProcess(noise=0.1), y, "predict"),
    "GaussianProcessClassifier": (GaussianProcessClassifier(), labels, "predict"),
    "MultiTaskGaussianProcess": (MultiTaskGaussianProcess(noise=0.1), y, "predict"),
    "MultiTaskGaussianProcess, three": (
        MultiTaskGaussianProcess(task_covariance=TASKS, noise=0.1),
        SEVERAL,
        "predict",
    ),
    "MultiTaskGaussianProcess, gaps": (
        MultiTaskGaussianProcess(task_covariance=TASKS, noise=0.1),
        GAPS,
        "predict",
    ),
    "PCA": (PCA(3), None, "transform"),
    "FisherDiscriminant": (FisherDiscriminant(penalty=0.1), labels, "decision_function"),
    "NearestMean": (NearestMean(), labels, "decision_function"),
    "NearestNeighbors": (NearestNeighbors(3), labels, "predict"),
    "KMeans": (KMeans(3, random_state=0), None, "predict"),
    "SpectralClustering": (SpectralClustering(2), None, "transform"),
    "Perceptron": (Perceptron(), labels, "decision_function"),
}


def fitted(name, kernel, approximation, rows=X):
    machine, targets, _ = MACHINES[name]
    return clone(machine).set_params(kernel=kernel, approximation=approximation).fit(rows, targets)


def answers(name, machine, rows=NEW):
    return np.asarray(getattr(machine, MACHINES[name][2])(rows))


@pytest.mark.parametrize("name", MACHINES)
def test_all_rows_for_landmarks_are_the_exact_kernel(name):
    exact, machine = (fitted(name, ROUGH, how) for how in (None, Nystrom(80)))
    assert isinstance(machine.kernel_, ApproximateKernel)
    assert machine.approximation_error_.value < 1e-9
    expected, found = answers(name, exact), answers(name, machine)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    else:
        assert (found == expected).all()
    if hasattr(exact, "loo_residuals_"):
        np.testing.assert_allclose(machine.loo_residuals_, exact.loo_residuals_, atol=1e-8)


@pytest.mark.parametrize("how", [RandomFeatures(24), Nystrom(20)], ids=["random", "landmarks"])
@pytest.mark.parametrize("name", sorted(MACHINES.keys() - {"SpectralClustering", "KMeans"}))
def test_features_for_a_kernel_are_the_linear_kernel_on_features(name, how):
    """Another storage of K, and the same answer; the certificate says which problem it is of."""
    machine = fitted(name, Gaussian(1.0), how)
    phi = machine.kernel_.phi
    plain = fitted(name, Linear(), None, phi(X))
    expected, found = answers(name, plain, phi(NEW)), answers(name, machine)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    else:
        assert (found == expected).all()
    assert machine.certificate_.ok == plain.certificate_.ok
    assert repr(how) in machine.certificate_.statement
    assert "in place of Gaussian(scale=1.0)" in machine.certificate_.statement


def test_clusters_of_features():
    machine = fitted("KMeans", Gaussian(1.0), RandomFeatures(24))
    F = machine.kernel_.phi(X)
    means = np.array([F[machine.labels_ == c].mean(axis=0) for c in range(3)])
    distances = np.square(F[:, None] - means).sum(axis=2)
    assert (distances.argmin(axis=1) == machine.labels_).all()
    np.testing.assert_allclose(machine.inertia_, distances.min(axis=1).sum(), rtol=1e-9)


@pytest.mark.parametrize("normalization", ["normalized", "ratio", "doubly_stochastic", "plain"])
def test_cuts_of_features(normalization):
    """Degrees are F F'1, though single entries of F F' may be below zero."""
    groups = np.vstack([X, X + 9.0])
    for how in (Nystrom(30), Nystrom(30, "uniform")):
        machine = SpectralClustering(
            2, Gaussian(1.0), approximation=how, normalization=normalization
        ).fit(groups)
        F = machine.kernel_.phi(groups)
        np.testing.assert_allclose(machine.degrees_, F @ F.sum(axis=0), rtol=1e-9)
        assert machine.certificate_.ok
        assert len(set(machine.labels_[:80])) == len(set(machine.labels_[80:])) == 1


def test_both_views():
    second = np.column_stack([np.sin(X[:, 0]), rng.standard_normal(80)])
    options = {"kernel_x": ROUGH, "kernel_y": ROUGH, "penalty": 0.1}
    exact = CCA(**options, approximation=None).fit(X, second)
    machine = CCA(**options, approximation=Nystrom(80)).fit(X, second)
    np.testing.assert_allclose(machine.correlations_, exact.correlations_, atol=1e-7)
    few = CCA(**options, approximation="nystrom:10").fit(X, second)
    assert few.certificate_.ok
    assert few.certificate_.statement.count("10 features") == 2
    assert few.approximation_error_x_.value > few.approximation_error_y_.value * 0


def test_processes_are_not_sure_far_from_landmarks():
    """The variance that landmarks leave out is added: with all rows, the exact one comes back."""
    exact = GaussianProcess(ROUGH, noise=0.1).fit(X, y)
    far = np.vstack([NEW, 50.0 + NEW])
    machine = GaussianProcess(ROUGH, noise=0.1, approximation=Nystrom(80)).fit(X, y)
    for option in ({"return_std": True}, {"return_cov": True}):
        expected, found = exact.predict(far, **option), machine.predict(far, **option)
        np.testing.assert_allclose(found[1], expected[1], atol=1e-8)
    few = GaussianProcess(ROUGH, noise=0.1, approximation=Nystrom(5)).fit(X, y)
    std = few.predict(far, return_std=True)[1]
    np.testing.assert_allclose(std[15:], 1.0)
    assert (std >= machine.predict(far, return_std=True)[1] - 1e-9).all()
    cov = few.predict(far, return_cov=True)[1]
    np.testing.assert_allclose(np.sqrt(cov.diagonal()), std, rtol=1e-9)
    found = few.leave_one_out()
    linear = GaussianProcess(Linear(), noise=0.1).fit(few.kernel_.phi(X), y)
    np.testing.assert_allclose(found.mean, linear.leave_one_out().mean, atol=1e-8)


def test_classes_are_not_sure_far_from_landmarks():
    """As for regression; and the evidence of all rows is the exact one."""
    exact = GaussianProcessClassifier(ROUGH).fit(X, labels)
    machine = GaussianProcessClassifier(ROUGH, approximation=Nystrom(80)).fit(X, labels)
    found, expected = (m.log_marginal_likelihood_value_ for m in (machine, exact))
    assert abs(found - expected) < 1e-9
    both = (m.latent_mean_and_variance(np.vstack([NEW, 50.0 + NEW])) for m in (machine, exact))
    np.testing.assert_allclose(*both, atol=1e-8)
    few = GaussianProcessClassifier(ROUGH, approximation=Nystrom(5)).fit(X, labels)
    np.testing.assert_allclose(few.latent_mean_and_variance(50.0 + NEW)[1], 1.0)
    np.testing.assert_allclose(few.predict_proba(50.0 + NEW), 0.5)
    assert few.certificate_.ok


@pytest.mark.parametrize("targets", [SEVERAL, GAPS], ids=["whole", "gaps"])
def test_tasks_are_not_sure_far_from_landmarks(targets):
    """Variances and evidence of all rows are the exact ones; far from landmarks, the prior's."""
    weights = np.repeat([1.0, 2.0], 40)
    machine = MultiTaskGaussianProcess(ROUGH, task_covariance=TASKS, noise=0.1)
    exact = clone(machine).fit(X, targets, weights)
    every = clone(machine).set_params(approximation=Nystrom(80)).fit(X, targets, weights)
    found, expected = (m.log_marginal_likelihood_value_ for m in (every, exact))
    assert abs(found - expected) < 1e-8
    np.testing.assert_allclose(every.dual_coef_, exact.dual_coef_, atol=1e-8)
    both = (m.predict(np.vstack([NEW, 50.0 + NEW]), return_std=True) for m in (every, exact))
    np.testing.assert_allclose(*both, atol=1e-7)
    few = clone(machine).set_params(approximation=Nystrom(5)).fit(X, targets, weights)
    far = few.predict(50.0 + NEW, return_std=True)[1]
    np.testing.assert_allclose(far, np.broadcast_to(np.sqrt(np.diagonal(TASKS)), far.shape))
    assert few.solution_.solver == "TaskFeatures"
    again = clone(few).fit(
        np.repeat(X, weights.astype(int), 0), np.repeat(targets, weights.astype(int), 0)
    )
    np.testing.assert_allclose(again.predict(NEW), few.predict(NEW), atol=1e-9)
    for one in (every, few):
        assert one.certificate_.ok


@pytest.mark.parametrize("field", ["weights", "coef", "basis", "values", "factor"])
def test_the_certificate_judges_each_stored_form_of_tasks(field):
    targets = GAPS if field == "factor" else SEVERAL
    machine = MultiTaskGaussianProcess(
        ROUGH, task_covariance=TASKS, noise=0.1, approximation=Nystrom(20)
    ).fit(X, targets)
    gram, value = make_gram(machine.kernel_, X, Need.MATRIX), machine.solution_.value
    problem = TaskRegression(gram, targets, np.array(TASKS), 0.1, np.ones(80))
    assert certify(problem, value).ok
    changed = replace(value, **{field: getattr(value, field) * 1.001})
    assert not certify(problem, changed).ok


def test_many_rows_of_classes_take_the_steps_of_logistic_regression(monkeypatch):
    """Where the matrix of second derivatives is dear; the same answer."""
    machine = GaussianProcessClassifier(ROUGH, approximation=Nystrom(30)).fit(X, labels)
    monkeypatch.setattr("mercer.machines.gaussian_process.laplace._MANY", 0.0)
    other = GaussianProcessClassifier(ROUGH, approximation=Nystrom(30)).fit(X, labels)
    np.testing.assert_allclose(
        other.latent_mean_and_variance(NEW), machine.latent_mean_and_variance(NEW), atol=1e-8
    )
    assert other.solution_.status.ok
    assert other.certificate_.ok


@pytest.mark.parametrize("field", ["weights", "coef", "factors"])
def test_the_certificate_judges_each_stored_form(field):
    how = Nystrom(20)
    machine = GaussianProcessClassifier(ROUGH, approximation=how).fit(X, labels)
    value = machine.solution_.value
    kernel = machine.kernel_
    problem = ProcessClassification(
        make_gram(kernel, X, Need.MATRIX),
        np.where(labels == "out", 1.0, -1.0)[:, None],
        np.ones(80),
    )
    assert certify(problem, value).ok
    changed = replace(value, **{field: getattr(value, field) * 1.001})
    assert not certify(problem, changed).ok


def test_weights_are_repetitions_and_order_does_not_matter():
    weights = rng.integers(0, 3, size=80).astype(float)
    again, order = np.repeat(np.arange(80), weights.astype(int)), rng.permutation(80)
    for how in (Nystrom(12), Nystrom(12, "leverage"), Nystrom(12, "kmeans++"), RandomFeatures(12)):
        machine = KernelRidge(0.1, Gaussian(1.0), approximation=how)
        expected = clone(machine).fit(X, y, weights).predict(NEW)
        found = clone(machine).fit(X[again], y[again]).predict(NEW)
        np.testing.assert_allclose(found, expected, rtol=1e-8)
        mixed = clone(machine).fit(X[order], y[order], weights[order]).predict(NEW)
        np.testing.assert_allclose(mixed, expected, rtol=1e-8)
        used = weights > 0
        without = clone(machine).fit(X[used], y[used], weights[used]).predict(NEW)
        np.testing.assert_allclose(without, expected, rtol=1e-8)


def test_columns_by_name_strings_and_sparse_rows():
    table = Table.of({"age": X[:, 0], "height": X[:, 1]})
    by_name = Gaussian(1.0).on("height") * Gaussian(2.0).on("age")
    by_number = Gaussian(1.0).on(1) * Gaussian(2.0).on(0)
    for how in (Nystrom(15), RandomFeatures(30)):
        named = KernelRidge(0.1, by_name, approximation=how).fit(table, y)
        plain = KernelRidge(0.1, by_number, approximation=how).fit(X, y)
        np.testing.assert_array_equal(named.predict(table), plain.predict(X))
        thin = KernelRidge(0.1, by_number, approximation=how).fit(sparse.csr_array(X), y)
        np.testing.assert_allclose(thin.predict(sparse.csr_array(X)), plain.predict(X), atol=1e-9)
    words = ["".join(rng.choice(list("abc"), size=8)) for _ in range(80)]
    machine = SVC(Spectrum(2), approximation="nystrom:6").fit(words, labels)
    assert machine.kernel_.phi.dimension == 6
    assert machine.certificate_.ok
    assert set(machine.predict(words[:5])) <= {"in", "out"}


def test_a_stream_takes_its_landmarks_from_the_first_block():
    for machine in (
        Perceptron(Gaussian(1.0), approximation=Nystrom(20)),
        Perceptron(Gaussian(1.0), approximation=Nystrom(20), answer="averaged"),
        LogisticRegression(Gaussian(1.0), 0.01, approximation=RandomFeatures(40)),
    ):
        for _ in range(10):
            for first in range(0, 80, 40):
                part = slice(first, first + 40)
                machine.partial_fit(X[part], labels[part], classes=["in", "out"])
        assert machine.score(X, labels) > 0.9
    with pytest.raises(AttributeError, match="partial_fit"):
        _ = LogisticRegression(Gaussian(1.0)).partial_fit


def test_grids_reach_the_number_of_landmarks():
    machine = SVC(Gaussian(1.0), approximation=Nystrom(10))
    machine.set_params(approximation__n_components=30, kernel__scale=2.0)
    assert machine.approximation == Nystrom(30)
    assert machine.get_params()["approximation__n_components"] == 30
    with pytest.raises(ValueError, match="no parameter 'size'"):
        machine.set_params(approximation__size=3)
    pipe = make_pipeline(StandardScaler(), machine)
    pipe.set_params(svc__approximation__n_components=5).fit(X, labels)
    assert pipe[-1].kernel_.phi.dimension == 5


# --- past the exact limit ------------------------------------------------------------------------

MANY = rng.uniform(-2, 2, size=(1500, 2))
ABOVE = np.where(MANY.sum(axis=1) > 0, 1.0, -1.0)


@pytest.mark.parametrize(
    "machine",
    [
        FisherDiscriminant(),
        KernelRidge("loo", penalties=[0.1, 1.0, 10.0]),
        PCA(),
        GaussianProcess(),
        GaussianProcessClassifier(),
        MultiTaskGaussianProcess(),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_past_the_exact_limit_landmarks_are_taken_and_said(machine):
    machine.set_params(kernel=Gaussian(1.0))
    with mercer.config(memory="20 MB"):
        with pytest.raises(MemoryBudgetError, match="approximation=Nystrom"):
            clone(machine).set_params(approximation=None).fit(MANY, ABOVE)
        with pytest.warns(ApproximationWarning) as said:
            machine.fit(MANY, ABOVE)
    (line,) = [str(one.message) for one in said]
    assert "1500 rows are too many" in line
    assert f"{machine.kernel_.phi.dimension} landmarks" in line
    assert "trace(K - FF') / trace(K)" in line
    assert "approximation=None" in line
    assert said[0].filename == __file__
    assert machine.approximation == "auto"
    assert machine.certificate_.ok
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = machine.fit(MANY[:100], ABOVE[:100])  # no trace is left
    assert not isinstance(again.kernel_, ApproximateKernel)
    assert not hasattr(again, "approximation_error_")


def test_rows_that_would_take_for_ever(monkeypatch):
    """What nothing refuses has a limit as well; kernels of few features have none."""
    monkeypatch.setattr(LogisticRegression, "exact_rows", 1000)
    with mercer.config(memory="10 MB"):
        with pytest.warns(ApproximationWarning, match="all pairs takes 18 MB"):
            machine = LogisticRegression(Gaussian(1.0)).fit(MANY, ABOVE)
        assert machine.kernel_.phi.dimension <= 10e6 / (40 * 1500)
        linear = LogisticRegression().fit(MANY, ABOVE)
    assert isinstance(linear.kernel_, Linear)


def test_a_solver_of_ones_own_is_asked_for_what_it_is():
    from mercer.solvers import Cholesky

    with mercer.config(memory="20 MB"), pytest.raises(MemoryBudgetError):
        KernelRidge(1.0, Gaussian(1.0), solver=Cholesky()).fit(MANY, ABOVE)


def test_up_to_the_limit_nothing_changes_by_a_bit():
    for name in MACHINES:
        auto, exact = fitted(name, Gaussian(1.0), "auto"), fitted(name, Gaussian(1.0), None)
        np.testing.assert_array_equal(answers(name, auto), answers(name, exact))
        assert auto.certificate_.statement == exact.certificate_.statement


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nystroem", "did you mean 'nystrom'"),
        ("fourier", "there are 'nystrom:1000' and 'random_features:1000'"),
        ("nystrom:many", "must be an integer"),
        ("nystrom:10:pivoted:0:1", "has too many parameters"),
        ("nystrom:10:best", "must be one of"),
        (Nystrom, "Nystrom(1000)"),
        (1000, "be None (exact), 'auto'"),
        (True, "be None (exact), 'auto'"),
    ],
)
def test_wrong_options_are_named(given, said):
    with pytest.raises(ParameterError, match="KernelRidge: approximation=") as refusal:
        KernelRidge(1.0, Gaussian(1.0), approximation=given).fit(X, y)
    assert said in str(refusal.value)


def test_what_has_no_features_is_refused_in_words():
    K = Gaussian(1.0)(X)
    with pytest.raises(ApproximationError, match=r"SVC: .*precomputed kernel is a matrix"):
        SVC("precomputed", approximation=Nystrom(10)).fit(K, labels)
    SVC("precomputed", approximation="auto").fit(K, labels)
    with pytest.raises(ApproximationError, match="Nystrom takes any kernel"):
        KernelRidge(1.0, "sigmoid", approximation=RandomFeatures(20)).fit(X, y)
    for sampling in RULES:
        with pytest.raises(ValueError, match="overflows on 80 row"):
            how = Nystrom(10, sampling)
            KernelRidge(1.0, Polynomial(3, 1.0), approximation=how).fit(1e150 * X, y)
    with pytest.raises(ParameterError, match=r"GaussianProcess: approximation=.*optimize=True"):
        GaussianProcess(Gaussian(1.0), optimize=True, approximation=RandomFeatures(10)).fit(X, y)
    classifier = GaussianProcessClassifier(Gaussian(1.0), approximation=Nystrom(10))
    with pytest.raises(ParameterError, match=r"GaussianProcessClassifier: .*optimize=True"):
        clone(classifier).set_params(optimize=True).fit(X, labels)
    with pytest.raises(ParameterError, match=r"GaussianProcessClassifier: .*its evidence"):
        classifier.log_marginal_likelihood(X, labels)
    tasks = MultiTaskGaussianProcess(Gaussian(1.0), optimize=True, approximation=Nystrom(10))
    with pytest.raises(ParameterError, match=r"MultiTaskGaussianProcess: .*optimize=True"):
        tasks.fit(X, y)


def test_small_and_empty_kernels():
    """More landmarks than rows, one row, equal rows, a kernel that is zero everywhere."""
    many = KernelRidge(0.1, Gaussian(1.0), approximation=Nystrom(1000)).fit(X, y)
    assert f"{many.kernel_.phi.dimension} features" in many.certificate_.statement
    assert many.kernel_.phi.dimension <= 80
    for rows in (X[:1], np.repeat(X[:1], 9, axis=0)):
        one = KernelRidge(0.1, Gaussian(1.0), approximation=Nystrom(10)).fit(rows, y[: len(rows)])
        assert one.kernel_.phi.dimension == 1
        assert one.certificate_.ok
    zero = KernelRidge(0.1, 0.0 * Linear(), approximation=Nystrom(10)).fit(X, y)
    np.testing.assert_allclose(zero.predict(NEW), y.mean())


def test_strings_by_landmarks_are_projected_and_have_variances():
    """Feature maps take what the kernel takes, strings as they are."""
    words = ["".join(np.random.default_rng(k).choice(list("ab"), 6)) for k in range(20)]
    kernel, landmarks = Subsequence(2, 0.5), Nystrom(5)
    machine = PCA(2, kernel=kernel, approximation=landmarks).fit(words)
    assert machine.transform(words[:3]).shape == (3, 2)
    targets = np.array([word.count("a") for word in words], dtype=float)
    process = GaussianProcess(kernel, approximation=landmarks).fit(words, targets)
    assert (process.predict(words[:3], return_std=True)[1] > 0).all()


def test_leverage_draws_rows_that_explain_something():
    """Rows of zeros are no landmarks of a linear kernel, however many are asked for."""
    X = np.zeros((20, 1))
    X[:3, 0] = 1.0
    machine = NearestMean(Linear(), approximation="nystrom:5:leverage").fit(X, X[:, 0] > 0)
    assert machine.kernel_.phi.dimension == 1


CROWD = np.random.default_rng(1).normal(size=(8000, 3))
MATRIX = {
    "GaussianProcess": (GaussianProcess(noise=0.1), CROWD[:, 0]),
    "GaussianProcessClassifier": (GaussianProcessClassifier(), CROWD[:, 0] > 0),
    "MultiTaskGaussianProcess": (MultiTaskGaussianProcess(noise=0.1), CROWD[:, :2]),
    "FisherDiscriminant": (FisherDiscriminant(), CROWD[:, 0] > 0),
    "KMeans": (KMeans(2), None),
}


@pytest.mark.parametrize("how", [RandomFeatures(100), Nystrom(100)], ids=["random", "landmarks"])
@pytest.mark.parametrize("name", MATRIX)
def test_features_that_do_not_fit_are_refused_as_features(name, how):
    """Not as the matrix of all pairs, which nobody asked for; and before they are written."""
    machine, targets = MATRIX[name]
    machine = clone(machine).set_params(kernel=Gaussian(1.0), approximation=how)
    with mercer.config(memory=8_000_000):  # features are 6.4 MB, and copied
        tracemalloc.start()
        try:
            with pytest.raises(MemoryBudgetError, match=r"100 features of 8000 rows.*components"):
                machine.fit(CROWD, targets)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 8_000_000


def test_features_that_do_not_fit_are_streamed_where_products_will_do():
    with mercer.config(memory=8_000_000):
        kernel = Nystrom(100).of(Gaussian(1.0), CROWD)
        assert isinstance(make_gram(kernel, CROWD, Need.PRODUCTS), StreamedGram)
    machine = KernelRidge(0.1, Gaussian(1.0), approximation=RandomFeatures(100))
    expected = machine.fit(CROWD, CROWD[:, 0]).predict(CROWD[:20])
    with mercer.config(memory=8_000_000):
        found = machine.fit(CROWD, CROWD[:, 0]).predict(CROWD[:20])
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("sampling", sorted(RULES))
def test_landmarks_are_chosen_within_the_budget(sampling):
    rows = np.random.default_rng(2).normal(size=(9000, 3))
    with mercer.config(memory=6_000_000):  # 9000 by 100 values are 7.2 MB
        tracemalloc.start()
        try:
            kernel = Nystrom(100, sampling).of(Gaussian(1.0), rows)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 6_000_000
        if sampling != "uniform":
            with pytest.raises(MemoryBudgetError, match=r"choosing 400 landmarks .*sampling='uni"):
                Nystrom(400, sampling).of(Gaussian(1.0), rows)
    assert kernel.error(rows) < 0.05
