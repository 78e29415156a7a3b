"""Support vector machines: conditions and duality gaps of what the decision function returns."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import mercer
from oracle.draw import Draw, Fit, Oracle, ulps
from oracle.exact import MP, exact, largest, rounded

AT_BOUND = 1e-9  # of the box, or of the largest coefficient: as near counts as at the bound
LEAST_BOUND = 1e10  # no weight of slack below that is replaced
NO_HALF_SPACE, NO_BALL = 1e-5, 1e-10  # of a median k(x, x): units where these have no size
VACUOUS = 0.995  # relative gaps from here on say nothing, and the statement says so


@dataclass
class Box:
    """max p'b - b'Kb/2 - d'b^2/2 - e |b|_1 in a box, where the sum of b is given.

    Attributes
    ----------
    b, f : array
        Coefficients, and K b + offset as the public method returns it.
    linear, lower, upper, shift : array
        p, the box and d.
    epsilon, unit : number
        e, and what violations are measured in.
    """

    b: np.ndarray
    f: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    shift: np.ndarray
    epsilon: MP.mpf = MP.zero
    unit: MP.mpf = MP.one

    def violation(self) -> MP.mpf:
        """Return how far any slope is from what the conditions ask, against the offset."""
        near = AT_BOUND * np.minimum(self.upper - self.lower, largest(self.b))
        slope, e = self.linear - self.f - self.shift * self.b, self.epsilon
        up = np.where(self.b >= -near, slope - e, slope + e)
        down = np.where(self.b <= near, slope + e, slope - e)
        rising = np.where(self.b < self.upper - near, up, MP.zero)
        falling = np.where(self.b > self.lower + near, -down, MP.zero)
        return max(*rising, *falling, MP.zero) / self.unit


def _coefficients(fit: Fit) -> np.ndarray:
    b = exact(np.zeros(len(fit.X)))
    b[fit.machine.support_] = exact(np.ravel(fit.machine.dual_coef_))
    return b


def _conditions(fit: Fit, box: Box, total: MP.mpf) -> Iterator[str]:
    q = fit.stated
    stated = max(q.violation, q.intercept_error)
    rounding = ulps(box.f, box.linear) / box.unit
    yield from fit.false("violation", box.violation(), stated, rounding)
    outside = max(
        largest(np.maximum(box.lower - box.b, 0)), largest(np.maximum(box.b - box.upper, 0))
    )
    size = max(abs(box.b).sum(), abs(total)) or MP.one
    off = max(outside / (largest(box.b) or 1), abs(box.b.sum() - total) / size)
    yield from fit.false("infeasibility", off, q.infeasibility, 1e-15, tol=1e-9)


def _gap(fit: Fit, primal: MP.mpf, dual: MP.mpf, rounding: MP.mpf) -> Iterator[str]:
    """Compare the primal objective of the public function with the dual one."""
    q = fit.stated
    if not q.relative_gap < VACUOUS:
        return
    size = max(abs(primal), abs(dual)) or MP.one
    allowed = q.gap * MP.mpf("1.01") + 1e-6 * size + rounding
    if primal - dual > allowed:
        yield (
            f"gap is {float((primal - dual) / size):.3g} of the objective {float(primal):.6g}; "
            f"stated {q.relative_gap:.3g} of {q.primal:.6g}"
        )


def _stated_rounding(fit: Fit) -> MP.mpf:
    """Return what the certificate says that values are off by: the gap is that of coefficients."""
    return MP.mpf(fit.stated.rounding) if np.isfinite(fit.stated.rounding) else MP.zero


def _hard(C: np.ndarray) -> np.ndarray:
    return np.where(C > 0, 1 / (2 * np.where(C > 0, C, MP.one)), MP.zero)


def _costs(fit: Fit) -> np.ndarray:
    """Return the weight of slack of each sample; equal samples share what the fit says it uses."""
    C = fit.s * MP.mpf(fit.machine.C)
    said = re.search(r"are taken as ([^\s;]+)", fit.certificate.statement)
    if said is None:
        return C
    assert float(said[1]) >= LEAST_BOUND
    _, group = np.unique(np.column_stack([fit.X, fit.y]), axis=0, return_inverse=True)
    totals = exact(np.zeros(group.max() + 1))
    np.add.at(totals, group.ravel(), C)
    totals = totals[group.ravel()]
    return np.where(
        totals > MP.mpf(said[1]), C * MP.mpf(said[1]) / np.where(totals > 0, totals, 1), C
    )


def draw_svc(draw: Draw) -> Fit:
    X = draw.samples()
    kernel, y = draw.kernel(X), draw.labels(len(X), 2)
    machine = mercer.SVC(
        kernel.kernel,
        C=draw.one([draw.power(-6, 12), draw.power(-1, 2)]),
        slack=draw.one(["l1", "l1", "l2"]),
        criterion=draw.one(["violation", "violation", "gap"]),
        tol=draw.one([1e-3, 1e-3, 1e-6, 1e-1]),
    )
    return Fit(machine, X, y, draw.weights(len(X)), kernel, draw.harm)


def check_svc(fit: Fit) -> Iterator[str]:
    m, sign = fit.machine, exact(np.where(fit.y == fit.machine.classes_[1], 1.0, -1.0))
    used, C = fit.s > 0, _costs(fit)
    if len(set(fit.y[used])) < 2:
        return
    b, f, squared = _coefficients(fit)[used], fit.output("decision_function")[used], m.slack == "l2"
    C, sign, K = C[used], sign[used], fit.K[np.ix_(used, used)]
    shift = _hard(C) if squared else 0 * C
    reach = np.where(squared, MP.inf, C)
    lower, upper = np.where(sign > 0, MP.zero, -reach), np.where(sign > 0, reach, MP.zero)
    box = Box(b, f, sign, lower, upper, shift)
    if m.criterion == "violation":
        yield from _conditions(fit, box, MP.zero)
    slack = np.maximum(1 - sign * f, MP.zero)
    half = b @ K @ b / 2
    primal = half + C @ (slack**2 if squared else slack)
    dual = sign @ b - half - (shift @ b**2) / 2
    off = (ulps(f) + _stated_rounding(fit)) * C.sum()
    yield from _gap(fit, primal, dual, off * (2 * largest(slack) if squared else 1))


def draw_svr(draw: Draw) -> Fit:
    X = draw.samples()
    kernel, y = draw.kernel(X), draw.targets(X)
    size = float(np.abs(y).max())
    machine = mercer.SVR(
        kernel.kernel,
        draw.one([draw.power(-6, 12), draw.power(-1, 2)]),
        size * draw.power(-4, 0),
        criterion=draw.one(["violation", "gap"]),
    )
    return Fit(machine, X, y, draw.weights(len(X)), kernel, draw.harm)


def check_svr(fit: Fit) -> Iterator[str]:
    m, used = fit.machine, fit.s > 0
    C, y, eps = _costs(fit)[used], exact(fit.y)[used], MP.mpf(m.epsilon_)
    b, f, K = _coefficients(fit)[used], fit.output("predict")[used], fit.K[np.ix_(used, used)]
    if m.criterion == "violation":
        yield from _conditions(fit, Box(b, f, y, -C, C, 0 * C, eps), MP.zero)
    half = b @ K @ b / 2
    primal = half + C @ np.maximum(abs(y - f) - eps, MP.zero)
    unit = min(MP.one, max(y) - min(y)) or MP.one
    off = (ulps(f, y) + _stated_rounding(fit) * unit) * C.sum()
    yield from _gap(fit, primal, y @ b - eps * abs(b).sum() - half, off)


def draw_one_class(draw: Draw) -> Fit:
    X = draw.samples()
    kernel = draw.kernel(X)
    machine = mercer.OneClassSVM(kernel.kernel, draw.one([0.05, 0.1, 0.3, 0.5, 0.9, 1.0]))
    return Fit(machine, X, None, draw.weights(len(X)), kernel, draw.harm)


def check_one_class(fit: Fit) -> Iterator[str]:
    m, used = fit.machine, fit.s > 0
    b, f, s = _coefficients(fit)[used], fit.output("decision_function")[used], fit.s[used]
    total, zero = MP.mpf(m.nu) * s.sum(), 0 * s
    unit = max(abs(MP.mpf(m.offset_)), MP.mpf(NO_HALF_SPACE) * total * _median(fit)) or MP.one
    yield from _conditions(fit, Box(b, f, zero, zero, s, zero, unit=unit), total)
    outside = s[f < -fit.certificate.tol * unit * MP.mpf("1.01")].sum()
    if outside > total * (1 + MP.mpf(10) ** -9):
        yield f"{float(100 * outside / s.sum()):.3g} % are outside with nu={m.nu}"


def _median(fit: Fit) -> MP.mpf:
    """Return the median of k(x, x) over distinct samples of positive weight."""
    _, first = np.unique(fit.X[fit.s > 0], axis=0, return_index=True)
    return MP.mpf(float(np.median(rounded(fit.K.diagonal()[fit.s > 0][first]))))


def draw_ball(draw: Draw) -> Fit:
    X = draw.samples()
    kernel = draw.kernel(X)
    machine = mercer.EnclosingBall(kernel.kernel, draw.one([0.0, 0.0, 0.1, 0.5]))
    return Fit(machine, X, None, draw.weights(len(X)), kernel, draw.harm)


def check_ball(fit: Fit) -> Iterator[str]:
    """The decision function is R^2 - |phi(x) - c|^2, whose half is a slope of the dual."""
    m, used = fit.machine, fit.s > 0
    b, s, K = _coefficients(fit)[used], fit.s[used], fit.K[np.ix_(used, used)]
    f, squared = fit.output("decision_function")[used] / 2, MP.mpf(m.radius_) ** 2
    upper = s / (MP.mpf(m.nu) * s.sum()) if m.nu else np.full(len(s), MP.inf)
    unit, zero = min(max(squared / 2, MP.mpf(NO_BALL) * _median(fit)), MP.one) or MP.one, 0 * s
    yield from _conditions(fit, Box(b, f, zero, zero, upper, zero, unit=unit), MP.one)
    share = b / b.sum()  # rounding of the sum moves no center, however far from zero that is
    distance = K.diagonal() - 2 * (K @ share) + share @ K @ share
    moved = 4 * MP.mpf(fit.stated.infeasibility) * largest(distance)  # by what the sum is off
    off = largest(squared - distance - 2 * f) / (2 * unit)
    rounding = (ulps(m.radius_**2, f) + moved) / (2 * unit)
    yield from fit.false("distance", off, fit.stated.rounding, rounding)


ORACLES: dict[str, Oracle] = {
    "SVC": (draw_svc, check_svc),
    "SVR": (draw_svr, check_svr),
    "OneClassSVM": (draw_one_class, check_one_class),
    "EnclosingBall": (draw_ball, check_ball),
}
