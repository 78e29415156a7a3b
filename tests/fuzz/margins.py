"""Support vector machines, judged from outside: gaps in extended precision, and another solver.

A certified answer is refuted by any admissible point that is better by more than the certificate
allows. Weak duality gives such points from the public attributes alone; Clarabel and random pair
steps give more.
"""

import clarabel
import numpy as np
import scipy.sparse as sp

from mercer.approximation import ApproximateKernel
from mercer.kernels import FromCallable, FromFeatures, Precomputed
from mercer.machines.svm.problem import DEAREST

LONG = np.longdouble
TINY = np.finfo(float).tiny  # below, numbers of float64 have fewer digits, down to none
SLACK = 1e-6  # relative, beside what the certificate claims
EPS = np.finfo(float).eps
ROUNDING = 1e-13  # of the largest terms: K itself was rounded to float64
DEFINITE = 1e-9  # of the largest eigenvalue: below, an eigenvalue counts as rounding
MOST_ROWS = 60  # for another solver
ORDINARY = (1e-4, 1e5)  # sizes of C k(x, x) that another solver is trusted with


def gram(trial, some=None):
    """Evaluate the kernel on the training rows, or some of them, in float64."""
    kernel, X = trial.machine.kernel_, trial.X
    some = np.arange(len(X)) if some is None else some
    if isinstance(kernel, Precomputed):
        return X.astype(float)[np.ix_(some, some)]
    # a function of the user's own is called with rows as they are: in float32 it is another one
    # (and K of features is their product in float64, whatever they were computed in)
    if isinstance(kernel, FromFeatures) and X.dtype == np.float32:
        features = np.asarray(trial.quietly(lambda: kernel.phi(X[some])), dtype=float)
        return features @ features.T
    single = isinstance(kernel, FromCallable) and X.dtype == np.float32
    words = X.dtype.kind in "US"
    rows = (
        [trial.names["X"][i] for i in some]
        if words
        else X[some]
        if single
        else X[some].astype(float)
    )
    return np.asarray(trial.quietly(lambda: kernel(rows, rows)), dtype=float)


class Answer:
    """Coefficients of all rows, the kernel matrix, and costs, from public attributes."""

    def __init__(self, trial):
        machine = trial.machine
        self.K = gram(trial).astype(LONG)
        self.b = np.zeros(len(self.K), dtype=LONG)
        self.b[machine.support_] = np.asarray(machine.dual_coef_, dtype=LONG).ravel()
        self.Kb = self.K @ self.b
        self.norm = self.b @ self.Kb
        self.rounding = ROUNDING * (abs(self.b) @ np.sqrt(abs(np.diag(self.K)))) ** 2

    def lost(self, C):
        """Return what losses at these costs are known to: K was rounded, and so is f."""
        return EPS * (C @ (np.abs(self.K) @ np.abs(self.b)))

    @property
    def usable(self):
        return bool(np.isfinite(self.K).all() and np.isfinite(self.b).all())


def costs(trial):
    """Return what slack costs for each row, or None where the answer says that in other words."""
    C = np.asarray(trial.machine.C * trial.weights, dtype=LONG)
    # so high a price means a hard margin, and gaps are those of the answer scaled to allow no slack
    if "class_weight" in trial.case.parameters or not C.max() < DEAREST:
        return None
    return C


def svc(trial):
    machine = trial.machine
    if len(machine.classes_) != 2 or not trial.certified:
        return
    answer, y = Answer(trial), np.where(trial.y == machine.classes_[1], 1, -1).astype(LONG)
    f = answer.Kb + LONG(machine.intercept_)
    yield from _same_values(trial, answer, f, "decision_function")
    if machine.nu is not None:
        if machine.slack == "l2":
            yield "slack='l2' and nu are both given; one of them is dropped without a word"
        yield from _nu_svc(trial, answer, y, f)
        return
    C = costs(trial)
    if C is None or not answer.usable:
        return
    squared = machine.slack == "l2"
    primal = _best_scaled(answer.norm, C, y * f, squared)
    dual = y @ answer.b - answer.norm / 2 - _bent(answer.b, C, squared)
    answer.rounding += ROUNDING * (C @ (np.abs(f) + abs(machine.intercept_) + 1))
    answer.rounding += answer.lost(C)
    yield from _gap(trial, answer, primal, dual)
    shift = np.where(C > 0, 1 / (2 * np.where(C > 0, C, 1)), 0) if squared else None
    upper, lower = (
        (np.inf if squared else 1) * C * (y > 0),
        (np.inf if squared else 1) * C * (y < 0),
    )
    upper, lower = (
        np.nan_to_num(upper, nan=0.0, posinf=np.inf),
        -np.nan_to_num(lower, nan=0.0, posinf=np.inf),
    )
    yield from _others(trial, answer, primal, Box(answer.K, y, lower, upper, 0.0, shift=shift))


def _best_scaled(norm, C, margins, squared):
    """Return the least primal value of the function itself and of it scaled to margins of 1."""
    ahead = margins[(margins > 0.5) & (margins < 1)]
    scales = np.concatenate([[LONG(1)], 1 / ahead])[:, None]
    loss = np.maximum(0, 1 - scales * margins)
    return (scales[:, 0] ** 2 * norm / 2 + (loss**2 if squared else loss) @ C).min()


def svr(trial):
    machine = trial.machine
    if not trial.certified:
        return
    answer, C, y = Answer(trial), costs(trial), trial.y.astype(LONG)
    f = answer.Kb + LONG(machine.intercept_)
    yield from _same_values(trial, answer, f, "predict")
    if C is None or not answer.usable:
        return
    eps, squared = LONG(machine.epsilon_), machine.tube == "l2"
    loss = np.maximum(0, abs(y - f) - eps)
    if machine.nu is not None and squared:
        yield "tube='l2' and nu are both given; one of them is dropped without a word"
        return
    primal = answer.norm / 2 + C @ (loss**2 if squared else loss)
    dual = y @ answer.b - answer.norm / 2 - _bent(answer.b, C, squared)
    sizes = ROUNDING * (abs(f) + abs(y))  # what y - f is known to; a squared loss squares it
    answer.rounding += C @ (sizes * (sizes + 2 * loss) if squared else sizes)
    answer.rounding += answer.lost(C * (2 * loss if squared else 1))
    if machine.nu is not None:
        # a rounding of K's diagonal moves slopes by as much times each of two multipliers of a row,
        # which hide in their difference: together they are nu C, and a gain is at most C of a slope
        moved = machine.certificate_.quantities.indefiniteness
        answer.rounding += moved * machine.nu * C.sum() * C.max()
        yield from _gap(trial, answer, primal + machine.nu * C.sum() * eps, dual)
        return
    dual -= eps * abs(answer.b).sum()
    yield from _gap(trial, answer, primal, dual)
    if not squared:
        yield from _others(trial, answer, primal, Box(answer.K, y, -C, C, 0.0, epsilon=eps))


def one_class(trial):
    machine, answer, w = trial.machine, Answer(trial), trial.weights.astype(LONG)
    if not trial.certified or not answer.usable:
        return
    rho, total = LONG(machine.offset_), machine.nu * w.sum()
    primal = answer.norm / 2 - total * rho + w @ np.maximum(0, rho - answer.Kb)
    answer.rounding += 8 * np.finfo(LONG).eps * total * abs(rho)  # of the difference just taken
    answer.rounding += answer.lost(w)
    yield from _gap(trial, answer, primal, -answer.norm / 2)
    yield from _others(trial, answer, primal, Box(answer.K, 0 * w, 0 * w, w, total))


def ball(trial):
    machine, answer, w = trial.machine, Answer(trial), trial.weights.astype(LONG)
    if not trial.certified or not answer.usable:
        return
    diagonal, radius = np.diag(answer.K), LONG(machine.radius_) ** 2
    apart = diagonal - 2 * answer.Kb + answer.norm
    # coefficients sum to 1, so that a cost above 1 asks for no more than 1 does
    C = np.minimum(np.where(w > 0, np.inf, 0) if machine.nu == 0 else w / (machine.nu * w.sum()), 1)
    primal = radius + _of_distinct(trial, w) @ np.maximum(0, apart - radius)
    if machine.nu == 0:  # nothing may be outside: the ball around the same centre that holds all
        primal = max(radius, apart[w > 0].max())
    dual = diagonal @ answer.b - answer.norm
    yield from _gap(trial, answer, primal / 2, dual / 2)
    box = Box(answer.K, diagonal / 2, 0 * w, C, 1.0)
    yield from _others(trial, answer, primal / 2, box)


def _of_distinct(trial, w):
    """Return what rows outside the ball cost: copies of a row together no more than 1."""
    nu = trial.machine.nu
    C = w / (nu * w.sum()) if nu else w
    if isinstance(trial.machine.kernel_, Precomputed):
        return np.minimum(C, 1)
    rows = trial.X.astype(float) if trial.X.ndim == 2 else trial.X.astype(str)
    copies = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    together = np.bincount(copies, C.astype(float))[copies]
    return C / np.maximum(together, 1)


def _nu_svc(trial, answer, y, f):
    """Scale the answer to where the nu form has it, and the primal to its best."""
    w = trial.weights.astype(LONG)
    if "class_weight" in trial.case.parameters or not answer.usable or not (y @ answer.b) > 0:
        return
    total = trial.machine.nu * w.sum()
    rho = total / (y @ answer.b)
    left = total - w @ np.maximum(0, 1 - y * f)
    primal = -(max(LONG(0), left) ** 2) / (2 * max(answer.norm, LONG(1e-300)))
    dual = -(rho**2) * answer.norm / 2
    share = float((primal - dual) / abs(dual)) if dual else 0.0
    claimed = float(trial.machine.certificate_.quantities.relative_gap)
    if share > max(0.5, 2 * claimed):
        yield f"nu-SVC certified with a true relative gap of {share:.2g} (claimed {claimed:.2g})"


def _bent(b, C, squared):
    return (b[C > 0] ** 2 / (4 * C[C > 0])).sum() if squared else LONG(0)


def digits(trial):
    """Return how far k(x, y) may differ: functions of one's own compute in the rows' precision."""
    kernel = trial.machine.kernel_
    kernel = kernel.kernel if isinstance(kernel, ApproximateKernel) else kernel
    single = trial.X.dtype == np.float32 and isinstance(kernel, FromCallable | FromFeatures)
    return 1e-5 if single else 1e-9


def _same_values(trial, answer, f, method):
    """Values at the training rows are what coefficients and kernel give."""
    given = trial.answers.get((method, "X"))
    if given is None or not answer.usable:
        return
    size = abs(answer.K).max(axis=1) * abs(answer.b).sum() + abs(f) + 1e-300
    wrong = float((abs(given - f) / size).max())
    if wrong > digits(trial):
        yield f"{method}(X) differs from dual_coef_ and kernel_ by {wrong:.1e} of its terms"


def _gap(trial, answer, primal, dual):
    """The gap is no larger than the certificate says, if it claims to bound anything."""
    if "nothing is shown" in trial.machine.certificate_.statement:
        return
    found = trial.machine.certificate_.quantities
    size = max(abs(primal), abs(dual))
    gap, claimed = float(primal - dual), float(found.gap)
    allowed = abs(claimed) * (1 + 1e-3) + float(SLACK * size + answer.rounding) + TINY
    if not gap <= allowed:
        yield f"FALSE CERTIFICATE: gap {gap:.3g} of {float(size):.3g}, claimed {claimed:.3g}"


def _others(trial, answer, primal, box):
    """The answer is admissible, and no admissible point is better than the primal allows."""
    n = len(answer.b)
    out = box.outside(answer.b.astype(float))
    if out > 1e-6:
        yield f"FALSE CERTIFICATE: dual_coef_ leave the box or miss its sum by {out:.2g}"
    if n > MOST_ROWS:
        return
    smallest, largest = np.linalg.eigvalsh(answer.K.astype(float))[[0, -1]]
    if smallest < -1e-6 * abs(largest):
        best = box.by_pair_steps()
    elif smallest > -DEFINITE * abs(largest) and _ordinary(answer, box):
        best = box.by_clarabel()
    else:
        return
    # the other solver is exact to its own tolerance, in units of the terms of the objective
    finite = np.where(np.isfinite(box.upper), box.upper, 0)
    size = 1e-7 * (abs(box.linear) @ np.maximum(abs(answer.b), finite) + abs(answer.norm))
    if best is not None and best > primal + 1e-5 * abs(primal) + answer.rounding + size:
        yield (
            f"FALSE CERTIFICATE: another solver's dual value {float(best):.9g} exceeds the primal "
            f"value {float(primal):.9g}; smallest eigenvalue of K {smallest:.2g}"
        )


def _ordinary(answer, box):
    finite = box.upper[np.isfinite(box.upper)]
    size = float(np.diag(answer.K).max() * max(finite.max(initial=0), 1e-300))
    return ORDINARY[0] < size < ORDINARY[1] and abs(box.linear).max(initial=0) < ORDINARY[1]


class Box:
    """max p'b - b'(K + diag shift)b/2 - epsilon |b|_1 over a box with a fixed sum."""

    def __init__(self, K, linear, lower, upper, total, epsilon=0.0, shift=None):
        self.K = np.array(K, dtype=float) + (0 if shift is None else np.diag(shift.astype(float)))
        self.linear, self.total = np.asarray(linear, float), float(total)
        self.epsilon = float(epsilon)
        self.lower, self.upper = np.asarray(lower, float), np.asarray(upper, float)

    def value(self, b):
        return float(self.linear @ b - b @ self.K @ b / 2 - self.epsilon * abs(b).sum())

    def outside(self, b):
        """Return how far a point is from being admissible, over its own size."""
        far = np.maximum(np.maximum(self.lower - b, b - self.upper), 0).max(initial=0)
        size = max(abs(b).max(initial=0), 1e-300)
        return max(
            far / size, abs(b.sum() - self.total) / max(abs(b).sum(), abs(self.total), 1e-300)
        )

    def by_clarabel(self):
        """Solve by an interior point: b = u - v, z = L'b, K = L L'. None where that failed.

        In units of the largest bound: its tolerances for sums are absolute.
        """
        n = len(self.linear)
        bounds = np.abs(np.concatenate([self.lower, self.upper]))
        unit = float(bounds[np.isfinite(bounds)].max(initial=0)) or 1.0
        values, V = np.linalg.eigh(unit * self.K)
        L = V * np.sqrt(np.maximum(values, 0))
        eye, none, ones = sp.eye(n), sp.csc_matrix((n, n)), np.ones((1, n))
        sums = sp.csc_matrix(np.hstack([ones, -ones, np.zeros((1, n))]))
        rows = [sp.hstack([-L.T, L.T, eye]), sums]
        right, held = [np.zeros(n), [self.total / unit]], n + 1
        for sign, bound in ((0, self.upper), (1, -self.lower)):
            pad = [none, none, none]
            pad[sign] = eye
            block, finite = sp.hstack(pad).tocsr(), np.isfinite(bound)
            rows += [-block, block[finite]]
            right += [np.zeros(n), bound[finite] / unit]
        A, right = sp.csc_matrix(sp.vstack(rows)), np.concatenate(right)
        P = sp.csc_matrix(sp.block_diag([none, none, eye]))
        q = np.concatenate([self.epsilon - self.linear, self.epsilon + self.linear, np.zeros(n)])
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        cones = [clarabel.ZeroConeT(held), clarabel.NonnegativeConeT(A.shape[0] - held)]
        found = clarabel.DefaultSolver(P, q, A, right, cones, settings).solve()
        if str(found.status) != "Solved":
            return None
        x = np.asarray(found.x)
        b = np.clip(unit * (x[:n] - x[n : 2 * n]), self.lower, self.upper)
        if abs(b.sum() - self.total) > 1e-7 * (unit + abs(b).sum()):
            return None
        # what the sum is off by is little beside the largest bound, and may be much beside b
        widest = np.argsort(self.lower - self.upper, kind="stable")
        b = self._summed(b, widest)
        return None if b is None else self.value(b)

    def by_pair_steps(self, starts=4, steps=400):
        """Climb from random points in pairs; for matrices with negative eigenvalues."""
        if self.epsilon or not (np.isfinite(self.upper).all() and np.isfinite(self.lower).all()):
            return None
        if len(self.linear) < 2:  # no pair, and one point: its sum says where
            return None
        rng, best = np.random.default_rng(0), -np.inf
        for _ in range(starts):
            b = self._start(rng)
            if b is None:
                return None
            for _ in range(steps):
                self._step(b, *rng.choice(len(b), 2, replace=False))
            best = max(best, self.value(b))
        return best

    def _start(self, rng):
        b = self.lower + (self.upper - self.lower) * rng.random(len(self.lower))
        return self._summed(b, rng.permutation(len(b)))

    def _summed(self, b, order):
        """Move variables in turn until their sum is right; None where the box forbids that."""
        for i in order:
            b[i] = np.clip(b[i] + self.total - b.sum(), self.lower[i], self.upper[i])
        return b if self.outside(b) <= 1e-12 else None

    def _step(self, b, i, j):
        """Move t from j to i, to the best point of the segment, ends included."""
        low = max(self.lower[i] - b[i], b[j] - self.upper[j])
        high = min(self.upper[i] - b[i], b[j] - self.lower[j])
        slope = self.linear[i] - self.linear[j] - (self.K[i] - self.K[j]) @ b
        bend = self.K[i, i] + self.K[j, j] - 2 * self.K[i, j]
        ends = [low, high] + [float(np.clip(slope / bend, low, high))] * bool(bend > 0)
        t = max(ends, key=lambda t: slope * t - bend * t * t / 2)
        b[i], b[j] = b[i] + t, b[j] - t
