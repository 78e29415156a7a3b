"""K + shift I is positive semidefinite, in rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from mercer.gram import PrecomputedGram, definiteness
from mercer.gram.definite import _by_factor

pytestmark = pytest.mark.numerics


def is_semidefinite(A):
    """Eliminate: every pivot is positive, or its row is zero."""
    A = [list(row) for row in A]
    while A:
        pivot, first = A[0][0], A[0][1:]
        if pivot < 0 or (pivot == 0 and any(first)):
            return False
        rest = [row[1:] for row in A[1:]]
        if pivot > 0:
            rest = [
                [a - x * y / pivot for a, y in zip(row, first, strict=True)]
                for row, x in zip(rest, first, strict=True)
            ]
        A = rest
    return True


def drawn(seed, n):
    """Draw a matrix of low rank and of rows of many sizes, which rounding makes indefinite."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n, 1 + seed % 4)) * 10.0 ** rng.uniform(-(seed % 5), 0, (n, 1))
    return F @ F.T if seed % 3 else F[:, :1] @ F[:, :1].T + 1.0


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("whole", [300, 0])
def test_what_is_shown_is_so(seed, whole, monkeypatch):
    monkeypatch.setattr("mercer.gram.definite._WHOLE", whole)
    K = drawn(seed, 4 + seed % 8)
    gram = PrecomputedGram(K)
    found = definiteness(gram)
    if whole:
        assert found.shown
        assert found.shift <= 1e-12 * np.abs(K).max() * len(K)
    if found.shown:
        A = [[Fraction(v) for v in row] for row in gram.dense()]
        for i in range(len(A)):
            A[i][i] += Fraction(found.shift)
        assert is_semidefinite(A)


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("whole", [300, 0])
def test_what_is_shown_of_differences_is_so(seed, whole, monkeypatch):
    monkeypatch.setattr("mercer.gram.definite._WHOLE", whole)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((5 + seed % 6, 1 + seed % 3)) + 10.0 ** (seed % 5)
    gram = PrecomputedGram(-np.square(X[:, None] - X[None]).sum(axis=2))
    found = definiteness(gram, sums_to_zero=True)
    assert found.shown
    A = [[Fraction(v) for v in row] for row in gram.dense()]
    n = len(A)
    for i in range(n):
        A[i][i] += Fraction(found.shift)
    last = n - 1  # v = e_i - e_last spans the vectors whose entries add up to zero
    B = [
        [A[i][j] - A[i][last] - A[last][j] + A[last][last] for j in range(last)]
        for i in range(last)
    ]
    assert is_semidefinite(B)


@pytest.mark.parametrize("seed", range(10))
def test_a_factor_is_as_near_as_is_said(seed):
    K = drawn(seed, 12)
    A = K + 1e-13 * np.abs(K).max() * np.eye(12)
    try:
        L = np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return
    exact = [
        [sum(Fraction(x) * Fraction(y) for x, y in zip(L[i], L[j], strict=True)) for j in range(12)]
        for i in range(12)
    ]
    apart = [[float(abs(Fraction(A[i, j]) - exact[i][j])) for j in range(12)] for i in range(12)]
    assert np.linalg.norm(apart, 2) <= _by_factor(L)
