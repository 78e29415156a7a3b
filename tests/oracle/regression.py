"""Least squares and Gaussian processes: equations of public predictions, variances, likelihoods."""

import re
from collections.abc import Iterator

import numpy as np

import mercer
from oracle.draw import Draw, Fit, Oracle, ulps
from oracle.exact import (
    EPS,
    MP,
    cholesky,
    exact,
    exp,
    expit,
    forward,
    largest,
    log,
    norm,
    softplus,
    solve,
)

FLOOR = 1e-8  # of the targets: what a residual is measured against, at least


def draw_ridge(draw: Draw) -> Fit:
    X = draw.samples()
    kernel = draw.kernel(X)
    top = float(largest(kernel(X, X).diagonal())) or 1.0
    machine = mercer.KernelRidge(
        draw.one([draw.power(-12, 12), top * draw.power(-8, 2), top * draw.power(-8, 2), "loo"]),
        kernel=kernel.kernel,
        bias=draw.chance(0.7),
    )
    return Fit(machine, X, draw.targets(X), draw.weights(len(X)), kernel, draw.harm)


def check_ridge(fit: Fit) -> Iterator[str]:
    m = fit.machine
    yield from _equations(fit, fit.output("predict"), exact(m.dual_coef_), m.penalty_, m.bias)
    if not hasattr(m, "coef_"):
        return
    used, X = fit.s > 0, exact(fit.X.astype(float))
    s, X, y, w = fit.s[used], X[used], exact(fit.y)[used], exact(m.coef_)
    left = X.T @ (s * (y - X @ w - MP.mpf(m.intercept_))) - m.penalty_ * w
    size = max(norm(X.T @ (s * _centred(y, s, m.bias))), FLOOR * norm(abs(X.T) @ abs(s * y)))
    rounding = ulps(w) * norm((abs(X.T) * s) @ abs(X) @ exact(np.ones(len(w)))) / (size or 1)
    stated = fit.stated.relative_residual
    yield from fit.false("residual of coef_", norm(left) / (size or 1), stated, rounding)


def _equations(fit: Fit, f: np.ndarray, a: np.ndarray, penalty: float, bias: bool) -> Iterator[str]:
    used = fit.s > 0
    s, y, a, f = fit.s[used], exact(fit.y)[used], a[used], f[used]
    left = y - f - MP.mpf(penalty) * a / s
    size = max(norm(_centred(y, s, bias)), FLOOR * norm(y)) or MP.one
    rounding = ulps(f, y) * MP.sqrt(len(y)) / size
    stated, of_rows = fit.stated.relative_residual, fit.stated.dual_residual
    said = re.search(r"but leave (\S+) of", fit.certificate.statement)
    if said is None:
        yield from fit.false("residual of predict", norm(left) / size, stated, rounding)
    else:
        if not norm(left) / size <= 1.05 * of_rows + rounding:  # stated in two digits
            yield f"residual of dual_coef_ is {float(norm(left) / size):.3g}; stated {of_rows:.3g}"
        yield from _weights(fit, f, s, y, penalty, bias)
    if bias:
        total = abs(a.sum()) / (max(abs(a).sum(), FLOOR * abs(s * y / MP.mpf(penalty)).sum()) or 1)
        yield from fit.false("sum of dual_coef_", total, fit.stated.bias_condition)


def _weights(
    fit: Fit, f: np.ndarray, s: np.ndarray, y: np.ndarray, penalty: float, bias: bool
) -> Iterator[str]:
    """Compare the equations of weights w of features F: K S (y - f) - p F w is F times theirs."""
    used = fit.s > 0
    K, asked = fit.K[np.ix_(used, used)], s * _centred(y, s, bias)
    own = f - MP.mpf(float(np.ravel(fit.machine.intercept_)[0])) if bias else f
    left = norm(K @ (s * (y - f)) - MP.mpf(penalty) * own)
    size = MP.sqrt(K.trace() * max(asked @ K @ asked, MP.zero)) or MP.one
    rounding = ulps(f, y) * norm(abs(K) @ s + MP.mpf(penalty)) / size
    yield from fit.false("residual of w", left / size, fit.stated.relative_residual, rounding)


def _centred(y: np.ndarray, s: np.ndarray, bias: bool) -> np.ndarray:
    return y - (s @ y) / s.sum() if bias else y


def draw_process(draw: Draw) -> Fit:
    X = draw.samples()
    kernel = draw.kernel(X)
    top = float(largest(kernel(X, X).diagonal())) or 1.0
    machine = mercer.GaussianProcess(
        kernel.kernel,
        noise=draw.one([1.0, 1e-6, 1e6]) * top * draw.power(-4, 1),
        bias=draw.chance(0.4),
    )
    return Fit(machine, X, draw.targets(X), draw.weights(len(X)), kernel, draw.harm)


def check_process(fit: Fit) -> Iterator[str]:
    m, used = fit.machine, fit.s > 0
    noise, s, y = MP.mpf(m.noise_), fit.s[used], exact(fit.y)[used]
    yield from _equations(fit, fit.output("predict"), exact(m.dual_coef_), m.noise_, m.bias)
    K, ones = fit.K[np.ix_(used, used)], exact(np.ones(len(y)))
    L = cholesky(K + np.diag(noise / s))
    assert L is not None
    half = forward(L, np.column_stack([K, y, ones]))
    across, q, u = half[:, :-2], half[:, -2], half[:, -1]
    variance = K.diagonal() - (across**2).sum(axis=0)
    squares, determinant, t = q @ q, 2 * log(L.diagonal()).sum() + log(s).sum(), u @ u
    if m.bias:
        variance = variance + (1 - u @ across) ** 2 / t
        squares, determinant = squares - (u @ q) ** 2 / t, determinant + MP.log(t)
    std = exact(m.predict(fit.X[used], return_std=True)[1])
    size = max(largest(K.diagonal()), largest(variance)) or MP.one
    yield from fit.false(
        "variance",
        largest(std**2 - variance) / size,
        fit.stated.variance_error,
        ulps(variance) / size,
    )
    total = s.sum()
    spread = determinant + (total - len(y)) * MP.log(noise) + (total - m.bias) * MP.log(2 * MP.pi)
    yield from _likelihood(fit, -(squares + spread) / 2, total)


def _likelihood(fit: Fit, true: MP.mpf, total: MP.mpf) -> Iterator[str]:
    found = fit.machine.log_marginal_likelihood_value_
    off, rounding = abs(found - true) / max(total, 1), 8 * ulps(true) / max(total, 1)
    known = re.search(r"is known to (\S+) only", fit.certificate.statement)
    stated = max(float(known[1]), fit.certificate.tol) if known else fit.certificate.tol
    yield from fit.false("log-likelihood", off, stated, rounding, stated)


def draw_tasks(draw: Draw) -> Fit:
    X = draw.samples()
    kernel = draw.kernel(X)
    top = float(largest(kernel(X, X).diagonal())) or 1.0
    y = np.column_stack([draw.targets(X), draw.targets(X)])
    if draw.chance(0.4):
        y[0, 1] = np.nan
    tasks = draw.one(
        [None, np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1e4, 1.0], [1.0, 1e-3]])]
    )
    machine = mercer.MultiTaskGaussianProcess(
        kernel.kernel, noise=top * draw.power(-4, 2), task_covariance=tasks
    )
    return Fit(machine, X, y, None, kernel, draw.harm)


def check_tasks(fit: Fit) -> Iterator[str]:
    m = fit.machine
    row, task = np.nonzero(~np.isnan(fit.y))
    y, f = exact(fit.y[row, task]), fit.output("predict")[row, task]
    a, noise = exact(m.dual_coef_)[row, task], MP.mpf(m.noise_)
    size = norm(y) or MP.one
    rounding = ulps(f, y) * MP.sqrt(len(y)) / size
    left, stated = norm(y - f - noise * a) / size, fit.stated.relative_residual
    yield from fit.false("residual of predict", left, stated + fit.stated.mismatch, rounding)
    C = fit.K[np.ix_(row, row)] * exact(m.task_covariance_)[np.ix_(task, task)]
    L = cholesky(C + np.diag(exact(np.full(len(y), m.noise_))))
    assert L is not None
    half = forward(L, np.column_stack([C, y]))
    variance, q = C.diagonal() - (half[:, :-1] ** 2).sum(axis=0), half[:, -1]
    std = exact(m.predict(fit.X, return_std=True)[1])[row, task]
    size = largest(C.diagonal()) or MP.one
    yield from fit.false(
        "variance",
        largest(std**2 - variance) / size,
        fit.stated.variance_error,
        ulps(variance) / size,
    )
    spread = 2 * log(L.diagonal()).sum() + len(y) * MP.log(2 * MP.pi)
    yield from _likelihood(fit, -(q @ q + spread) / 2, MP.mpf(len(y)))


# --- smooth losses -------------------------------------------------------------------------------


def draw_logistic(draw: Draw) -> Fit:
    X = draw.samples()
    kernel, y = draw.kernel(X), draw.labels(len(X))
    bias = draw.chance(0.7) and y.max() == 1
    machine = mercer.LogisticRegression(
        kernel.kernel, draw.one([draw.power(-12, 12), draw.power(-2, 2)]), bias=bool(bias)
    )
    return Fit(machine, X, y, draw.weights(len(X)), kernel, draw.harm)


def check_logistic(fit: Fit) -> Iterator[str]:
    m, used = fit.machine, fit.s > 0
    present = np.unique(fit.y[used])
    if len(present) != len(m.classes_):
        return
    f = fit.output("decision_function").reshape(len(fit.X), -1)[used]
    a = exact(m.dual_coef_).reshape(len(fit.X), -1)[used]
    said = re.search(r"values are known to (\S+)", fit.certificate.statement)
    known = MP.mpf(float(said[1]) if said else 0)
    yield from _risk(fit, f, a, fit.s[used], fit.y[used], MP.mpf(m.penalty), used, known)
    if m.bias:
        slopes = _slopes(f, fit.y[used])[1] * fit.s[used][:, None]
        total = largest(slopes.sum(axis=0)) / (abs(slopes).sum() or 1)
        rounding = (known + ulps(f)) * fit.s[used].sum() / (abs(slopes).sum() or 1)
        yield from fit.false("sum of slopes", total, fit.stated.stationarity, rounding)


def _slopes(f: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return losses, slopes and conjugates of the slopes, of two classes or of more."""
    if f.shape[1] == 1:
        sign = exact(2.0 * (y == y.max()) - 1.0)
        p = expit(-sign * f[:, 0])
        return softplus(-sign * f[:, 0]), (-sign * p)[:, None], _xlogx(p) + _xlogx(1 - p)
    E = exp(f - f.max(axis=1)[:, None])
    P = E / E.sum(axis=1)[:, None]
    own = P[np.arange(len(y)), y]
    return -log(own), P - exact(np.eye(f.shape[1]))[y], _xlogx(P).sum(axis=1)


_xlogx = np.frompyfunc(lambda p: p * MP.log(p) if p > 0 else MP.zero, 1, 1)


def _risk(
    fit: Fit,
    f: np.ndarray,
    a: np.ndarray,
    s: np.ndarray,
    y: np.ndarray,
    penalty: MP.mpf,
    used: np.ndarray,
    known: MP.mpf = MP.zero,
) -> Iterator[str]:
    """Compare the duality gap and the gradient of penalized logistic losses."""
    K, q = fit.K[np.ix_(used, used)], fit.stated
    losses, slopes, _ = _slopes(f, y)
    image = K @ a
    objective = s @ losses + penalty / 2 * (a * image).sum()
    if hasattr(q, "objective"):
        yield from fit.differs(
            "objective",
            q.objective,
            objective,
            1e-9 * objective + ulps(s * losses) + known * s.sum(),
        )
    moved = f + _balance(f, s, y) if getattr(fit.machine, "bias", False) else f
    _, pulls, conjugates = _slopes(moved, y)
    pulls = s[:, None] * pulls
    bound = -(s @ conjugates) - (pulls * (K @ pulls)).sum() / (2 * penalty)
    gap = (objective - bound) / (objective or 1)
    yield from fit.false(
        "relative gap", gap, q.relative_gap, (known + ulps(f)) * abs(pulls).sum() / (objective or 1)
    )
    left, pulls = penalty * a + s[:, None] * slopes, s[:, None] * slopes
    squared = max((left * (K @ left)).sum(), MP.zero)
    lengths = np.array([MP.sqrt(max(k, MP.zero)) for k in K.diagonal()], dtype=object)
    reach = (lengths @ abs(pulls).sum(axis=1)) or MP.one
    stated = q.stationarity if hasattr(q, "objective") else q.mode_stationarity
    rounding = (known + ulps(f)) * (lengths @ s) / reach
    yield from fit.false("gradient", MP.sqrt(squared) / reach, stated, rounding)


def _balance(f: np.ndarray, s: np.ndarray, y: np.ndarray) -> MP.mpf:
    """Return the change of the bias with which slopes add up to zero: Newton's steps, halved."""
    low, high = MP.mpf(-1e4), MP.mpf(1e4)
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (low, middle) if (s @ _slopes(f + middle, y)[1][:, 0]) > 0 else (middle, high)
    return (low + high) / 2


def draw_process_classes(draw: Draw) -> Fit:
    X = draw.samples()
    kernel, y = draw.kernel(X), draw.labels(len(X), 2)
    factor = draw.power(-4, 4) if draw.chance(0.5) else 1.0
    machine = mercer.GaussianProcessClassifier(factor * kernel.kernel)
    scaled = type(kernel)(machine.kernel, lambda x, y: MP.mpf(factor) * kernel.function(x, y))
    return Fit(machine, X, y, draw.weights(len(X)), scaled, draw.harm)


def check_process_classes(fit: Fit) -> Iterator[str]:
    m, used = fit.machine, fit.s > 0
    s, y, a = fit.s[used], fit.y[used], exact(m.dual_coef_)[used]
    if len(np.unique(y)) != 2:
        return
    K = fit.K[np.ix_(used, used)]
    f = K @ a
    known = 8 * EPS * largest(abs(K) @ abs(a))  # what rounding of the coefficients may hide
    if known > 1e-3:  # of latent values, which nothing public says
        return
    yield from _risk(fit, f, a, s, y, MP.one, used, known)
    for _ in range(4):  # Newton's steps from the mode that was found to the exact one
        f, a, W = _newton(K, f, s, y)
    A = exact(np.eye(len(y))) + K * W
    losses = _slopes(f, y)[0]
    true = -(s @ losses) - (a * f).sum() / 2 - MP.log(abs(_determinant(A))) / 2
    yield from _likelihood(fit, true, s.sum())


def _newton(
    K: np.ndarray, f: np.ndarray, s: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    slopes = s * _slopes(f, y)[1][:, 0]
    p = expit(f[:, 0])
    W = s * p * (1 - p)
    b = W * f[:, 0] - slopes
    a = b - W * solve(exact(np.eye(len(f))) + K * W, K @ b)
    return (K @ a)[:, None], a[:, None], W


def _determinant(A: np.ndarray) -> MP.mpf:
    return MP.det(MP.matrix(A.tolist()))


ORACLES: dict[str, Oracle] = {
    "KernelRidge": (draw_ridge, check_ridge),
    "GaussianProcess": (draw_process, check_process),
    "MultiTaskGaussianProcess": (draw_tasks, check_tasks),
    "LogisticRegression": (draw_logistic, check_logistic),
    "GaussianProcessClassifier": (draw_process_classes, check_process_classes),
}
