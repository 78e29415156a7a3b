"""Compressed machines: brute force at few rows, bounds that hold, and machines that stay whole."""

import pickle
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from mercer import (
    PCA,
    SVC,
    SVR,
    EnclosingBall,
    FisherDiscriminant,
    KernelRidge,
    LogisticRegression,
    NaiveBayes,
    NearestMean,
    OneClassSVM,
    Perceptron,
    Status,
    compress,
    load,
    save,
)
from mercer.files import read_libsvm_model, verify, write_libsvm_model
from mercer.files.libsvm.machines import machine_of
from mercer.kernels import FromCallable, Gaussian, Laplacian, Linear, Polynomial, Sigmoid, Spectrum

RNG = np.random.default_rng(7)
X = RNG.normal(size=(90, 2))
TWO = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=90) > 0, "yes", "no")
APART = np.where(X[:, 0] > np.sin(X[:, 1]), "yes", "no")
FOUR = (X[:, 0] > 0) * 2 + (X[:, 1] > 0)
REAL = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=90)
NEW = RNG.normal(size=(50, 2))
K = Gaussian(0.8)

MACHINES = {
    "svc": lambda: SVC(K, C=2.0).fit(X, TWO),
    "svc-ovo": lambda: SVC(K, C=2.0).fit(X, FOUR),
    "svc-ovr": lambda: SVC(K, C=2.0, multiclass="ovr").fit(X, FOUR),
    "svr": lambda: SVR(K, epsilon=0.05).fit(X, REAL),
    "one-class": lambda: OneClassSVM(K, nu=0.3).fit(X),
    "ball": lambda: EnclosingBall(K, nu=0.1).fit(X),
    "ridge": lambda: KernelRidge(0.1, K).fit(X, REAL),
    "ridge-two": lambda: KernelRidge("loo", K).fit(X, np.column_stack([REAL, X[:, 1]])),
    "logistic": lambda: LogisticRegression(K).fit(X, TWO),
    "logistic-four": lambda: LogisticRegression(K).fit(X, FOUR),
    "fisher": lambda: FisherDiscriminant(K).fit(X, FOUR),
    "mean": lambda: NearestMean(K).fit(X, FOUR),
    "pca": lambda: PCA(3, kernel=K).fit(X),
    "pca-origin": lambda: PCA(3, kernel=K, center=False).fit(X),
    "perceptron": lambda: Perceptron(Gaussian(0.5)).fit(X, APART),
    "averaged": lambda: Perceptron(Gaussian(0.5), answer="averaged").fit(X, APART),
}


def answers(machine, Z):
    """Return everything that a machine says of rows."""
    names = ("predict", "decision_function", "transform", "score_samples", "squared_distance")
    return [np.asarray(getattr(machine, n)(Z)) for n in names if hasattr(machine, n)]


def solution(machine):
    return machine.__dict__.get("solution_") or machine.__dict__["_solution"]


# --- against brute force --------------------------------------------------------------------------


def test_coefficients_and_errors_at_ten_rows():
    rows, y = X[:10], REAL[:10]
    machine = KernelRidge(0.1, K, bias=False).fit(rows, y)
    a, G = machine.dual_coef_, K(rows)
    norm = np.sqrt(a @ G @ a)
    for m in range(1, 10):
        small = compress(machine, n_vectors=m)
        found = small.solution_.value
        chosen = [int(np.flatnonzero((rows == v).all(axis=1))[0]) for v in found.vectors]
        errors = {}
        for subset in combinations(range(10), m):
            S = list(subset)
            b = np.linalg.solve(G[np.ix_(S, S)], G[S] @ a)
            errors[subset] = np.sqrt(max(a @ G @ a - b @ G[np.ix_(S, S)] @ b, 0.0))
            if set(S) == set(chosen):
                np.testing.assert_allclose(found.coef[np.argsort(chosen), 0], b, rtol=1e-6)
        measured = small.certificate_.quantities
        wanted = errors[tuple(sorted(chosen))]
        np.testing.assert_allclose(measured.error, wanted, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(measured.relative_error, wanted / norm, rtol=1e-5, atol=1e-7)
        assert wanted <= 2.5 * min(errors.values())  # the first is the best, later ones near it
        if m == 1:
            assert wanted == min(errors.values())


def test_vectors_that_depend_on_others_go_at_no_loss():
    rows = RNG.normal(size=(5, 2))
    y = RNG.normal(size=5)
    machine = SVR(Polynomial(2), C=1e3, epsilon=1e-3).fit(rows, y)
    whole = SVR(K, C=10.0, epsilon=1e-3).fit(np.repeat(rows, 3, axis=0), np.repeat(y, 3))
    for one in (machine, whole):
        same = compress(one, tol=0)
        assert same.certificate_.quantities.vectors <= 5
        np.testing.assert_allclose(same.predict(NEW), one.predict(NEW), atol=1e-6)
    words = ["ab", "ba", "abba", "baab"]  # counts of a and b: two dimensions
    many = NearestMean(Spectrum(1)).fit(words, [0, 0, 1, 1])
    few = compress(many, tol=0)
    assert few.certificate_.quantities.vectors == 1  # all rows have as many a as b
    assert few.certificate_.quantities.relative_error < 1e-6
    np.testing.assert_allclose(
        few.decision_function(["aab"]), many.decision_function(["aab"]), atol=1e-12
    )


def test_moved_vectors_do_better():
    machine = SVC(K, C=2.0).fit(X, TWO)
    chosen, moved = (compress(machine, n_vectors=8, move=move) for move in (False, True))
    errors = [one.certificate_.quantities.relative_error for one in (chosen, moved)]
    assert errors[1] < 0.8 * errors[0]
    fewer = compress(machine, tol=1e-2, move=True).certificate_.quantities
    assert fewer.vectors < compress(machine, tol=1e-2).certificate_.quantities.vectors
    assert fewer.relative_error <= 1e-2


def test_one_gaussian_is_found_where_it_is():
    """Two vectors side by side are one in between, to fourth order."""
    machine = NearestMean(Gaussian(1.0)).fit([[-0.01], [0.01], [9.0]], [0, 0, 1])
    small = compress(machine, n_vectors=2, move=True)
    np.testing.assert_allclose(np.sort(small.solution_.value.vectors[:, 0]), [0.0, 9.0], atol=1e-3)
    assert small.certificate_.quantities.relative_error < 1e-3


# --- every machine --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize(
    "asked", [{"tol": 0.02}, {"n_vectors": 12, "move": True}], ids=["tol", "move"]
)
def test_the_bound_holds_and_the_machine_is_whole(name, asked, tmp_path):
    machine = MACHINES[name]()
    before = {k: pickle.dumps(v) for k, v in vars(machine).items() if k.endswith("coef_")}
    small = compress(machine, X=NEW, **asked)
    measured = small.certificate_.quantities
    assert type(small) is type(machine)
    assert before == {k: pickle.dumps(v) for k, v in vars(machine).items() if k.endswith("coef_")}
    assert measured.vectors < measured.vectors_before
    assert measured.rows_compared == len(NEW)
    if name not in ("pca", "pca-origin", "ball"):  # whose values are functions of f, and centred
        assert measured.largest_change <= measured.error * (1 + 1e-9)
    if "tol" in asked:
        assert measured.relative_error <= 0.02 * (1 + 1e-9)
        assert solution(small).status is Status.SOLVED
        assert small.certificate_.ok
    if hasattr(machine, "predict") and name not in ("svr", "ridge", "ridge-two"):
        changed = (machine.predict(NEW) != small.predict(NEW)).sum()
        assert measured.labels_changed == changed
    assert "Not the optimum of the problem" in small.certificate_.statement
    assert machine.certificate_.statement in small.certificate_.statement
    file = tmp_path / "small.mercer"
    save(small, file)
    for again in (load(file), pickle.loads(pickle.dumps(small))):
        for one, two in zip(answers(small, NEW), answers(again, NEW), strict=True):
            np.testing.assert_array_equal(one, two)
        assert str(again.certificate_) == str(small.certificate_)
    assert vars(clone(small)).keys() == small.get_params(deep=False).keys()


@pytest.mark.parametrize("name", ["svc", "svc-ovo", "ridge-two", "pca", "averaged"])
def test_compressed_again_and_fitted_again(name):
    machine = MACHINES[name]()
    small = compress(machine, tol=1e-2)
    smaller = compress(small, tol=5e-2)
    counts = [one.certificate_.quantities.vectors for one in (small, smaller)]
    assert counts[1] <= counts[0]
    assert small.certificate_.statement in smaller.certificate_.statement
    target = {
        "svc-ovo": FOUR,
        "ridge-two": np.column_stack([REAL, X[:, 1]]),
        "averaged": APART,
    }.get(name, TWO)
    small.fit(X, target)
    for one, two in zip(answers(small, NEW), answers(machine, NEW), strict=True):
        np.testing.assert_array_equal(one, two)
    assert "optimum of the problem any more" not in small.certificate_.statement


def test_support_vectors_of_classes():
    small = compress(MACHINES["svc-ovo"](), tol=0.05)
    np.testing.assert_array_equal(small.support_vectors_, X[small.support_])
    assert (np.diff(small.support_) > 0).all()
    np.testing.assert_array_equal(small.n_support_, np.bincount(FOUR[small.support_], minlength=4))
    assert small.dual_coef_.shape == (len(small.support_), 3)
    assert (small.margin_ > 0).all()


@pytest.mark.parametrize("name", ["svc-ovo", "svr", "one-class"])
def test_files_of_libsvm(name, tmp_path):
    small = compress(MACHINES[name](), tol=0.05)
    write_libsvm_model(small, tmp_path / "small.model")
    again = machine_of(read_libsvm_model(tmp_path / "small.model"))
    for one, two in zip(answers(small, NEW), answers(again, NEW), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-9)
    assert not compress(again, tol=0.1).certificate_.ok  # nothing was judged of a file's machine


def test_verifying_is_for_the_machine_it_came_from():
    with pytest.raises(ValueError, match="was compressed"):
        verify(compress(MACHINES["svc"](), tol=0.05), X, TWO)


def test_a_stream_goes_on():
    small = compress(MACHINES["perceptron"](), tol=0.02)
    held = small.certificate_
    small.partial_fit(NEW[:5], np.where(NEW[:5, 0] > 0, "yes", "no"))
    assert small.n_seen_ > 0
    assert "_judgement" not in vars(small) or small.certificate_ is held


def test_probabilities_go_on():
    machine = SVC(K, C=2.0, probability=True).fit(X, TWO)
    small = compress(machine, tol=1e-3)
    np.testing.assert_allclose(small.predict_proba(NEW), machine.predict_proba(NEW), atol=0.02)


# --- rows of other kinds, and hostile ones --------------------------------------------------------


def test_sparse_rows_and_strings():
    dense, thin = (KernelRidge(0.1, K).fit(Z, REAL) for Z in (X, sparse.csr_array(X)))
    one, two = (compress(m, tol=0.01) for m in (dense, thin))
    np.testing.assert_allclose(one.predict(NEW), two.predict(sparse.csr_array(NEW)), atol=1e-8)
    pairs = SVC(K).fit(sparse.csr_array(X), FOUR)
    assert compress(pairs, tol=0.05).certificate_.ok
    words = ["banana", "bandana", "cab", "ananas", "cabs", "dab", "nab"]
    machine = SVC(Spectrum(2).normalized()).fit(words * 2, [1, 1, 0, 1, 0, 0, 1] * 2)
    small = compress(machine, tol=0.5)
    assert small.certificate_.quantities.vectors < small.certificate_.quantities.vectors_before
    assert set(small.predict(["ban", "cab"])) <= {0, 1}


@pytest.mark.parametrize(
    ("rows", "kernel"),
    [
        (X + 1e8, K),
        (X * 1e-140, Gaussian(1e-140)),
        (X * 1e140, Gaussian(1e140)),
        (np.column_stack([X, np.ones(90)]), K),
        (np.repeat(X[:5], 18, axis=0), K),
        (X[:1], K),
    ],
    ids=range(6),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::mercer.FitWarning")
def test_hostile_rows(rows, kernel):
    machine = KernelRidge(0.5, kernel, bias=False).fit(rows, REAL[: len(rows)])
    small = compress(machine, tol=0.01, X=rows)
    measured = small.certificate_.quantities
    assert measured.relative_error <= 0.01 + 2 * measured.rounding
    sizes = np.sqrt(kernel.diag(rows)).max()
    assert measured.largest_change <= measured.error * sizes * (1 + 1e-6)


def test_functions_that_are_zero():
    machine = KernelRidge(1.0, K, bias=False).fit(X, np.zeros(90))
    small = compress(machine)
    assert small.certificate_.quantities.vectors == 0
    assert small.certificate_.ok
    assert (small.predict(NEW) == 0).all()
    none = compress(SVC(K).fit(X, FOUR), n_vectors=0)
    assert len(none.support_) == 0
    assert len(none.predict(NEW)) == len(NEW)
    assert compress(none, tol=0.1).certificate_.quantities.vectors_before == 0


def test_coefficients_that_cancel():
    """Rows with every label: f is zero, though no coefficient is."""
    both = np.concatenate([X[:20], X[:20]])
    machine = SVC(K).fit(both, np.repeat([0, 1], 20))
    small = compress(machine, tol=0.1, X=NEW)
    assert small.certificate_.quantities.vectors == 0
    assert small.certificate_.quantities.relative_error == 0.0
    assert small.certificate_.quantities.largest_change < 1e-9
    three = SVC(K).fit(both, np.concatenate([FOUR[:20] % 3, (FOUR[:20] + 1) % 3]))
    assert compress(three, tol=0.1).certificate_.quantities.relative_error <= 0.1


def test_functions_that_are_no_kernels():
    """A function of one's own is believed by nobody: K of the vectors is factored."""
    good = KernelRidge(0.1, FromCallable(lambda A, B: 1.0 * K(A, B))).fit(X, REAL)
    found = compress(good, tol=0.01).certificate_
    assert found.ok
    assert 0 < found.quantities.indefiniteness < 1e-9
    twisted = FromCallable(lambda A, B: K(A, B) - 0.5 * Gaussian(0.3)(A, B))
    with pytest.warns(ConvergenceWarning, match="not positive semidefinite"):
        bad = KernelRidge(2.0, twisted).fit(X, REAL)
    found = compress(bad, tol=0.01).certificate_
    assert not found.ok
    assert "not positive semidefinite" in found.statement


def test_time_limit():
    machine = KernelRidge(1e-6, Laplacian(1.0)).fit(RNG.normal(size=(400, 3)), RNG.normal(size=400))
    small = compress(machine, tol=1e-9, time_limit=1e-9)
    assert small.solution_.status is Status.TIME_LIMIT
    assert not small.certificate_.ok


def test_a_fit_that_was_not_certified():
    with pytest.warns(Warning, match="limit"):
        machine = SVC(K, C=100.0, max_iter=3).fit(X, TWO)
    small = compress(machine, tol=0.01)
    assert not small.certificate_.ok
    assert not small.certificate_.quantities.source_ok
    assert small.solution_.status is machine.solution_.status


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"tol": -1.0}, "tol=-1.0 must be a number of at least 0"),
        ({"tol": np.nan}, "tol=nan must"),
        ({"tol": "small"}, "tol='small' must"),
        ({"n_vectors": 2.5}, "n_vectors=2.5 must be a count"),
        ({"n_vectors": -1}, "n_vectors=-1 must"),
        ({"move": 1}, "move=1 must be True or False"),
        ({"max_iter": 0, "move": True}, "max_iter=0 must"),
        ({"time_limit": 0}, "time_limit=0 must"),
    ],
)
def test_wrong_wishes(asked, message):
    with pytest.raises(ValueError, match=message):
        compress(KernelRidge(0.1, K).fit(X, REAL), **asked)


def test_machines_that_cannot_be_compressed():
    with pytest.warns(ConvergenceWarning, match="not positive semidefinite"):
        indefinite = SVC(Sigmoid(0.1, -1.0)).fit(X, TWO)
    with pytest.raises(ValueError, match="weights of features"):
        compress(KernelRidge(0.1, Linear()).fit(X, REAL))
    with pytest.raises(ValueError, match="given matrix"):
        compress(SVC("precomputed").fit(K(X), TWO))
    with pytest.raises(ValueError, match="not positive semidefinite"):
        compress(indefinite)
    with pytest.raises(ValueError, match="needs the Gaussian kernel"):
        compress(KernelRidge(0.1, Laplacian(1.0)).fit(X, REAL), move=True)
    with pytest.raises(ValueError, match="dense vectors"):
        compress(KernelRidge(0.1, K).fit(sparse.csr_array(X), REAL), move=True)
    with pytest.raises(ValueError, match="votes"):
        compress(Perceptron(Gaussian(0.5), answer="voted").fit(X, APART))
    with pytest.raises(TypeError, match="NaiveBayes is none of the machines"):
        compress(NaiveBayes().fit(X, TWO))
    with pytest.raises(TypeError, match="last step of the pipeline"):
        compress(make_pipeline(SVC(K)).fit(X, TWO))
    with pytest.raises(Exception, match="not fitted"):
        compress(SVC(K))
