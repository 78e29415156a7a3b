"""Products with K that is never stored: milliseconds and relative errors."""

from typing import Any

import numpy as np
import torch

from benchmarks.card.setting import CARD, SMALL, milliseconds, normal, show, size
from mercer.backends.torch.pairs import TorchPairs
from mercer.expression import AbsDist, Dot, Exp, Expression, SqDist


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
