"""Products with K that is never stored: milliseconds and relative errors."""

from typing import Any

import numpy as np
import torch

from benchmarks.card.setting import CARD, SMALL, milliseconds, normal, show, size
from mercer.backends.torch.landmarks import StoredRows
from mercer.backends.torch.neighbours import neighbours as search
from mercer.backends.torch.pairs import TorchPairs
from mercer.expression import AbsDist, Dot, Exp, Expression, SqDist
from mercer.rows.device_rows import CardRows


def product(
    expression: Expression, X: Any, Y: Any, k: int, halves: bool = False
) -> tuple[float, float]:
    """Return milliseconds of K V and its relative error."""
    pairs = TorchPairs(expression, X, Y, np.float32, CARD, fused=not SMALL, halves=halves)
    V = torch.randn(len(Y), k, device=CARD.name)
    exact = TorchPairs(expression, X[:512], Y, np.float64, CARD).product(V.double(), 1 << 22)
    found = pairs.product(V, CARD.block_entries())[:512]
    error = float((found - exact).norm() / exact.norm())
    return milliseconds(lambda: pairs.product(V, CARD.block_entries())), error


def products() -> None:
    X, Y = normal(size(1_000_000), 90), normal(size(10_000), 90)
    expression = Exp((-0.5 / 90) * SqDist())
    for k, goal in ((1, "14 ms"), (16, "22 ms"), (64, "40 ms")):
        time, error = product(expression, X, Y, k)
        rate = len(X) * len(Y) / time / 1e6
        more = f"error {error:.1e}, {rate:.0f}e9 values/s"
        show(f"K(1e6 x 90, 1e4) V, Gaussian, {k} columns", f"{time:.1f} ms", goal, more)


def halves() -> None:
    """Multiply 16-bit numbers alone, as `config(products="float16")` asks."""
    X, Y = normal(size(1_000_000), 90), normal(size(10_000), 90)
    time, error = product(Exp((-0.5 / 90) * SqDist()), X, Y, 1, halves=True)
    name = 'K(1e6 x 90, 1e4) v, Gaussian, products="float16"'
    show(name, f"{time:.1f} ms", "8 ms", f"error {error:.1e}")


def laplacian() -> None:
    X = normal(size(30_000), 1024)
    time, error = product(Exp(-1e-3 * AbsDist()), X, X, 1)
    show("K v, Laplacian, 30000 x 30000, d = 1024", f"{time:.0f} ms", "80 ms", f"error {error:.1e}")


def composed() -> None:
    X, Y = normal(size(200_000), 64), normal(size(10_000), 64)
    gaussian, laplacian = Exp(-0.01 * SqDist()), Exp(-0.02 * AbsDist())
    polynomial = (0.01 * Dot() + 1.0) ** 3
    parts = [product(part, X, Y, 1)[0] for part in (gaussian, polynomial, laplacian)]
    time, error = product(gaussian + polynomial * laplacian, X, Y, 1)
    more = f"parts one by one {sum(parts):.1f} ms, error {error:.1e}"
    name = "K(2e5 x 64, 1e4) v, Gaussian + polynomial x Laplacian"
    show(name, f"{time:.1f} ms", "parts / 1.5", more)


def round_trips() -> None:
    """Read a stored K once, there and back, and twice; K'S (K v - level) of one column."""
    n, m = size(1_000_000), size(10_000)
    K = torch.rand(n, -(-m // 16) * 16, device=CARD.name)[:, :m]
    v, s = torch.randn(m, 1, device=CARD.name).double(), torch.rand(n, device=CARD.name)
    level = torch.tensor([0.5], dtype=torch.float64, device=CARD.name)
    stored, gigabytes = StoredRows(K, once=not SMALL), 4e-9 * n * m
    back = stored.transposed()

    def twice() -> torch.Tensor:
        return back.times(s.double()[:, None] * (stored.times(v) - level))

    found = stored.round_trip(v, s, level)
    if found is None:
        show("K'S (K v - level), stored", "no room for the kernel")
        return
    exact = torch.zeros(m, 1, dtype=torch.float64, device=CARD.name)
    for rows, some in zip(K.split(1 << 14), s.split(1 << 14), strict=True):
        exact += rows.double().T @ (some.double()[:, None] * (rows.double() @ v - level))
    error = float((found[0] - exact).norm() / exact.norm())
    before = float((twice() - exact).norm() / exact.norm())
    time, other = milliseconds(lambda: stored.round_trip(v, s, level)), milliseconds(twice)
    more = (
        f"{gigabytes / time:.2f} TB/s, error {error:.1e}; two products {other:.1f} ms, {before:.1e}"
    )
    show("K'S (K v - level), K 1e6 x 1e4 in float32, read once", f"{time:.1f} ms", "10 ms", more)


def nearest() -> None:
    X, Y = normal(size(8_000_000), 128), normal(size(1024), 128)
    pairs = TorchPairs(SqDist(), X, Y, np.float32, CARD, fused=not SMALL)
    time = milliseconds(pairs.nearest)
    rows, means = torch.from_numpy(X).to(CARD.name), torch.from_numpy(Y).to(CARD.name)

    def plain() -> None:
        half = 0.5 * means.square().sum(dim=1)
        for block in rows.split(1 << 18):
            (half - block @ means.T).argmin(dim=1)

    other = milliseconds(plain)
    more = f"plain torch {other:.0f} ms: x {other / time:.1f}"
    show("nearest of 1024 means, 8e6 x 128", f"{time:.0f} ms", "plain torch x 15", more)


def neighbours() -> None:
    """Find 10 nearest columns by kernels, by blocks of float64, and by float32 of plain torch."""
    k, X, Y = 10, *(torch.from_numpy(normal(size(n), 64)).to(CARD.name) for n in (10**6, 10**5))
    columns, name = CardRows(Y), f"{k} nearest of 1e5 columns, 1e6 x 64"
    some = X[: size(50_000)]
    share, here = len(X) / len(some), not SMALL

    def by(rows: torch.Tensor, fused: bool) -> Any:
        return search(Dot(), CardRows(rows), columns, k, CARD, fused=fused)[0]

    def plain() -> None:
        half = 0.5 * Y.square().sum(dim=1)
        for block in some.split(1 << 13):
            (half - block @ Y.T).topk(k, dim=1, largest=False)

    few = some[:2000]
    differ = int((by(few, here) != by(few, False)).any(axis=1).sum())
    time = milliseconds(lambda: by(X, here), repeats=3)
    show(name, f"{time:.0f} ms", more=f"of {len(few)} rows {differ} differ from blocks of float64")
    other = share * milliseconds(plain, repeats=3)
    blocks = share * milliseconds(lambda: by(some, False), repeats=1)
    more = f"float32 x {other / time:.1f}, blocks of float64 {blocks:.0f} ms: x {blocks / time:.1f}"
    show(name, f"plain torch {other:.0f} ms", more=more)
