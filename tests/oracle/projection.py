"""Projections: eigenvalues and directions of exact matrices against what `transform` returns."""

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
    forward,
    largest,
    log,
    norm,
    rounded,
    solve,
    sqrt,
)

FAINT = 1e-3  # of the largest eigenvalue: what residuals of smaller ones are measured against
ORTHONORMAL = 1e-8


def centred(K: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Return the kernel matrix about the weighted mean, scaled by the roots of the weights."""
    mean = (s @ K) / s.sum()
    root = sqrt(s)
    return root[:, None] * (K - mean - mean[:, None] + (s @ mean) / s.sum()) * root


def check_pairs(
    fit: Fit, M: np.ndarray, values: np.ndarray, V: np.ndarray, known: np.ndarray
) -> Iterator[str]:
    """Check that these are the largest eigenpairs of M; columns of V are known to so much."""
    true, tol, q = eigenvalues(M), fit.certificate.tol, fit.stated
    kept = values > 0
    values, V, known, count = values[kept], V[:, kept], known[kept], int(kept.sum())
    if not count:
        return
    sizes = np.maximum(values, FAINT * values[0])
    off = largest((values - true[:count]) / sizes)
    yield from fit.false(
        "eigenvalue", off, max(q.residual, q.largest_outside - 1), 1e-11 + known[0] ** 2
    )
    for j, column in enumerate((M @ V - V * values).T):
        rounding = known[j] * values[0] / sizes[j]
        yield from fit.false("residual of transform", norm(column) / sizes[j], q.residual, rounding)
    skew = abs(V.T @ V - exact(np.eye(count))) - known - known[:, None]
    yield from fit.false("orthonormality", skew.max(), q.orthonormality, 0.0, ORTHONORMAL)
    if count < len(true):
        missed = (true[count] - values[-1]) / max(values[-1], MP.mpf(10) ** -12 * values[0])
        yield from fit.false("missed eigenvalue", missed, max(q.largest_outside - 1, 0), 1e-3, tol)


def draw_pca(draw: Draw) -> Fit:
    X = draw.samples()
    kernel = draw.kernel(X)
    count = draw.one([1, 2, 5, None, 0.9])
    machine = mercer.PCA(count, kernel=kernel.kernel, center=draw.chance(0.8))
    return Fit(machine, X, None, draw.weights(len(X)), kernel, draw.harm)


def check_pca(fit: Fit) -> Iterator[str]:
    m, used = fit.machine, fit.s > 0
    K, s = fit.K[np.ix_(used, used)], fit.s[used]
    M = centred(K, s) if m.center else sqrt(s)[:, None] * K * sqrt(s)
    values = exact(m.eigenvalues_)
    scores = fit.output("transform")[used]
    values = np.where(values > 0, values, MP.zero)
    size = np.where(values > 0, values, MP.one)
    ratio = largest(s * K.diagonal()) / size
    if isinstance(fit.kernel.kernel, mercer.kernels.Linear):  # scores are sums of features
        ratio = largest(M.diagonal()) / size + sqrt(ratio)
    known = 4 * EPS * len(K) * ratio
    V = sqrt(s)[:, None] * scores / sqrt(size)
    yield from check_pairs(fit, M, values, V, known)


def draw_mds(draw: Draw) -> Fit:
    return Fit(mercer.MDS(draw.one([1, 2])), draw.samples(3), harm=draw.harm)


def check_mds(fit: Fit) -> Iterator[str]:
    X, values = exact(fit.X), exact(fit.machine.eigenvalues_)
    M = centred(X @ X.T, fit.s)
    values = np.where(values > 0, values, MP.one * 0)
    size = np.where(values > 0, values, MP.one)
    V = exact(fit.machine.embedding_) / sqrt(size)
    known = 4 * EPS * len(X) * sqrt(largest(M.diagonal()) / size)
    yield from check_pairs(fit, M, values, V, known)


def draw_whiten(draw: Draw) -> Fit:
    X = draw.samples(3)
    return Fit(mercer.Whiten(rotate_back=False), X, None, draw.weights(len(X)), None, draw.harm)


def check_whiten(fit: Fit) -> Iterator[str]:
    Y, total = fit.output("transform")[:, : fit.machine.rank_], fit.s.sum()
    free = total - 1 if total > 1 else total
    yield from _white(fit, Y, free, fit.stated.residual, exact(fit.machine.whitening_))


def _white(
    fit: Fit, Y: np.ndarray, free: MP.mpf, stated: float, directions: np.ndarray
) -> Iterator[str]:
    covariance = (Y.T * fit.s) @ Y / free
    off = max(largest(covariance - exact(np.eye(Y.shape[1]))), largest(fit.s @ Y / fit.s.sum()))
    rounding = 4 * (ulps(fit.X) * abs(directions).sum(axis=0).max() + EPS * len(Y))  # of the mean
    yield from fit.false("covariance", off, stated, rounding, 1e-6)


def draw_ica(draw: Draw) -> Fit:
    X = draw.samples(8)
    options = {"algorithm": draw.one(["parallel", "deflation"]), "n_init": 1, "max_iter": 60}
    return Fit(mercer.ICA(**options), X, None, draw.weights(len(X)), None, draw.harm)


def check_ica(fit: Fit) -> Iterator[str]:
    yield from _white(
        fit,
        fit.output("transform"),
        fit.s.sum(),
        fit.stated.whiteness,
        exact(fit.machine.components_.T),
    )


def draw_pursuit(draw: Draw) -> Fit:
    X = draw.samples(8)
    return Fit(
        mercer.ProjectionPursuit(1, n_init=2), X, None, draw.weights(len(X)), None, draw.harm
    )


def draw_latent(draw: Draw) -> Fit:
    X = draw.samples(5)[:, :5]
    machine = mercer.ProbabilisticPCA(1, method=draw.one(["closed", "closed", "em"]))
    return Fit(machine, X, None, draw.weights(len(X)), None, draw.harm)


def check_latent(fit: Fit) -> Iterator[str]:
    m, X, share = fit.machine, exact(fit.X), fit.s / fit.s.sum()
    d, q, noise = X.shape[1], m.n_components_, MP.mpf(m.noise_variance_)
    W = exact(m.loadings_)
    L = cholesky(W @ W.T + noise * exact(np.eye(d)))
    if L is None:
        return
    half = forward(L, (X - exact(m.mean_)).T)
    true = (
        -(d * MP.log(2 * MP.pi) + 2 * log(L.diagonal()).sum() + share @ (half**2).sum(axis=0)) / 2
    )
    size = max(abs(true), MP.one)
    yield from fit.differs(
        "log_likelihood_", m.log_likelihood_, true, fit.certificate.tol / 100 * size
    )
    left = X - share @ X
    C = (left.T * share) @ left
    values = np.array(sorted(MP.eigsy(MP.matrix(C.tolist()), eigvals_only=True), reverse=True))
    best = max(
        values[q:].sum() / max(d - q, 1),
        noise if values[q:].sum() / max(d - q, 1) < noise / 2 else 0,
    )
    if best <= 0:
        return
    top = np.maximum(values[:q], best)
    misfit = (values[:q] / top).sum() + values[q:].sum() / best
    spread = log(top).sum() + (d - q) * MP.log(best)
    most = -(d * MP.log(2 * MP.pi) + spread + misfit) / 2
    stated = max(fit.stated.shortfall / float(size), 0)
    yield from fit.false("shortfall", (most - true) / size, stated, 1e-7)


def draw_cca(draw: Draw) -> Fit:
    X = draw.samples(5)[:, :3]
    y = np.column_stack([draw.targets(X), draw.random.standard_normal(len(X))])
    kernel = draw.kernel(X)
    top = float(largest(centred(kernel(X, X), exact(np.ones(len(X)))).diagonal())) or 1.0
    linear = isinstance(kernel.kernel, mercer.kernels.Linear)
    penalty = draw.one(["auto", 0.0] if linear else [top * draw.power(-6, 0)])
    machine = mercer.CCA(draw.one([1, 2]), kernel_x=kernel.kernel, penalty=penalty)
    return Fit(machine, X, y, draw.weights(len(X)), kernel, draw.harm)


def check_cca(fit: Fit) -> Iterator[str]:
    m, used = fit.machine, fit.s > 0
    s, Y = fit.s[used], exact(fit.y)[used]
    views = [centred(fit.K[np.ix_(used, used)], s), centred(Y @ Y.T, s)]
    factors = [exact(fit.X)[used], Y]
    tops = [largest(fit.K.diagonal()), largest((Y @ Y.T).diagonal())]
    hidden = [G.trace() <= 64 * EPS * t * s.sum() for G, t in zip(views, tops, strict=True)]
    if (any(hidden) and not m.correlations_.any()) or 0 in [G.trace() for G in views]:
        return  # which is what the statement says
    white = [
        _whitened(F, s) if not p else solve(G + MP.mpf(p) * G.trace() * exact(np.eye(len(s))), G)
        for F, G, p in zip(factors, views, m.penalty_, strict=True)
    ]
    if any(w is None for w in white):
        return
    true = np.zeros(len(m.correlations_))
    found = np.linalg.svd(rounded(white[0].T @ white[1]), compute_uv=False)[: len(true)]
    true[: len(found)] = found
    stated = max(fit.stated.correlation_error, fit.stated.gain, fit.stated.bound)
    yield from fit.false("correlation", float(abs(true - m.correlations_).max()), stated, 1e-12)


def _whitened(F: np.ndarray, s: np.ndarray) -> np.ndarray | None:
    """Return an orthonormal basis of weighted centred columns; None if they are dependent."""
    F = sqrt(s)[:, None] * (F - (s @ F) / s.sum())
    sizes = np.array([norm(column) or MP.one for column in F.T])
    C = (F / sizes).T @ (F / sizes)
    L = cholesky(C)
    if L is None or min(L.diagonal()) < 1e-4:
        return None
    return forward(L, (F / sizes).T).T


def draw_fisher(draw: Draw) -> Fit:
    X = draw.samples(3)
    kernel = draw.kernel(X)
    top = float(largest(kernel(X, X).diagonal())) or 1.0
    machine = mercer.FisherDiscriminant(kernel.kernel, penalty=top * draw.power(-8, 1))
    return Fit(machine, X, draw.labels(len(X)), draw.weights(len(X)), kernel, draw.harm)


def check_fisher(fit: Fit) -> Iterator[str]:
    m, used = fit.machine, fit.s > 0
    y, share = fit.y[used], fit.s[used] / fit.s[used].sum()
    linear = isinstance(fit.kernel.kernel, mercer.kernels.Linear)
    F = exact(fit.X)[used] if linear else cholesky(fit.K[np.ix_(used, used)])
    if F is None or len(np.unique(y)) != len(m.classes_):
        return
    F = F - share @ F
    inside, steps = MP.mpf(m.penalty_) * exact(np.eye(F.shape[1])), []
    for label in m.classes_:
        own = y == label
        mean = (share[own] @ F[own]) / share[own].sum()
        left = F[own] - mean
        inside = inside + (left.T * share[own]) @ left
        steps.append(MP.sqrt(share[own].sum()) * mean)
    L = cholesky(inside)
    if L is None:
        return
    half = forward(L, np.array(steps).T)
    true = eigenvalues(half.T @ half)[: len(m.ratios_)]
    size = true[0] or MP.one
    off = largest(exact(m.ratios_) - true) / size
    rounding = 8 * EPS * len(y) * largest(fit.K.diagonal()) / MP.mpf(m.penalty_)  # of K
    yield from fit.false("ratio", off, max(fit.stated.residual, fit.stated.gain), rounding)


ORACLES: dict[str, Oracle] = {
    "PCA": (draw_pca, check_pca),
    "MDS": (draw_mds, check_mds),
    "Whiten": (draw_whiten, check_whiten),
    "ICA": (draw_ica, check_ica),
    "ProjectionPursuit": (draw_pursuit, check_ica),
    "ProbabilisticPCA": (draw_latent, check_latent),
    "CCA": (draw_cca, check_cca),
    "FisherDiscriminant": (draw_fisher, check_fisher),
}
