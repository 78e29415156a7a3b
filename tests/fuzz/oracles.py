"""Other machines against other ways: dense eigensolvers, exact equations, brute force."""

import functools
import itertools

import numpy as np
import scipy.linalg
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from fuzz import margins
from fuzz.learnt import learnt_weights
from fuzz.margins import digits, gram
from mercer.kernels import Linear, Precomputed

LONG = np.longdouble
WELL_POSED = 1e9  # k(x, x) over the penalty: beyond, rounding of K is an answer of its own
SMALL = 40  # rows, for work of third order in slow arithmetic
CLOSE = 1e-5
DENORMAL = 1e-300  # below, numbers have no relative rounding
ROUNDING = 1e-13  # of the largest terms


def ridge(trial):
    """The objective is as small as that of the exact equations in extended precision."""
    machine = trial.machine
    if not trial.certified or not trial.case.psd or trial.y.ndim > 1 or len(trial.y) > SMALL:
        return
    K, s, y = gram(trial).astype(LONG), trial.weights.astype(LONG), trial.y.astype(LONG)
    used = s > 0
    penalty = LONG(machine.penalty_)
    K, s, y = K[np.ix_(used, used)], s[used], y[used]
    if not np.isfinite(K).all() or not 0 < np.diag(K).max() * s.max() / penalty < WELL_POSED:
        return
    a, b = np.asarray(machine.dual_coef_, LONG)[used], LONG(machine.intercept_)
    best, offset = _exact_ridge(K, s, y, penalty, machine.bias)

    def objective(values, squared):
        return penalty * squared + s @ (y - values) ** 2

    true = objective(K @ best + offset, best @ (K @ best))
    forms = {"dual_coef_": objective(K @ a + b, a @ (K @ a))}
    if hasattr(machine, "coef_"):
        w = np.asarray(machine.coef_, LONG)
        forms["coef_"] = objective(trial.X[used].astype(LONG) @ w + b, w @ w)
    size = s @ (y - (s @ y / s.sum() if machine.bias else 0)) ** 2
    if not 1e-250 < size < 1e250:  # squares of the machine's own numbers are denormal or infinite
        return
    # an answer to targets that are off by tol has at most twice that in the root of the objective
    allowed = np.sqrt(true) + 3e-6 * np.sqrt(size) + 1e-9 * np.sqrt(s @ y**2)
    for name, found in forms.items():
        if not np.sqrt(max(found, 0)) <= allowed:
            numbers = f"objective {float(found):.6g}, exact {float(true):.6g}"
            yield f"FALSE CERTIFICATE: {name}: {numbers}"
    given = trial.answers[("predict", "X")][used]
    value = K @ a + b
    if abs(given - value).max() > 1e-6 * (abs(y).max() + abs(value).max()):
        yield f"predict(X) differs from dual_coef_ by {float(abs(given - value).max()):.2g}"


def _exact_ridge(K, s, y, penalty, bias):
    n = len(y)
    A, right = np.zeros((n + bias, n + bias), LONG), np.zeros(n + bias, LONG)
    A[:n, :n], right[:n] = K + np.diag(penalty / s), y
    if bias:
        A[n, :n] = A[:n, n] = 1
    found = _eliminated(A, right)
    return found[:n], found[n] if bias else LONG(0)


def _eliminated(A, right):
    """Solve by elimination with row pivots; LAPACK has no extended precision."""
    A = np.column_stack([A, right])
    n = len(A)
    for k in range(n):
        pivot = k + int(np.argmax(abs(A[k:, k])))
        A[[k, pivot]] = A[[pivot, k]]
        A[k + 1 :] -= np.outer(A[k + 1 :, k] / A[k, k], A[k])
    x = np.zeros(n, LONG)
    for k in reversed(range(n)):
        x[k] = (A[k, n] - A[k, k + 1 : n] @ x[k + 1 :]) / A[k, k]
    return x


def logistic(trial):
    """The objective is what the certificate says, and Newton's method finds none that is better."""
    machine = trial.machine
    if not trial.certified or machine.loss != "log" or "class_weight" in trial.case.parameters:
        return
    K, s = gram(trial), trial.weights
    if not np.isfinite(K).all() or not K.any() or len(s) > SMALL:
        return
    A, b = np.asarray(machine.dual_coef_, LONG), np.asarray(machine.intercept_, LONG)
    f = K.astype(LONG) @ A + b
    squared = (A * (f - b)).sum()
    found = float(_log_loss(f, trial.y, machine.classes_, s) + machine.penalty * squared / 2)
    rounding = ROUNDING * float(machine.penalty * (abs(A) * (abs(K) @ abs(A))).sum())
    claimed = machine.certificate_.quantities.objective
    if abs(found - claimed) > 1e-6 * abs(claimed) + rounding:
        yield f"FALSE CERTIFICATE: dual_coef_ have objective {found:.9g}, claimed {claimed:.9g}"
    if len(machine.classes_) == 2 and trial.case.psd:
        y = np.where(trial.y == machine.classes_[1], 1.0, -1.0)
        best = trial.quietly(lambda: _best_logistic(K, s, y, machine.penalty, machine.bias))
        # K + d lowers the optimum by penalty d |a|^2 / 2 at most, and |a_i| <= s_i / penalty: what
        # rounding of K alone may bring
        made = len(K) * np.finfo(float).eps * abs(K).max() * (s / machine.penalty) @ s
        if np.isfinite(best) and claimed > best * (1 + 3e-6) + 1e-12 * s.sum() + rounding + made:
            yield f"FALSE CERTIFICATE: objective {claimed:.9g}, Newton's method {best:.9g}"
    given = trial.answers.get(("decision_function", "X"))
    f = f[:, 0] if f.shape[1] == 1 else f
    size = (abs(K) @ abs(A)).max() + abs(b).max()
    # w - F'a is the gradient over the penalty: both forms agree as far as that is zero, which the
    # certificate measures (as mismatch) and judges
    measured = machine.certificate_.quantities
    still = 4 * (measured.stationarity + measured.mismatch)
    if given is not None and abs(given - f).max() > (digits(trial) + still) * size + DENORMAL:
        yield f"decision_function(X) differs from dual_coef_ by {abs(given - f).max():.2g}"


def _log_loss(f, y, classes, s):
    own = np.searchsorted(classes, y)
    if f.shape[1] == 1:
        return s @ np.logaddexp(0, np.where(own == 1, -1, 1) * f[:, 0])
    top = f.max(axis=1)
    return s @ (top + np.log(np.exp(f - top[:, None]).sum(axis=1)) - f[np.arange(len(f)), own])


def _best_logistic(K, s, y, penalty, bias):
    values, V = np.linalg.eigh(K)
    F = np.column_stack([V * np.sqrt(np.maximum(values, 0)), np.full(len(y), float(bias))])
    held = np.append(np.full(len(y), float(penalty)), 1e-300)

    def objective(v):
        return s @ np.logaddexp(0, -y * (F @ v)) + held @ v**2 / 2

    return objective(_newton(objective, F, s, y, held))


def _newton(objective, F, s, y, held):
    v = np.zeros(F.shape[1])
    for _ in range(60):
        p = 1 / (1 + np.exp(np.clip(y * (F @ v), -700, 700)))
        slope = held * v - F.T @ (s * y * p)
        curved = (F.T * (s * p * (1 - p))) @ F + np.diag(held + 1e-14)
        step, t = np.linalg.lstsq(curved, slope, rcond=None)[0], 1.0
        while t > 1e-9 and not objective(v - t * step) <= objective(v):
            t /= 2
        v = v - t * step
    return v


def pca(trial):
    """Eigenvalues are those of the dense matrix."""
    machine = trial.machine
    if not trial.certified:
        return
    K, s = gram(trial), trial.weights
    if not np.isfinite(K).all():
        return
    q = s / s.sum()
    C = K - q @ K - (K @ q)[:, None] + q @ K @ q if machine.center else K
    values = np.sort(np.linalg.eigvalsh(np.sqrt(s)[:, None] * C * np.sqrt(s)))[::-1]
    found = np.asarray(machine.eigenvalues_)
    top = max(abs(values).max(), 1e-300)
    rounding = 1e-12 * abs(K).max() * s.sum()  # what centring cancels
    true = np.zeros(len(found))
    true[: len(values)] = np.maximum(values, 0)[: len(found)]
    if top > 1e3 * rounding and abs(found - true).max(initial=0) > CLOSE * top:
        yield f"FALSE CERTIFICATE: eigenvalues {found[:3]}, dense solver {true[:3]}"


def kernel_pca(trial):
    """The same for the twin of scikit-learn's."""
    if trial.certified and hasattr(trial.machine, "machine_"):
        inner, top = trial.machine.machine_.eigenvalues_, trial.machine.eigenvalues_
        if abs(inner[: len(top)] - top).max(initial=0) > CLOSE * abs(top).max(initial=0):
            yield "eigenvalues_ are not those of machine_"


def cca(trial):
    """Correlations without penalty are cosines of principal angles."""
    machine = trial.machine
    plain = isinstance(machine.kernel_x_, Linear) and "weights" not in trial.names
    if not trial.certified or not plain or not trial.case.tame or machine.penalty_ != (0.0, 0.0):
        return
    if len(trial.X) < trial.X.shape[1] + trial.y.shape[1] + 2 or machine.rank is not None:
        return
    X, Y = (np.linalg.qr(A - A.mean(axis=0))[0] for A in (trial.X.astype(float), trial.y))
    true = np.zeros(len(machine.correlations_))
    cosines = np.linalg.svd(X.T @ Y, compute_uv=False)[: len(true)]
    true[: len(cosines)] = cosines
    if abs(true - machine.correlations_).max() > CLOSE:
        yield f"FALSE CERTIFICATE: correlations {machine.correlations_}, angles {true}"


def fisher(trial):
    """Ratios are those of the dense generalised eigenproblem, in the columns."""
    machine = trial.machine
    plain = isinstance(machine.kernel_, Linear) and machine.weighting == "counts"
    plain = plain and machine.penalty_on == "function"
    if not trial.certified or not plain or not trial.case.tame or machine.penalty_ <= 0:
        return
    X, s = trial.X.astype(float), trial.weights / trial.weights.sum()
    inside, between = 0.0, 0.0
    for label in machine.classes_:
        own = (trial.y == label) & (s > 0)
        mean = np.average(X[own], axis=0, weights=s[own]) - s @ X
        left = X[own] - s @ X - mean
        inside = inside + (left.T * s[own]) @ left
        between = between + s[own].sum() * np.outer(mean, mean)
    inside = inside + machine.penalty_ * np.eye(X.shape[1])
    true = scipy.linalg.eigh(between, inside, eigvals_only=True)[::-1][: len(machine.ratios_)]
    if abs(true - machine.ratios_).max(initial=0) > CLOSE * true.max(initial=1e-300):
        yield f"FALSE CERTIFICATE: ratios {machine.ratios_}, dense solver {true}"


def kmeans(trial):
    """The inertia is that of the labels; a certified answer is at least as good as its moves."""
    machine, s = trial.machine, trial.weights
    K = gram(trial)
    if not np.isfinite(K).all() or (machine.balanced and s.max() > 1):  # copies that part
        return
    scatter = functools.cache(lambda own: _scatter(trial, s, np.array(own)))
    own = _inertia(scatter, machine.labels_)
    rounding = 0.1 * digits(trial) * float(s @ abs(np.diag(K)))
    if abs(own - machine.inertia_) > 1e-6 * abs(own) + rounding + DENORMAL:
        yield f"inertia_ {machine.inertia_:.9g}, by definition {own:.9g}"
    k = machine.n_clusters
    if len(s) <= 7 and k <= 3 and trial.case.psd:
        tables = itertools.product(range(k), repeat=len(s))
        best = min(_inertia(scatter, np.array(labels)) for labels in tables)
        if machine.inertia_ < best * (1 - 1e-6) - rounding - DENORMAL:
            yield f"inertia_ {machine.inertia_:.9g} is below the optimum {best:.9g}"


def _inertia(scatter, labels):
    return sum(scatter(tuple(np.flatnonzero(labels == c))) for c in np.unique(labels))


def _scatter(trial, s, own):
    """Return the scatter of some rows, the kernel evaluated on them alone.

    Distances are computed around the mean of the rows: one row at 1e14 among others near 1 leaves
    these a thousandth of a digit, in K of all rows, but not in that of a cluster without it.
    """
    own = own[s[own] > 0]
    if not len(own):
        return 0.0
    K, q = gram(trial, own), s[own] / s[own].sum()
    return float(s[own] @ np.diag(K) - s[own].sum() * (q @ K @ q))


def gaussian_mixture(trial):
    """Densities are right, and new weights and means gain next to nothing."""
    machine = trial.machine
    if not trial.case.tame or machine.covariance != "full" or not trial.certified:
        return
    X, s = trial.X.astype(float), trial.weights
    wide = [np.linalg.cond(C) for C in machine.covariances_]
    if max(wide) > 1e9:  # above, SciPy takes them for singular
        return

    def joint(weights, means):
        parts = zip(weights, means, machine.covariances_, strict=True)
        return np.column_stack(
            [np.log(w) + multivariate_normal(m, C).logpdf(X) for w, m, C in parts]
        )

    J = joint(machine.weights_, machine.means_).reshape(len(X), -1)
    here = logsumexp(J, axis=1)
    if abs(here - trial.answers["score_samples", "X"]).max() > 1e-6 * (1 + abs(here).max()):
        yield "score_samples(X) is not the log density"
    R = np.exp(J - here[:, None]) * s[:, None]
    means = (R.T @ X) / R.sum(axis=0)[:, None]
    after = logsumexp(joint(R.sum(axis=0) / s.sum(), means).reshape(len(X), -1), axis=1)
    gain = float(s @ (after - here) / s.sum())
    if gain > 100 * machine.certificate_.tol:
        yield f"FALSE CERTIFICATE: new weights and means add {gain:.2g} to the mean log-likelihood"


def probabilistic_pca(trial):
    """The likelihood is that of the closed form."""
    machine = trial.machine
    if not trial.certified or not trial.case.tame or np.isnan(trial.X.astype(float)).any():
        return
    X, s = trial.X.astype(float), trial.weights / trial.weights.sum()
    left = X - s @ X
    values = np.sort(np.linalg.eigvalsh((left.T * s) @ left))[::-1]
    q, d = machine.n_components_, X.shape[1]
    if q >= d or values[-1] < 1e-9 * values[0]:
        return
    noise = values[q:].mean()
    true = -(d * np.log(2 * np.pi) + np.log(values[:q]).sum() + (d - q) * np.log(noise) + d) / 2
    if machine.log_likelihood_ < true - 1e-4 * max(1, abs(true)):
        yield f"FALSE CERTIFICATE: log-likelihood {machine.log_likelihood_:.9g} of {true:.9g}"


def nearest(trial):
    """The nearest, or most similar, row decides."""
    machine = trial.machine
    if (
        not trial.case.tame
        or machine.n_neighbors_ != 1
        or machine.votes == "signed"
        or ("predict", "X_new") not in trial.answers
    ):
        return
    kernel, X, new = machine.kernel_, trial.names["X"], trial.names["X_new"]
    if isinstance(kernel, Precomputed) or not trial.case.psd:
        return
    lengths = kernel.diag(X) if machine.by == "distance" else 0.0
    d = trial.quietly(lambda: lengths - 2 * kernel(new, X))
    d = np.where(trial.weights > 0, d, np.inf)
    order = np.sort(d, axis=1)
    clear = order[:, 1] - order[:, 0] > 1e-9 * abs(order[:, 1])
    wrong = clear & (trial.y[np.argmin(d, axis=1)] != trial.answers["predict", "X_new"])
    if wrong.any() and np.isfinite(d[:, 0]).all():
        yield "predict(X_new) is not the label of the nearest row"


def maximum_entropy(trial):
    machine = trial.machine
    p, X = machine.probabilities_, trial.X.astype(float)
    if not trial.certified:
        return
    left = abs(p @ X - trial.y) / np.maximum(np.ptp(X, axis=0), 1e-300)
    rounding = 1e-12 * abs(X).max() / np.maximum(np.ptp(X, axis=0), 1e-300)
    if p.min() < 0 or abs(p.sum() - 1) > 1e-9 or (left > 1e-5 + rounding).any():
        yield f"FALSE CERTIFICATE: sum {p.sum()}, expectations off by {left.max():.2g} of the range"


def spectral(trial):
    """Eigenvalues are those of the dense normalised affinity."""
    machine = trial.machine
    plain = machine.normalization == "normalized" and machine.neighbors is None
    if not trial.certified or not plain or not machine.self_loops or not trial.case.tame:
        return
    K = gram(trial)
    if not np.isfinite(K).all() or K.min() < 0 or not K.sum(axis=1).min() > 1e-300:
        return
    root = 1 / np.sqrt(K.sum(axis=1))
    true = np.linalg.eigvalsh(root[:, None] * K * root)[::-1][: len(machine.eigenvalues_)]
    if abs(true - machine.eigenvalues_).max() > 1e-4:
        yield f"FALSE CERTIFICATE: eigenvalues {machine.eigenvalues_}, dense solver {true}"


ORACLES = {
    "SVC": margins.svc,
    "SVR": margins.svr,
    "OneClassSVM": margins.one_class,
    "EnclosingBall": margins.ball,
    "KernelRidge": ridge,
    "LogisticRegression": logistic,
    "PCA": pca,
    "compat.KernelPCA": kernel_pca,
    "CCA": cca,
    "FisherDiscriminant": fisher,
    "KMeans": kmeans,
    "GaussianMixture": gaussian_mixture,
    "ProbabilisticPCA": probabilistic_pca,
    "NearestNeighbors": nearest,
    "MaximumEntropy": maximum_entropy,
    "SpectralClustering": spectral,
    "MultipleKernel.labels": learnt_weights,
    "MultipleKernel.targets": learnt_weights,
}
