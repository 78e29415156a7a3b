"""Does every kernel compile on this card, with which tile, and is it right? Some seconds in all."""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.card.setting import CARD, SMALL, WHERE, say
from mercer.backends.box_programs import Box
from mercer.backends.torch.matrices import DeviceMatrix
from mercer.backends.torch.pairs import TorchPairs
from mercer.backends.torch.svm.descents import can_descend
from mercer.backends.torch.triton import launch
from mercer.backends.torch.triton.nearest import Candidates
from mercer.backends.torch.triton.special import round_trip
from mercer.expression import AbsDist, Dot, Exp, Expression, SqDist

ROWS, COLUMNS = (90, 200) if SMALL else (700, 2100)  # more than a tile, no multiple of one
WORKERS = 8  # processes side by side: compiling is work of the host
GAUSSIAN = Exp(-0.02 * SqDist())
BOTH = GAUSSIAN + 0.1 * Dot()
COMPOSED = GAUSSIAN + (0.01 * Dot() + 1.0) ** 3 * Exp(-0.02 * AbsDist())


class Trial(NamedTuple):
    """One kernel: a formula, its features, and the columns of V; none for rows, -1 for nearest."""

    name: str
    expression: Expression
    features: int
    columns: int


def trials() -> Iterator[Trial]:
    """Return the kernels that the rows of the table and `check_backend` launch."""
    for features in (30, 90, 170, 300, 784, 5000):
        yield Trial("Gaussian", GAUSSIAN, features, 0)
    for features, columns in ((90, 1), (90, 16), (90, 64), (784, 1), (784, 64)):
        yield Trial("Gaussian", GAUSSIAN, features, columns)
    for features, columns in ((33, 0), (33, 64), (170, 50), (300, 1), (300, 50), (5000, 16)):
        yield Trial("Gaussian + dot", BOTH, features, columns)
    for features, columns in ((30, 0), (64, 1), (64, 64)):
        yield Trial("composed", COMPOSED, features, columns)
    yield Trial("Laplacian", Exp(-1e-3 * AbsDist()), 1024, 1)
    yield Trial("Laplacian", Exp(-1e-3 * AbsDist()), 64, 64)
    yield Trial("nearest", SqDist(), 128, -1)


def smoke(number: int) -> None:
    """Try every eighth kernel; the first process tries pair steps and factors, too."""
    every = list(trials())[number::WORKERS]
    for trial in every[:1] if SMALL else every:
        tiles, begin = [], time.perf_counter()
        try:
            way, error = attempt(trial, tiles)
        except Exception as failure:
            say(smoke=trial.name, d=trial.features, columns=trial.columns, failed=repr(failure))
            continue
        say(
            smoke=trial.name,
            d=trial.features,
            columns=trial.columns,
            way=way,
            tile=tiles[-1] if tiles else None,
            no_room_for=[tile for tile in tiles[:-1] if tile != tiles[-1]],
            error=f"{error:.1e}",
            seconds=round(time.perf_counter() - begin, 2),
        )
    if number == 0:
        for work in (neighbours, round_trips, sweeps, pair_steps, factors):
            begin = time.perf_counter()
            try:
                found = work()
            except Exception as failure:
                found = repr(failure)
            say(smoke=work.__name__, found=found, seconds=round(time.perf_counter() - begin, 2))


def attempt(trial: Trial, tiles: list[Any]) -> tuple[str, float]:
    """Run a kernel, noting the tiles that were tried; return how rows are compared, and the error.

    The error is the largest, over the largest entry of the exact answer.
    """
    rng = np.random.default_rng(0)
    X, Y = (0.3 * rng.standard_normal((n, trial.features)) for n in (ROWS, COLUMNS))
    with_room = launch._with_room

    def noted(ways: Any, wide: int, device: Any, by: Callable[[Any], Any]) -> Any:
        def one(tile: Any) -> Any:
            tiles.append(tuple(tile))
            return by(tile)

        return with_room(ways, wide, device, one)

    fused = TorchPairs(trial.expression, X, Y, np.float32, CARD, fused=True)
    exact = TorchPairs(trial.expression, X, Y, np.float64, CARD)
    made = fused._fused  # its sample has been through a kernel of its own
    way = "none: plain blocks" if made is None else "+".join(w.value for w, _ in made._ways())
    launch._with_room = noted
    try:
        if trial.columns == 0:
            found, wanted = fused.rows(slice(0, ROWS)), exact.rows(slice(0, ROWS))
        elif trial.columns < 0:
            D = exact.rows(slice(0, ROWS))
            found, wanted = (
                D[np.arange(ROWS), pairs.nearest().cpu().numpy()] for pairs in (fused, exact)
            )
        else:
            V = rng.standard_normal((COLUMNS, trial.columns))
            found, wanted = fused.matmul(V), exact.matmul(V)
    finally:
        launch._with_room = with_room
    return way, float(np.abs(found - wanted).max() / np.abs(wanted).max())


def neighbours() -> str:
    """Search by candidates, of both kinds of products; tell which rows are left in doubt."""
    rng, said = np.random.default_rng(0), []
    for features in (5, 64, 128, 170) if not SMALL else (5,):
        X, Y = (torch.from_numpy(rng.standard_normal((n, features))) for n in (ROWS, COLUMNS))
        D = torch.cdist(X, Y).square().topk(3, largest=False)
        for split in (False, True):
            found = Candidates(Y.to(WHERE), 3, split=split).search(X.to(WHERE))
            missed = ~(found.numbers.cpu()[:, None, :] == D.indices[:, :, None]).any(dim=2)
            wrong = missed & (D.values < found.bound.cpu()[:, None])
            doubts = int((found.bound.cpu() < D.values[:, -1]).sum())
            said.append(f"d = {features}: {int(wrong.sum())} wrong, {doubts} in doubt")
    return "; ".join(said)


def round_trips() -> str:
    """Go there and back in one reading of K, for several lengths of rows; tell the errors."""
    said = []
    for m in (300, 1000, 1100, 2000, 5000, 7000, 10_000, 14_000) if not SMALL else (300,):
        K = torch.rand(ROWS, -(-m // 16) * 16, device=WHERE)
        K[:, m:] = 0.0
        v, s = torch.randn(m, device=WHERE), torch.rand(ROWS, device=WHERE)
        if SMALL:
            continue
        found, wide = round_trip(K[:, :m], v, s, 0.5), K[:, :m].double()
        exact = wide.T @ (s * (wide @ v.double() - 0.5))
        off = None if found is None else float((found[0] - exact).norm() / exact.norm())
        said.append(f"{m}: {'no room' if off is None else f'{off:.1e}'}")
    return "; ".join(said)


def sweeps() -> str:
    """Go there and back in float64, exponentials multiplied as they are made; tell the error."""
    rng = np.random.default_rng(0)
    X, V = rng.standard_normal((COLUMNS, 90)), rng.standard_normal((ROWS, 1))
    v = torch.from_numpy(V).to(WHERE)
    found, wanted = (
        TorchPairs(GAUSSIAN, X, X[:ROWS], np.float64, CARD, fused=fused).sweep(
            v, lambda part, values: values
        )
        for fused in (not SMALL, False)
    )
    return f"error {float((found - wanted).norm() / wanted.norm()):.1e}"


def pair_steps() -> str:
    """Descend on one programme; tell the violation in float64."""
    n, tol = 2500, 1e-3
    rng = np.random.default_rng(1)
    X, sign = rng.standard_normal((n, 5)), np.where(rng.random(n) < 0.5, 1.0, -1.0)
    sign[np.abs(X[:, 0]) > 0.3] = np.sign(X[:, 0][np.abs(X[:, 0]) > 0.3])
    matrix = TorchPairs(Exp(-0.1 * SqDist()), X, None, np.float32, CARD, fused=not SMALL).stored()
    assert isinstance(matrix, DeviceMatrix)
    box = Box(sign, np.zeros(n), np.minimum(sign, 0.0), np.maximum(sign, 0.0))
    (answer,) = matrix.box_qps([box], tol, 10**6, None)
    F = box.gradient - matrix.product(answer.b[:, None])[:, 0]
    violation = F[answer.b < box.upper].max() - F[answer.b > box.lower].min()
    where = "card" if matrix._device.is_card and can_descend([box]) else "host"
    return f"on the {where}: {answer.iterations} steps, violation {violation:.1e}"


def factors() -> str:
    """Factor and decompose a small matrix in float64."""
    A = torch.eye(500, dtype=torch.float64, device=WHERE) + 0.001
    torch.linalg.cholesky_ex(A), torch.linalg.eigh(A)
    return f"on {A.device}"
