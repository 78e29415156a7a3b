"""Classes by means, neighbors and Gaussians; separations; distributions of largest entropy."""

import re
from collections.abc import Iterator

import numpy as np

import mercer
from oracle.draw import Draw, Fit, Oracle, ulps
from oracle.exact import EPS, MP, cholesky, exact, exp, forward, largest, log, rounded

SMALL = 1e-145  # deviations of columns: below, Gaussians warn and may say nothing

# --- means and neighbors -------------------------------------------------------------------------


def draw_means(draw: Draw) -> Fit:
    X = draw.samples()
    kernel = draw.kernel(X)
    machine = mercer.NearestMean(kernel.kernel)
    return Fit(machine, X, draw.labels(len(X)), draw.weights(len(X)), kernel, draw.harm)


def check_means(fit: Fit) -> Iterator[str]:
    m, used = fit.machine, fit.s > 0
    s, K, y = fit.s[used], fit.K[np.ix_(used, used)], fit.y[used]
    Z = exact((y[:, None] == m.classes_).astype(float)) * s[:, None]
    Z = Z / Z.sum(axis=0)
    middle, share = (s @ K) / s.sum(), s / s.sum()
    K = K - middle - middle[:, None] + share @ middle  # no distance changes
    if largest(K.diagonal()) <= MP.mpf(10) ** -30 * largest(fit.K.diagonal()):
        return
    squared = (Z * (K @ Z)).sum(axis=0)
    longest = largest(K.diagonal()) or MP.one
    D = K.diagonal()[:, None] - 2 * (K @ Z) + squared
    pairs = squared[:, None] + squared - 2 * (Z.T @ K @ Z)
    closest = pairs[np.triu_indices(len(pairs), 1)].min()
    chosen = np.searchsorted(m.classes_, m.predict(fit.X[used]))
    behind = max(D[np.arange(len(D)), chosen] - D.min(axis=1)) / longest
    said = re.search(r"distances are known to (\S+) of", fit.certificate.statement)
    known = 1.05 * float(said[1]) if said else 0.0  # stated in two digits
    yield from fit.false("distance beyond the nearest mean", behind, 1e-9, known)
    scale = MP.sqrt(max(closest, MP.zero) / longest)
    yield from fit.false(
        "distance of means", abs(fit.stated.closest_pair - scale), 1e-3 * scale, 0.0, 1e-3
    )


def draw_neighbors(draw: Draw) -> Fit:
    X = draw.samples(3)
    kernel, options = draw.kernel(X), {"by": draw.one(["distance", "distance", "similarity"])}
    machine = mercer.NearestNeighbors(draw.one([1, 2]), kernel=kernel.kernel, **options)
    return Fit(machine, X, draw.labels(len(X)), None, kernel, draw.harm)


def check_neighbors(fit: Fit) -> Iterator[str]:
    K, similar = fit.K, fit.machine.by == "similarity"
    key = -K if similar else K.diagonal()[:, None] + K.diagonal() - 2 * K
    given = fit.machine.kneighbors(fit.X)
    index = np.asarray(given[1] if isinstance(given, tuple) else given.index)
    taken = np.zeros(key.shape, dtype=bool)
    np.put_along_axis(taken, index, True, axis=1)
    if (taken.sum(axis=1) != index.shape[1]).any():
        yield "a neighbor is given twice"
    if taken.all():
        return
    farthest = np.where(taken, key, -MP.inf).max(axis=1)
    nearest = np.where(taken, MP.inf, key).min(axis=1)
    size = abs(nearest) + (largest(K) * 8 * EPS if similar else 0)
    behind = [(f - n) / (d or MP.one) for f, n, d in zip(farthest, nearest, size, strict=True)]
    rounding = 64 * EPS if not similar else 1.0
    yield from fit.false("distance beyond one left out", max(behind), 0.0, rounding)


# --- Bayes ---------------------------------------------------------------------------------------


def draw_naive(draw: Draw) -> Fit:
    X = draw.samples(4)
    X = X + 1e-3 * np.abs(X).max() * draw.random.standard_normal(X.shape)
    y, weights = draw.labels(len(X)), draw.weights(len(X))
    return Fit(mercer.NaiveBayes(kinds="gaussian"), X, y, weights, None, draw.harm)


def check_naive(fit: Fit) -> Iterator[str]:
    """Slopes of the likelihood by means and logarithms of variances, and its probabilities."""
    m, X, used = fit.machine, exact(fit.X), fit.s > 0
    model, stated = m.solution_.value, fit.stated.slope
    share = fit.s / fit.s.sum()
    spread = (share @ (X - share @ X) ** 2) * MP.mpf(m.var_smoothing)
    small = spread / MP.mpf(m.var_smoothing) <= SMALL**2  # their squares vanish, as a warning says
    constant = small | (spread <= MP.mpf(10) ** -36 * (share @ X) ** 2)  # they say nothing, by rule
    scores = []
    for c, label in enumerate(m.classes_):
        own = (fit.y == label) & used
        if not own.any():
            return
        s, rows = fit.s[own] / fit.s[own].sum(), X[own]
        mean, variance = exact(model.mean[c]), exact(model.variance[c])
        off = abs(s @ rows - mean) / np.array([MP.sqrt(v) for v in variance])
        slope = (s @ (rows - mean) ** 2 / variance - 1) / 2
        held = variance <= np.where(constant, MP.inf, np.maximum(spread * 1.000001, 1e-290))
        slope = np.where(held, np.maximum(slope, MP.zero), abs(slope))
        rounding = 4 * EPS * max(abs(mean) / np.array([MP.sqrt(v) for v in variance]))
        yield from fit.false("slope by a mean", max(off), stated, rounding)
        yield from fit.false("slope by a variance", max(slope), stated, 1e-7)
        terms = (X - mean) ** 2 / variance + log(variance)
        scores.append(-terms.sum(axis=1) / 2 + MP.log(fit.s[own].sum() / fit.s[used].sum()))
    joint = np.column_stack(scores)
    top = joint.max(axis=1)[:, None]
    true = exp(joint - top) / exp(joint - top).sum(axis=1)[:, None]
    size = max(MP.one, largest(joint)) * MP.mpf(10) ** -12
    yield from fit.differs("predict_proba", rounded(fit.output("predict_proba")), true, size)


def draw_gaussians(draw: Draw) -> Fit:
    X = draw.samples(5)[:, :3]
    shape = draw.one(["full", "diagonal", "spherical"])
    machine = mercer.GaussianClassifier(shape, shared=draw.chance(0.3))
    return Fit(machine, X, draw.labels(len(X)), draw.weights(len(X)), None, draw.harm)


def check_gaussians(fit: Fit) -> Iterator[str]:
    """Means in units of the class, and covariances against the sample's where no floor holds."""
    m, X, d = fit.machine, exact(fit.X), fit.X.shape[1]
    if m.floored_.any():
        return
    found, scatter = np.asarray(m.covariance_), []
    for c, label in enumerate(m.classes_):
        own = (fit.y == label) & (fit.s > 0)
        if not own.any():
            return
        s = fit.s[own] / fit.s[own].sum()
        C = found if m.shared else found[c]
        C = exact(C if np.ndim(C) == 2 else C * np.eye(d))
        L = cholesky(C)
        if L is None:
            return
        mean = s @ X[own]
        off = largest(forward(L, (exact(m.means_[c]) - mean)[:, None]))
        rounding = largest(forward(L, np.diag(ulps(m.means_[c]) * exact(np.ones(d)))))
        yield from fit.false("slope by a mean", off, fit.stated.mean_slope, rounding)
        left = X[own] - mean
        scatter.append(((left.T * s) @ left, fit.s[own].sum(), L))
    if m.shared:
        total = sum(weight for _, weight, _ in scatter)
        pooled = sum(S * weight for S, weight, _ in scatter) / total
        scatter = [(pooled, total, scatter[0][2])]
    for sample, _, L in scatter:
        C = sample
        if m.covariance != "full":
            widths = C.diagonal() if m.covariance == "diagonal" else C.trace() / d + 0 * C[0]
            C = np.diag(widths)
        white = forward(L, forward(L, C).T)
        known = 64 * EPS * largest(C) * largest(forward(L, exact(np.eye(d)))) ** 2
        off = largest(white - exact(np.eye(d)))
        yield from fit.false("slope by a covariance", off, fit.stated.slope, known)


# --- separation and entropy ----------------------------------------------------------------------


def draw_perceptron(draw: Draw) -> Fit:
    X = draw.samples()
    kernel = draw.kernel(X)
    machine = mercer.Perceptron(kernel.kernel, max_epochs=200, bias=draw.chance(0.7))
    return Fit(machine, X, draw.labels(len(X), 2), None, kernel, draw.harm)


def check_perceptron(fit: Fit) -> Iterator[str]:
    """The margin of the decision function, and Novikoff's bound with the exact radius."""
    m, q, value = fit.machine, fit.stated, fit.machine.solution_.value
    sign = exact(np.where(fit.y == m.classes_[1], 1.0, -1.0))
    if len(value.coef):
        a = exact(value.coef[:, 0])
        squared = a @ fit.K @ a
    elif hasattr(m, "coef_"):
        squared = (exact(np.ravel(m.coef_)) ** 2).sum()
    else:
        return
    norm = MP.sqrt(squared + (MP.mpf(value.intercept[0]) ** 2 if m.bias else 0))
    margin = min(sign * fit.output("decision_function")) / norm
    radius = MP.sqrt(largest(fit.K.diagonal()) + m.bias)
    if q.margin > margin * (1 + MP.mpf(10) ** -6):
        yield f"margin is {float(margin):.6g}; stated {q.margin:.6g}"
    if q.mistakes > (radius / margin) ** 2 * (1 + MP.mpf(10) ** -6):
        yield f"{q.mistakes} mistakes are above the bound {float((radius / margin) ** 2):.6g}"


def draw_entropy(draw: Draw) -> Fit:
    X = draw.samples(4)[:, :3]
    p = draw.random.dirichlet(np.ones(len(X)))
    method = draw.one(["newton", "newton", "scaling"])
    machine = mercer.MaximumEntropy(method=method, max_iter=2000)
    return Fit(machine, X, p @ X, None, None, draw.harm)


def check_entropy(fit: Fit) -> Iterator[str]:
    m, q, tol = fit.machine, fit.stated, fit.certificate.tol
    X, b, p = exact(fit.X), exact(fit.y), exact(m.probabilities_)
    yield from fit.false("sum of probabilities", abs(p.sum() - 1), 0.0, 0.0, 1e-9)
    gaps = X - b
    scale = np.array([largest(column) or MP.one for column in gaps.T])
    noise = 4 * EPS * np.array([largest(c) for c in X.T]) / scale
    off = largest(np.maximum(abs(p @ gaps) / scale - noise, MP.zero))
    yield from fit.false("expectation", off, q.infeasibility)
    if m.at_border_:
        return
    multipliers, n = exact(m.multipliers_), len(X)
    some = p > 0
    primal = p[some] @ log(n * p[some])
    level = gaps @ multipliers
    top = max(level)
    dual = -(MP.log(exp(level - top).sum() / n) + top)
    allowed = tol * max(MP.one, abs(primal)) + abs(multipliers * scale) @ noise
    if primal - dual > allowed * MP.mpf("1.01"):
        yield f"relative entropy is {float(primal - dual):.3g} above the dual; {float(allowed):.3g}"
    yield from fit.differs(
        "relative_entropy_", m.relative_entropy_, primal, tol * max(1, abs(primal))
    )


ORACLES: dict[str, Oracle] = {
    "NearestMean": (draw_means, check_means),
    "NearestNeighbors": (draw_neighbors, check_neighbors),
    "NaiveBayes": (draw_naive, check_naive),
    "GaussianClassifier": (draw_gaussians, check_gaussians),
    "Perceptron": (draw_perceptron, check_perceptron),
    "MaximumEntropy": (draw_entropy, check_entropy),
}
