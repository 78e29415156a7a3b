"""Clusters, mixtures and graphs: distances, gains of moves and steps, and linear equations."""

import re
from collections.abc import Iterator

import numpy as np

import mercer
from oracle.draw import Draw, Fit, Oracle, ulps
from oracle.exact import (
    EPS,
    MP,
    cholesky,
    eigenvalues,
    exact,
    exp,
    forward,
    gaussian,
    largest,
    log,
    norm,
    rounded,
    solve,
    sqrt,
)
from oracle.margins import Box

KNOWN = r"the objective is known to ([^\s;]+)"
SCATTER = MP.mpf(10) ** -6  # of the scatter: what gains are shares of, at least


def draw_kmeans(draw: Draw) -> Fit:
    X = draw.samples(3)
    kernel = draw.kernel(X)
    machine = mercer.KMeans(draw.one([1, 2, 2, 3]), kernel.kernel, n_init=2, random_state=0)
    return Fit(machine, X, None, draw.weights(len(X)), kernel, draw.harm)


def check_kmeans(fit: Fit) -> Iterator[str]:
    m, used, q = fit.machine, fit.s > 0, fit.stated
    s, labels, K = fit.s[used], m.labels_[used], fit.K[np.ix_(used, used)]
    Z = exact(np.eye(m.n_clusters))[labels] * s[:, None]
    W = Z.sum(axis=0)
    if min(W) == 0:
        yield "a cluster is empty"
        return
    sums = K @ Z
    D = K.diagonal()[:, None] - 2 * sums / W + (Z * sums).sum(axis=0) / W**2
    own = D[np.arange(len(s)), labels]
    objective, mean = s @ own, (s @ K) / s.sum()
    scatter = s @ K.diagonal() - mean @ s
    if scatter <= MP.mpf(10) ** -40 * (s @ abs(K.diagonal())):  # samples are equal: 50 digits lie
        yield from fit.false("inertia_ of equal samples", MP.mpf(m.inertia_), 0.0)
        return
    size = max(objective, SCATTER * scatter) or MP.one
    known = float(said[1]) if (said := re.search(KNOWN, fit.certificate.statement)) else 0.0
    allowed = MP.mpf(10) ** -6 * size + 1.05 * known * q.unit  # stated in two digits
    yield from fit.differs("inertia_", m.inertia_, objective, allowed)
    excess = s @ (own - D.min(axis=1)) / size
    yield from fit.false("reassignment gain", excess, q.reassignment_gain)
    if m.n_clusters == 1:
        return
    alone = np.bincount(labels, minlength=m.n_clusters)[labels] < 2
    leave = np.where(alone, MP.zero, s * W[labels] / np.where(alone, MP.one, W[labels] - s) * own)
    join = s[:, None] * W / (W + s[:, None]) * D
    join[np.arange(len(s)), labels] = MP.inf
    gain = max(leave - join.min(axis=1)) / size
    yield from fit.false("gain of a move", gain, q.move_gain)


def draw_spectral(draw: Draw) -> Fit:
    X = draw.samples(5)
    size = float(np.abs(X - X.mean(axis=0)).max()) or 1.0
    kernel = gaussian(float(f"{size * draw.power(-1, 1):.3g}"))
    machine = mercer.SpectralClustering(2, kernel.kernel, n_init=2, random_state=0)
    return Fit(machine, X, None, None, kernel, draw.harm)


def check_spectral(fit: Fit) -> Iterator[str]:
    m, degrees = fit.machine, fit.K.sum(axis=1)
    off = largest(exact(m.degrees_) / degrees - 1)
    yield from fit.false("degrees_", off, fit.certificate.tol)
    values, root = exact(m.eigenvalues_), sqrt(degrees)
    true = eigenvalues(fit.K / root[:, None] / root)[: len(values)]
    off = largest((values - true) / np.maximum(true, true[0] / 1000))
    yield from fit.false(
        "eigenvalue", off, max(fit.stated.residual, fit.stated.largest_outside - 1)
    )


# --- mixtures ------------------------------------------------------------------------------------


def draw_gaussians(draw: Draw) -> Fit:
    X = draw.samples(8)[:, :3]
    shape = draw.one(["full", "diagonal", "spherical"])
    machine = mercer.GaussianMixture(draw.one([1, 2]), covariance=shape, n_init=1)
    return Fit(machine, X, None, draw.weights(len(X)), None, draw.harm)


def _log_gaussian(X: np.ndarray, mean: np.ndarray, C: np.ndarray) -> np.ndarray | None:
    L = cholesky(C)
    if L is None:
        return None
    half = forward(L, (X - mean).T)
    return (
        -((half**2).sum(axis=0) + 2 * log(L.diagonal()).sum() + len(mean) * MP.log(2 * MP.pi)) / 2
    )


def _mixed(joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log-densities of samples, and responsibilities, from joint log-densities (n, k)."""
    top = joint.max(axis=1)
    parts = exp(joint - top[:, None])
    mass = parts.sum(axis=1)
    return top + log(mass), parts / mass[:, None]


def check_gaussians(fit: Fit) -> Iterator[str]:
    """A step of expectation maximization: shares and means, and covariances off their floor."""
    m, X, s, tol = fit.machine, exact(fit.X), fit.s, fit.certificate.tol
    shares, means, d = exact(m.weights_), exact(m.means_), X.shape[1]
    C = [exact(c if np.ndim(c) == 2 else c * np.eye(d)) for c in m.covariances_]
    if min(shares) <= 0:
        return
    joint = [_log_gaussian(X, mean, c) for mean, c in zip(means, C, strict=True)]
    if any(part is None for part in joint):
        return
    here, R = _mixed(np.column_stack(joint) + log(shares))
    mean = s @ here / s.sum()
    width = min(eigenvalues(c)[-1] for c in C)
    known = (
        16 * d * ulps(means) ** 2 / max(width, MP.mpf(EPS) ** 2)
    )  # the means are known to an ulp
    size = max(1, abs(mean))
    yield from fit.differs("log-likelihood", fit.stated.log_likelihood, mean, tol * size + known)
    mass = s @ R
    if min(mass) == 0:
        return
    moved = ((R.T * s) @ X) / mass[:, None]
    spread = ((X - s @ X / s.sum()) ** 2 * s[:, None]).sum(axis=0) / s.sum()
    alike = 4 * EPS * abs(X).max(axis=0)  # columns that are constant but for rounding
    widest = sqrt(np.where(spread > alike**2, spread, MP.one))  # the floor is a share of squares
    widest = largest(widest) + 0 * widest if m.covariance == "spherical" else widest
    after = []
    for k, center in enumerate(moved):
        left = X - center
        c = (left.T * (s * R[:, k])) @ left / mass[k]
        if m.covariance != "full":
            widths = c.diagonal() if m.covariance == "diagonal" else c.trace() / d + 0 * center
            c = np.diag(widths)
        held = np.linalg.eigvalsh(rounded(c / widest / widest[:, None]))[0] < 1.01 * m.floor
        part = None if held else _log_gaussian(X, center, c)
        after.append(_log_gaussian(X, center, C[k]) if part is None else part)
    later, _ = _mixed(np.column_stack(after) + log(mass / s.sum()))
    gain = s @ (later - here) / s.sum()
    yield from fit.false("gain of a step", gain, fit.stated.step_gain, 1e-9 * size + known)


def draw_bernoulli(draw: Draw) -> Fit:
    X = (draw.samples(5) > draw.one([0.0, 0.0, 1.0])).astype(float)
    machine = mercer.BernoulliMixture(draw.one([1, 2, 3]), n_init=1, smoothing=draw.one([0.1, 1.0]))
    return Fit(machine, X, None, draw.weights(len(X)), None, draw.harm)


def draw_words(draw: Draw) -> Fit:
    X = np.floor(3 * np.abs(draw.random.standard_normal((max(draw.n, 5), draw.d + 1))))
    X[0] += 1
    machine = mercer.MultinomialMixture(draw.one([1, 2, 3]), source="documents")
    return Fit(machine, X, None, None, None, draw.harm)


def check_table(fit: Fit) -> Iterator[str]:
    """A step of expectation maximization with a smoothed table of probabilities."""
    m, X, s = fit.machine, exact(fit.X), fit.s
    words = isinstance(m, mercer.MultinomialMixture)
    table, shares = exact(m.components_ if words else m.means_), exact(m.weights_)
    if min(shares) <= 0:
        return

    def objective(table: np.ndarray, shares: np.ndarray) -> tuple[MP.mpf, MP.mpf, np.ndarray]:
        odds = [log(table)] if words else [log(table), log(1 - table)]
        joint = X @ odds[0].T if words else X @ odds[0].T + (1 - X) @ odds[1].T
        here, R = _mixed(joint + log(shares))
        return s @ here, s @ here + m.smoothing * sum(part.sum() for part in odds), R

    plain, before, R = objective(table, shares)
    total = s.sum()
    mean, tol = plain / total, fit.certificate.tol
    yield from fit.differs(
        "log-likelihood", fit.stated.log_likelihood, mean, tol * max(1, abs(mean))
    )
    mass, first = s @ R, (R.T * s) @ X + MP.mpf(m.smoothing)
    size = first.sum(axis=1)[:, None] if words else (mass + 2 * MP.mpf(m.smoothing))[:, None]
    gain = (objective(first / size, mass / mass.sum())[1] - before) / total
    yield from fit.false("gain of a step", gain, fit.stated.step_gain, 1e-9 * max(1, abs(mean)))


# --- graphs --------------------------------------------------------------------------------------


def _partly(draw: Draw, y: np.ndarray, unknown: float) -> np.ndarray:
    """Hide most labels, but one of each class."""
    known = np.unique(y, return_index=True)[1]
    hidden = draw.random.random(len(y)) < 0.6
    hidden[known] = False
    return np.where(hidden, unknown, y)


def _graph_kernel(draw: Draw, X: np.ndarray) -> object:
    size = float(np.abs(X - X.mean(axis=0)).max()) or 1.0
    return gaussian(float(f"{size * draw.power(-1, 1):.3g}"))


def draw_propagation(draw: Draw) -> Fit:
    X = draw.samples(5)
    kernel, y = _graph_kernel(draw, X), _partly(draw, draw.labels(len(X)), -1)
    return Fit(
        mercer.LabelPropagation(kernel.kernel, neighbors=None), X, y, None, kernel, draw.harm
    )


def draw_spreading(draw: Draw) -> Fit:
    X = draw.samples(5)
    kernel, y = _graph_kernel(draw, X), _partly(draw, draw.labels(len(X)), -1)
    machine = mercer.LabelSpreading(
        kernel.kernel, alpha=draw.one([0.1, 0.9, 0.999]), neighbors=None
    )
    return Fit(machine, X, y, None, kernel, draw.harm)


def draw_harmonic(draw: Draw) -> Fit:
    X = draw.samples(5)
    kernel, y = _graph_kernel(draw, X), _partly(draw, draw.targets(X), np.nan)
    return Fit(
        mercer.HarmonicRegressor(kernel.kernel, neighbors=None), X, y, None, kernel, draw.harm
    )


def check_graph(fit: Fit) -> Iterator[str]:
    """Solve the equations of the graph: a system with a row for each sample."""
    m, q = fit.machine, fit.stated
    W = fit.K - np.diag(fit.K.diagonal())
    degrees, n = W.sum(axis=1), len(W)
    if q.unreached or min(degrees) == 0:
        return
    if isinstance(m, mercer.HarmonicRegressor):
        known, found = ~np.isnan(fit.y), exact(m.values_)[:, None]
        Y = exact(np.where(known, fit.y, 0.0))[:, None]
    else:
        known, found = fit.y != -1, exact(m.label_distributions_)
        Y = exact((fit.y[:, None] == m.classes_) & known[:, None]) * MP.one
    if isinstance(m, mercer.LabelSpreading):
        root = sqrt(degrees)
        S = W / root[:, None] / root
        true = (1 - MP.mpf(m.alpha)) * solve(exact(np.eye(n)) - MP.mpf(m.alpha) * S, Y)
        true = true / true.sum(axis=1)[:, None]
        return_size = MP.one
    else:
        A = np.where(known[:, None], exact(np.eye(n)), exact(np.eye(n)) - W / degrees[:, None])
        true, return_size = solve(A, np.where(known[:, None], Y, MP.zero)), largest(Y) or MP.one
    off = largest(found - true) / return_size
    yield from fit.false("values", off, q.error, ulps(found) / return_size)


def _deformation(fit: Fit, ratio: float) -> np.ndarray:
    """Return M: the Laplacian of the graph of all samples, over its mean degree."""
    W = fit.K - np.diag(fit.K.diagonal())
    degrees = W.sum(axis=1)
    mean = degrees.sum() / len(W)
    return MP.mpf(ratio) / mean * (np.diag(degrees) - W) if mean else 0 * W


def draw_manifold_ridge(draw: Draw) -> Fit:
    X = draw.samples(5)
    kernel, y = _graph_kernel(draw, X), _partly(draw, draw.targets(X), np.nan)
    machine = mercer.LaplacianRidge(
        draw.power(-4, 2), kernel.kernel, intrinsic_penalty=draw.power(-3, 3), neighbors=None
    )
    return Fit(machine, X, y, None, kernel, draw.harm)


def check_manifold_ridge(fit: Fit) -> Iterator[str]:
    """Known samples: y - f = penalty a + M h; all others: penalty a + M h = 0."""
    m, known = fit.machine, ~np.isnan(fit.y)
    f, y = fit.output("predict"), exact(np.where(known, fit.y, 0.0))
    a, p = exact(m.dual_coef_), MP.mpf(m.penalty)
    pulled = p * a + _deformation(fit, m.intrinsic_penalty) @ (f - MP.mpf(m.intercept_))
    left = np.where(known, y - f, MP.zero) - pulled
    size = norm((y - y[known].mean())[known] if m.bias else y[known])
    size = max(size, 1e-8 * norm(y)) or MP.one
    bend = largest(abs(_deformation(fit, m.intrinsic_penalty)).sum(axis=1))
    rounding = ulps(f) * (1 + bend) * MP.sqrt(len(y)) / size
    moved = abs(exact(m.machine_.dual_coef_)).sum() * largest(fit.K.diagonal()) / size
    stated = fit.stated.fit_error + float(fit.stated.kernel_error * moved)
    yield from fit.false("residual of predict", norm(left[known]) / size, stated, rounding)


def draw_manifold_svc(draw: Draw) -> Fit:
    X = draw.samples(5)
    kernel, y = _graph_kernel(draw, X), _partly(draw, draw.labels(len(X), 2), -1)
    machine = mercer.LaplacianSVC(
        kernel.kernel, draw.power(-2, 3), intrinsic_penalty=draw.power(-3, 3), neighbors=None
    )
    return Fit(machine, X, y, None, kernel, draw.harm)


def check_manifold_svc(fit: Fit) -> Iterator[str]:
    m, known = fit.machine, fit.machine.labelled_
    sign = exact(np.where(fit.y[known] == m.classes_[1], 1.0, -1.0))
    b, zero = exact(np.zeros(len(known))), 0 * sign
    b[m.machine_.support_] = exact(np.ravel(m.machine_.dual_coef_))
    f = fit.output("decision_function")[known]
    C = zero + MP.mpf(m.C)
    lower, upper = np.where(sign > 0, zero, -C), np.where(sign > 0, C, zero)
    stated = fit.certificate.tol  # of the fit; its own numbers are not kept
    box = Box(b, f, sign, lower, upper, zero)
    yield from fit.false("violation", box.violation(), stated, ulps(f))


ORACLES: dict[str, Oracle] = {
    "KMeans": (draw_kmeans, check_kmeans),
    "SpectralClustering": (draw_spectral, check_spectral),
    "GaussianMixture": (draw_gaussians, check_gaussians),
    "BernoulliMixture": (draw_bernoulli, check_table),
    "MultinomialMixture": (draw_words, check_table),
    "LabelPropagation": (draw_propagation, check_graph),
    "LabelSpreading": (draw_spreading, check_graph),
    "HarmonicRegressor": (draw_harmonic, check_graph),
    "LaplacianRidge": (draw_manifold_ridge, check_manifold_ridge),
    "LaplacianSVC": (draw_manifold_svc, check_manifold_svc),
}
