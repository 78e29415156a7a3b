"""Cholesky factors of large matrices in place, and solutions with them, panel by panel.

Most of the work is products of matrices, which a card is fastest at; the library's factor and its
solutions for few columns take longer. Time limits and Ctrl-C hold between panels.
"""

from __future__ import annotations

from typing import TypeAlias

import torch

from mercer.backends.torch.device import parts

Tensor: TypeAlias = torch.Tensor

_LARGE = 40_000  # rows: of 30,000 the library is as fast, of 60,000 it takes 1.65 s, this 1.56
_PANEL = 2048  # columns that a factor is made of at a time
_TRIANGLE = 256  # columns that are divided by an inverse at a time
_SOLVED = 1024  # rows of a solution at a time: of 40,000 in 16 ms, by the library in 41
_FEW = 16  # columns of a solution: with more, the library multiplies as much


def is_blocked(n: int) -> bool:
    """Return whether a matrix of so many rows is factored by panels."""
    return n > _LARGE


def factor_in_place(A: Tensor) -> int:
    """Write the lower factor over a symmetric float64 matrix; zeros above its diagonal.

    Returns
    -------
    int
        0, or the order of the first minor that is not positive definite; what A holds then is of
        no use.
    """
    n = len(A)
    for part in parts(n, _PANEL):
        done, mine, below = slice(0, part.start), A[part, part], slice(part.stop, n)
        if part.start:
            A[part.start :, part].addmm_(A[part.start :, done], A[part, done].T, alpha=-1.0)
        L, info = torch.linalg.cholesky_ex(mine)
        wrong = int(info)  # waits: time limits hold
        finite = L.diagonal().isfinite()
        if not wrong and not bool(finite.all()):
            wrong = 1 + int(finite.to(torch.int8).argmin())
        if wrong:
            return int(part.start) + wrong
        mine.copy_(L)
        _divide(A[below, part], mine)
        A[part, below] = 0.0
    return 0


def _divide(B: Tensor, L: Tensor) -> None:
    """Write B L'^-1 over B.

    Triangles are small, and their inverses are multiplied by: the library solves with them ten
    times slower than it multiplies. What an inverse gets wrong is found by a product, and divided
    once more, so that digits are those of solving.
    """
    one = torch.eye(_TRIANGLE, dtype=L.dtype, device=L.device)
    for part in parts(len(L), _TRIANGLE):
        mine, triangle = B[:, part], L[part, part]
        if part.start:
            mine.addmm_(B[:, : part.start], L[part, : part.start].T, alpha=-1.0)
        width = len(triangle)
        inverse = torch.linalg.solve_triangular(triangle, one[:width, :width], upper=False)
        divided = mine @ inverse.T
        left = torch.addmm(mine, divided, triangle.T, alpha=-1.0)
        mine.copy_(torch.addmm(divided, left, inverse.T))


def solved(L: Tensor, right: Tensor) -> Tensor:
    """Return (L L')^-1 times columns."""
    n = len(L)
    if right.shape[1] > _FEW or n <= _SOLVED:
        return torch.cholesky_solve(right, L)
    x, panels = right.clone(), list(parts(n, _SOLVED))
    for part in panels:
        x[part] = torch.linalg.solve_triangular(L[part, part], x[part], upper=False)
        x[part.stop :] -= L[part.stop :, part] @ x[part]
    for part in reversed(panels):
        x[part] -= L[part.stop :, part].T @ x[part.stop :]
        x[part] = torch.linalg.solve_triangular(L[part, part].T, x[part], upper=True)
    return x
