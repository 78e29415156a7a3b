"""What programmes and certificates say that rounding may hide, against rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from mercer.gram import FactoredGram, PrecomputedGram, Source
from mercer.gram.transformed import PartGram, ShiftedGram
from mercer.kernels import Linear
from mercer.machines.compression.problem import (
    ReducedSet,
    Reduction,
    _bound_of_rounding,
    squared_errors,
)
from mercer.machines.kernel_learning.certificate import _rounding
from mercer.machines.perceptron.problem import Separation
from mercer.machines.svm.certificate import _lost_in_sums
from mercer.problems import BoxQP

pytestmark = pytest.mark.numerics


def hostile(seed, n=24, d=3):
    """Draw terms of very different sizes, whose sum in the first column nearly vanishes."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-7, 7, (n, 1))
    b = rng.standard_normal(n) * 10.0 ** rng.uniform(-6, 3, n)
    b[-1] = -(F[:-1, 0] @ b[:-1]) / F[-1, 0]
    return F, b


def dot(x, y):
    return sum((Fraction(a) * Fraction(b) for a, b in zip(x, y, strict=True)), Fraction(0))


def times(A, b):
    return [dot(row, b) for row in A]


def within(found, truth, bound):
    apart = [abs(Fraction(float(x)) - t) for x, t in zip(found, truth, strict=True)]
    return all(a <= Fraction(float(r)) for a, r in zip(apart, bound, strict=True))


def programme(gram):
    n = gram.shape[0]
    return BoxQP(gram, np.zeros(n), np.full(n, -np.inf), np.full(n, np.inf))


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("given", [True, False])
def test_products_with_parts_and_shifts(seed, given):
    F, b = hostile(seed)
    base = PrecomputedGram(F @ F.T) if given else FactoredGram(lambda Z: Z, F)
    index = np.concatenate([np.arange(0, 24, 2), np.arange(0, 24, 2)])  # above and below a tube
    b = np.concatenate([b[:12], -b[:12] * (1 + 1e-9)])
    d = np.abs(b) * 1e3
    rows = base.dense() if given else F
    spread = [Fraction(0)] * 24
    for i, v in zip(index, b, strict=True):
        spread[i] += Fraction(v)
    whole = times(rows, spread) if given else times(F, times(F.T, spread))
    parts = [whole[i] for i in index]
    part = PartGram(base, index)
    cases = [(part, parts)]
    moved = [p + Fraction(s) * Fraction(v) for p, s, v in zip(parts, d, b, strict=True)]
    cases.append((ShiftedGram(part, d), moved))
    for gram, truth in cases:
        problem = programme(gram)
        Kb = np.asarray(gram @ b)
        assert within(Kb, truth, problem.product_rounding(b))
        squared = float((b * Kb).sum())
        assert abs(Fraction(squared) - dot(b, truth)) <= Fraction(problem.rounding(b))
        found = problem.accurate_product(b)
        assert within(found[0], truth, found[1])


@pytest.mark.parametrize("seed", range(20))
def test_sums_of_kernels(seed):
    F, b = hostile(seed)
    G = np.random.default_rng(seed).standard_normal((24, 5))
    grams = (FactoredGram(lambda Z: Z, F), PrecomputedGram(G @ G.T))
    factors = np.array([0.3, 1e7 / 3])
    Kb = sum(f * np.asarray(gram @ b) for f, gram in zip(factors, grams, strict=True))
    exact = times(F, times(F.T, b)), times(grams[1].dense(), b)
    truth = [
        Fraction(factors[0]) * x + Fraction(factors[1]) * y for x, y in zip(*exact, strict=True)
    ]
    assert within(Kb, truth, _rounding(factors, grams, b))


@pytest.mark.parametrize("seed", range(20))
def test_sums_of_variables(seed):
    b = hostile(seed)[1]
    truth = abs(sum(map(Fraction, b), Fraction(0)))
    problem = programme(PrecomputedGram(np.eye(24)))
    assert Fraction(_lost_in_sums(problem, b, -1e9)) >= 10**9 * truth


@pytest.mark.parametrize("seed", range(20))
def test_scores(seed):
    F, c = hostile(seed)
    problem = Separation(FactoredGram(lambda Z: Z, F), np.arange(24) % 2, 2, False)
    lengths = np.linalg.norm(F, axis=1)
    w = np.random.default_rng(seed).standard_normal(3)
    hidden = problem.rounding(lengths, float(np.linalg.norm(w)), np.zeros(1), 3)
    assert within(F @ w, times(F, w), hidden)
    norm = float(lengths @ np.abs(c))
    hidden = problem.rounding(lengths, norm, np.zeros(1), 24 + 3)
    assert within(problem.gram @ c, times(F, times(F.T, c)), hidden)


@pytest.mark.parametrize("seed", range(20))
def test_distances_of_functions(seed):
    F, c = hostile(seed, d=1)  # of one column, entries of K are right to their last digit
    F = np.ldexp(1.0, np.frexp(F)[1])  # and of powers of two they are exact
    V, e = F[:9] * 2.0, c[:9] / 3.0
    source = Source(Linear().expression(), F, np.float64, True)
    squares, _, forgiven = squared_errors(Reduction(source, c[:, None]), ReducedSet(V, e[:, None]))
    truth = (dot(F[:, 0], c) - dot(V[:, 0], e)) ** 2
    bound = float(forgiven[0]) * _bound_of_rounding(len(c), len(e))
    assert abs(Fraction(float(squares[0])) - truth) <= Fraction(bound)
