"""Kernel work on one card, one table: ``python3 benchmarks/device.py [row ...]``.

Needs torch, Triton, NumPy, SciPy and scikit-learn, and no installation of Mercer: run it from a
copy of the repository. Times are medians of repeats, synchronised; products and factors with rows
on the card, machines from NumPy to fitted. Errors are relative, against float64 on 512 rows. Data
are made (normal numbers), so that nothing is read.
"""

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import torch  # noqa: E402

import mercer  # noqa: E402
from mercer.backends import choose_backend  # noqa: E402
from mercer.backends.boxes import Box  # noqa: E402
from mercer.backends.torch.boxes.descents import descend  # noqa: E402
from mercer.backends.torch.device import Device  # noqa: E402
from mercer.backends.torch.pairs import TorchPairs  # noqa: E402
from mercer.expression import AbsDist, Dot, Exp, Expression, SqDist  # noqa: E402
from mercer.kernels import Gaussian  # noqa: E402

CARD = Device("cuda:0")
rng = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return rng.standard_normal(shape, dtype=np.float32)


def milliseconds(work: Callable[[], Any], repeats: int = 5) -> float:
    """Return the median of some repeats, after one that compiles."""
    work()
    found = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        found.append(1e3 * (time.perf_counter() - begin))
    return sorted(found)[repeats // 2]


def show(work: str, found: str, goal: str, more: str = "") -> None:
    print(f"| {work} | {found} | {goal} | {more} |", flush=True)


def product(expression: Expression, X: Any, Y: Any, k: int) -> tuple[float, float]:
    """Return milliseconds of K V and its relative error."""
    pairs = TorchPairs(expression, X, Y, np.float32, CARD, fused=True)
    V = torch.randn(len(Y), k, device=CARD.name)
    exact = TorchPairs(expression, X[:512], Y, np.float64, CARD).product(V.double(), 1 << 22)
    found = pairs.product(V, CARD.block_entries())[:512]
    error = float((found - exact).norm() / exact.norm())
    return milliseconds(lambda: pairs.product(V, CARD.block_entries())), error


def products() -> None:
    X, Y = normal(1_000_000, 90), normal(10_000, 90)
    expression = Exp((-0.5 / 90) * SqDist())
    for k, goal in ((1, "14 ms"), (16, "22 ms"), (64, "40 ms")):
        time, error = product(expression, X, Y, k)
        rate = len(X) * len(Y) / time / 1e6
        more = f"error {error:.1e}, {rate:.0f}e9 values/s"
        show(f"K(1e6 x 90, 1e4) V, Gaussian, {k} columns", f"{time:.1f} ms", goal, more)


def laplacian() -> None:
    X = normal(30_000, 1024)
    time, error = product(Exp(-1e-3 * AbsDist()), X, X, 1)
    show("K v, Laplacian, 30000 x 30000, d = 1024", f"{time:.0f} ms", "80 ms", f"error {error:.1e}")


def composed() -> None:
    X, Y = normal(200_000, 64), normal(10_000, 64)
    gaussian, laplacian = Exp(-0.01 * SqDist()), Exp(-0.02 * AbsDist())
    polynomial = (0.01 * Dot() + 1.0) ** 3
    parts = [product(part, X, Y, 1)[0] for part in (gaussian, polynomial, laplacian)]
    time, error = product(gaussian + polynomial * laplacian, X, Y, 1)
    more = f"parts one by one {sum(parts):.1f} ms, error {error:.1e}"
    show(
        "K(2e5 x 64, 1e4) v, Gaussian + polynomial x Laplacian",
        f"{time:.1f} ms",
        "parts / 1.5",
        more,
    )


def nearest() -> None:
    X, Y = normal(8_000_000, 128), normal(1024, 128)
    pairs = TorchPairs(SqDist(), X, Y, np.float32, CARD, fused=True)
    time = milliseconds(pairs.nearest)
    rows, means = torch.from_numpy(X).to(CARD.name), torch.from_numpy(Y).to(CARD.name)

    def plain() -> None:
        half = 0.5 * means.square().sum(dim=1)
        for block in rows.split(1 << 18):
            (half - block @ means.T).argmin(dim=1)

    other = milliseconds(plain)
    more = f"plain torch {other:.0f} ms: x {other / time:.1f}"
    show("nearest of 1024 means, 8e6 x 128", f"{time:.0f} ms", "plain torch x 15", more)


def cholesky() -> None:
    for n in (30_000, 60_000):
        time = factor_milliseconds(n)
        show(f"float64 Cholesky factor on the card, n = {n}", f"{time / 1e3:.2f} s", "")
        torch.cuda.empty_cache()


def factor_milliseconds(n: int) -> float:
    u = torch.randn(n, 1, dtype=torch.float64, device=CARD.name)
    A = u @ u.T / n + torch.eye(n, dtype=torch.float64, device=CARD.name)
    return milliseconds(lambda: torch.linalg.cholesky_ex(A), 1)


def machine(name: str, make: Callable[[], Any], X: Any, y: Any, goal: str) -> None:
    """Fit by torch, from NumPy to fitted; say what the certificate says."""
    found = []
    for _ in range(2):  # the first compiles
        begin = time.perf_counter()
        with mercer.config(backend="torch", device="cuda"):
            fitted = make().fit(X, y) if y is not None else make().fit(X)
        found.append(time.perf_counter() - begin)
    ok = f"certified: {fitted.certificate_.ok}, {fitted.solution_.status.name}"
    show(name, f"{found[-1]:.2f} s", goal, ok)


def ridge() -> None:
    X = rng.standard_normal((30_000, 20))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(len(X))
    make = lambda: mercer.KernelRidge(1.0, kernel=Gaussian(3.0))  # noqa: E731
    machine("KernelRidge, exact, n = 30000, NumPy in and out", make, X, y, "")


def components() -> None:
    X = rng.standard_normal((20_000, 50)) * np.geomspace(1.0, 0.01, 50)
    make = lambda: mercer.PCA(20, kernel=Gaussian(2.0))  # noqa: E731
    machine("PCA, n = 20000, 20 components", make, X, None, "")


def classes(n: int, d: int, count: int) -> tuple[Any, Any]:
    """Return rows about a random mean of each class, and their classes."""
    means, y = rng.standard_normal((count, d)), rng.integers(0, count, n)
    return (means[y] + 1.2 * rng.standard_normal((n, d))).astype(np.float32), y


def programmes() -> None:
    """Solve all folds and costs at once; violations are computed anew in float64."""
    X, y = classes(10_000, 100, 2)
    sign, fold = 2.0 * y - 1.0, rng.integers(0, 10, len(y))
    pairs = TorchPairs(Exp(-0.005 * SqDist()), X, None, np.float32, CARD, fused=True)
    K = torch.from_numpy(pairs.dense()).to(CARD.name)
    boxes = []
    for C in np.geomspace(1e3, 1e-3, 50):
        for left_out in range(10):
            rows = np.flatnonzero(fold != left_out)
            bounds = np.minimum(C * sign[rows], 0.0), np.maximum(C * sign[rows], 0.0)
            boxes.append(Box(sign[rows], np.zeros(len(rows)), *bounds, rows=rows))
    tol = 1e-3
    time = milliseconds(lambda: descend(K, boxes, tol, 10**7, None), 3)
    answers, worst = descend(K, boxes, tol, 10**7, None), 0.0
    for box, answer in zip(boxes, answers, strict=True):
        k = torch.from_numpy(box.rows).to(CARD.name)
        b = torch.from_numpy(answer.b).to(CARD.name)
        F = box.gradient - (K[k][:, k].double() @ b).cpu().numpy()
        assert abs(answer.b.sum()) < 1e-6 * max(1.0, np.abs(answer.b).sum())
        rising, falling = F[answer.b < box.upper], F[answer.b > box.lower]
        worst = max(worst, rising.max() - falling.min())
    steps = sum(answer.iterations for answer in answers)
    more = f"{steps:.2g} steps, violation in float64 {worst:.2e}"
    show("SVM, 10 folds x 50 costs, n = 10000 x 100", f"{time / 1e3:.2f} s", "0.3 s", more)


def vectors() -> None:
    X, y = classes(20_000, 50, 10)
    make = lambda: mercer.SVC(C=5.0, kernel=Gaussian(10.0))  # noqa: E731
    machine("SVC, 20000 x 50, 10 classes, NumPy in and out", make, X, y, "")
    t = X[:, 0] + 0.1 * rng.standard_normal(len(X))
    make = lambda: mercer.SVR(C=1.0, epsilon=0.1, kernel=Gaussian(10.0))  # noqa: E731
    machine("SVR, 20000 x 50, NumPy in and out", make, X, t, "")


def check() -> None:
    from mercer.testing import check_backend

    begin = time.perf_counter()
    with mercer.config(backend="torch", device="cuda"):
        assert choose_backend().name == "torch"
        check_backend("torch")
    show("check_backend", f"{time.perf_counter() - begin:.0f} s", "passes", "")


ROWS = {
    row.__name__: row
    for row in (
        check,
        products,
        laplacian,
        composed,
        nearest,
        programmes,
        cholesky,
        ridge,
        components,
        vectors,
    )
}


def main() -> None:
    name = torch.cuda.get_device_name(0)
    print(f"{name}, torch {torch.__version__}, Mercer {mercer.__version__}")
    print("| work | found | goal | more |\n| --- | --- | --- | --- |")
    for row in sys.argv[1:] or ROWS:
        try:
            ROWS[row]()
        except Exception as error:  # the others are still worth their time
            show(row, "failed", "", f"{type(error).__name__}: {str(error)[:300]!r}")
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
