"""Learnt weights of kernels, against vertices and random points of the simplex."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer import Status

OTHERS = 30  # random weights that are tried beside the vertices
CLOSE = 1e-6  # of the objective, beside what the certificate claims


def learnt_weights(trial):
    """Weights lie on the simplex, claim what they can show, and no others are better."""
    found = trial.machine.combined_
    weights, status = found.weights, found.solution.status
    if not (weights.min() >= 0 and abs(weights.sum() - 1) < 1e-9):
        yield f"weights of kernels are not shares: least {weights.min()}, sum {weights.sum()}"
    if status is Status.SOLVED and not found.certificate.ok:
        yield f"weights SOLVED, but {str(found.certificate).splitlines()[0]}"
    warned = any(issubclass(w.category, ConvergenceWarning) for w in trial.said)
    if status not in (Status.SOLVED, Status.STOPPED) and not warned:
        yield f"weights {status.name} without a warning"
    if found.certificate.ok and trial.case.psd and trial.case.tame and len(trial.X) <= 60:
        yield from _others(trial, found)


def _others(trial, found):
    if "weights" in trial.names or found.method == "margin":
        return
    if found.method == "alignment" and trial.y.dtype.kind != "f":
        return  # which matrix stands for labels is a choice of its own
    rows, y = trial.X.astype(float), trial.y.astype(float)
    scales = np.divide(found.factors, found.weights, where=found.weights > 0, out=0 * found.factors)
    if not scales.all():  # of a kernel that was left out the scale is not told
        return
    parts = [s * np.asarray(k(rows, rows)) for s, k in zip(scales, found.kernels, strict=True)]
    judge = _ridge if found.method == "ridge" else _alignment
    rng, count = np.random.default_rng(0), len(parts)
    tried = [*np.eye(count), *rng.dirichlet(np.ones(count), OTHERS)]
    own = judge(trial, parts, found.weights, y)
    best = min(judge(trial, parts, w, y) for w in tried)
    allowed = (CLOSE + found.certificate.tol) * max(abs(own), abs(best))
    if best < own - allowed:
        yield f"FALSE CERTIFICATE: other weights of kernels reach {best:.9g}, these {own:.9g}"


def _ridge(trial, parts, weights, y):
    """Return the least of the machine's objective, by the equations of its dual."""
    machine, n = trial.machine.machine_, len(y)
    # machines of another kind have neither: then those of `combine`, as its signature has them
    bias, penalty = int(getattr(machine, "bias", True)), getattr(machine, "penalty", 1.0)
    A = np.zeros((n + bias, n + bias))
    A[:n, :n] = sum(w * K for w, K in zip(weights, parts, strict=True))
    A[:n, :n] += penalty * np.eye(n)
    A[n:, :n], A[:n, n:] = 1.0, 1.0
    return float(y @ np.linalg.solve(A, np.append(y, np.zeros(bias)))[:n])


def _alignment(trial, parts, weights, y):
    """Return minus the centred alignment with y y'."""
    K = sum(w * K for w, K in zip(weights, parts, strict=True))
    K = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
    y = y - y.mean()
    return -float(y @ K @ y / (np.linalg.norm(K) * (y @ y)))
