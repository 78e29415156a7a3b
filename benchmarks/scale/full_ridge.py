"""Ridge with the full kernel past memory, beside a Falkon form in plain NumPy.

python -m benchmarks.scale.full_ridge [rows [contestant ...]]     prints a line for each contestant

kin40k, Gaussian kernel, a budget of 4 GB: the matrix of 36000 rows takes 10.4 GB, with a factor of
it twice that. The Falkon form (Rudi, Carratino, Rosasco, 2017) is conjugate gradients on m centres,
preconditioned by their matrix, in float32, with K(n, m) stored; its largest m is what the same 4 GB
hold. Both minimise with the same penalty; both are judged by the same held-out rows.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg

import mercer
from benchmarks.datasets import FOLDER
from mercer import KernelRidge
from mercer.kernels import Gaussian
from mercer.solvers import ConjugateGradient, SketchAndProject

SCALE, PENALTY, BUDGET = 1.5, 3e-3, "4 GB"
CENTRES = (2000, 5000, 10000)
ROWS_AT_ONCE = 4096
STEPS = 20  # of the Falkon form: as many as its authors take

Predict = Callable[[Any], Any]


def kin40k(rows: int | None = None) -> tuple[Any, Any, Any, Any]:
    """Read the first published fold; columns and target standardised by the training rows."""
    with np.load(FOLDER / "kin40k.npz", allow_pickle=False) as data:
        X, y, test = data["X"].astype(np.float64), np.ravel(data["y"]), data["fold"] == 0
    X = (X - X[~test].mean(axis=0)) / X[~test].std(axis=0)
    y = (y - y[~test].mean()) / y[~test].std()
    learnt = np.random.default_rng(0).permutation(np.flatnonzero(~test))[:rows]
    return X[learnt], y[learnt], X[test], y[test]


def kernel(A: Any, B: Any) -> Any:
    """Evaluate the Gaussian kernel in float32 with NumPy, in place."""
    K = A @ B.T
    K *= 2.0
    K -= np.square(A).sum(axis=1)[:, None]
    K -= np.square(B).sum(axis=1)
    K *= np.float32(0.5 / SCALE**2)
    return np.exp(np.minimum(K, 0, out=K), out=K)


def falkon(X: Any, y: Any, m: int) -> Predict:
    """Fit on m centres drawn at random; return the function."""
    n = len(X)
    X, targets = X.astype(np.float32), (y - y.mean()).astype(np.float32)
    C = X[np.random.default_rng(1).choice(n, m, replace=False)]
    Kmm = kernel(C, C)
    Kmm.flat[:: m + 1] += np.float32(1e-6 * m)
    T = np.linalg.cholesky(Kmm).T
    del Kmm
    A = T @ T.T
    A *= np.float32(n / m)
    A.flat[:: m + 1] += np.float32(PENALTY)
    A = np.linalg.cholesky(A).T
    K = np.empty((n, m), dtype=np.float32)
    for first in range(0, n, ROWS_AT_ONCE):
        K[first : first + ROWS_AT_ONCE] = kernel(X[first : first + ROWS_AT_ONCE], C)

    def solved(factor: Any, v: Any, trans: int = 0) -> Any:
        return linalg.solve_triangular(factor, v, trans=trans, check_finite=False)

    def operator(v: Any) -> Any:
        w = solved(A, v)
        u = solved(T, w)
        return solved(A, solved(T, K.T @ (K @ u), 1) + np.float32(PENALTY) * w, 1)

    r = solved(A, solved(T, K.T @ targets, 1), 1)
    beta, p, rr = np.zeros_like(r), r.copy(), r @ r
    for _ in range(STEPS):
        Ap = operator(p)
        step = rr / (p @ Ap)
        beta += step * p
        r -= step * Ap
        before, rr = rr, r @ r
        p = r + rr / before * p
    coef = solved(T, solved(A, beta))
    return lambda Z: kernel(Z.astype(np.float32), C) @ coef + y.mean()


def exact(X: Any, y: Any, solver: Any) -> Predict:
    """Fit Mercer's exact ridge within the budget."""
    machine = KernelRidge(PENALTY, Gaussian(SCALE), solver=solver)
    with mercer.config(memory=BUDGET, threads=2):
        machine.fit(X, y)
    certificate = machine.certificate_.quantities.relative_residual
    seen = machine.solution_
    print(f"  {seen}, relative residual {certificate:.1e}", file=sys.stderr, flush=True)
    return machine.predict


def contestants(rows: int) -> dict[str, Callable[[Any, Any], Predict]]:
    """Name everybody."""
    found: dict[str, Callable[[Any, Any], Predict]] = {}
    for tol in (1e-1, 1e-2, 1e-3, 3e-7):
        solver = ConjugateGradient(tol=tol)
        found[f"Mercer, conjugate gradients, tol {tol:g}"] = lambda X, y, s=solver: exact(X, y, s)
    for passes in (3, 7, 8, 20):
        blocks = SketchAndProject(tol=1e-2, max_iter=passes)
        name = f"Mercer, sketch and project, {passes} passes"
        found[name] = lambda X, y, s=blocks: exact(X, y, s)
    for m in CENTRES:
        if m < rows:
            found[f"Falkon form, m = {m}"] = lambda X, y, m=m: falkon(X, y, m)
    return found


def main() -> None:
    """Fit everybody once and print a table."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else None
    chosen = sys.argv[2:] or [""]
    X, y, Z, z = kin40k(rows)
    print("contestant | held-out RMSE | processor s | wall s", flush=True)
    for name, fit in contestants(len(X)).items():
        if not any(part in name for part in chosen):
            continue
        gc.collect()
        work, wall = time.process_time(), time.perf_counter()
        predict = fit(X, y)
        work, wall = time.process_time() - work, time.perf_counter() - wall
        error = float(np.sqrt(np.mean(np.square(predict(Z) - z))))
        print(f"{name} | {error:.4f} | {work:.1f} | {wall:.1f}", flush=True)
        line = {"name": name, "error": error, "work": work, "wall": wall, "rows": len(X)}
        print(json.dumps(line), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
