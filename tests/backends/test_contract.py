"""Every backend gives the numbers of the reference; the choice between them; the flat programs."""

import numpy as np
import pytest
from scipy import sparse, special

from mercer.backends import available_backends, choose_backend
from mercer.backends.lowering import Code, lower, matern_polynomial
from mercer.backends.reference.backend import Reference
from mercer.backends.reference.evaluate import evaluate
from mercer.backends.row_values import diagonal
from mercer.expression import (
    AbsDist,
    Constant,
    Dot,
    Exp,
    MaternProfile,
    Opaque,
    Pow,
    RowFunction,
    RowProduct,
    SqDist,
    Sqrt,
    SymmetricSum,
)
from mercer.resources import config
from mercer.testing.backend import check_backend


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", available_backends())
def test_conforms(name):
    check_backend(name)


def test_the_kit_sees_a_wrong_number(monkeypatch):
    class Wrong(Reference):
        def diagonal(self, expression, X, dtype):
            return super().diagonal(expression, X, dtype) + np.asarray(1e-9, dtype=dtype)

    monkeypatch.setattr("mercer.testing.backend.choose_backend", Wrong)
    with pytest.raises(AssertionError):
        check_backend("reference")


def test_choice():
    with config(backend="reference"):
        assert choose_backend().name == "reference"
    assert choose_backend().name == available_backends()[0]
    with pytest.raises(ValueError, match="abacus"), config(backend="abacus"):
        choose_backend()


def test_whole_powers_of_negative_numbers():
    X = np.array([[1.0, 0.2], [-0.9, 0.1]])
    for exponent in (3, 65, 66, 200):
        e = Pow(0.5 * Dot() + 0.1, float(exponent))
        for name in available_backends():
            with config(backend=name):
                found = choose_backend().pairs(e, X, None, np.float64).dense()
            np.testing.assert_allclose(found, evaluate(e, X, X), rtol=1e-11)


# --- programs --------------------------------------------------------------------------------


def codes(program):
    return [Code(op.code) for op in program.ops]


def test_equal_leaves_are_compared_once():
    program = lower(Exp(-0.5 * SqDist()) + Exp(-2.0 * SqDist()) * SqDist())
    assert program.leaves == (SqDist(),)
    assert lower(SqDist() + AbsDist()).leaves == (SqDist(), AbsDist())


def test_equal_expressions_are_evaluated_once():
    gaussian = Exp(-0.5 * SqDist())
    assert codes(lower(gaussian * gaussian + gaussian)).count(Code.EXP) == 1


def test_scale_and_shift_are_folded():
    program = lower(Exp(-0.5 * (SqDist() + 2.0)))
    assert codes(program) == [Code.EXP]
    assert (program.ops[0].c0, program.ops[0].c1) == (-0.5, -1.0)
    assert codes(lower(2.0 * SqDist() + 3.0 * SqDist())) == [Code.AFFINE]
    assert codes(lower(SqDist())) == []
    assert codes(lower(Constant(2.0))) == [Code.FILL]


def test_powers_take_the_cheapest_way():
    assert codes(lower(Dot() ** 3.0)) == [Code.WHOLE_POWER]
    assert codes(lower(Dot() ** 0.5)) == [Code.SQRT]
    assert codes(lower(Dot() ** 1.5)) == [Code.POWER]
    assert codes(lower(Pow(Dot(), 1.0))) == []


def test_what_python_must_evaluate_is_external():
    opaque = Opaque(np.dot)
    program = lower(opaque + MaternProfile(Sqrt(SqDist()), 0.8) + SymmetricSum(degree=40))
    assert len(program.externals) == 3
    assert program.leaves == ()
    assert lower(opaque * opaque).externals == (opaque,)


def test_registers_are_reused():
    long_sum = sum((Exp(-float(k) * SqDist()) for k in range(1, 20)), Constant(0.0))
    assert lower(long_sum).registers <= 3 + 19  # all terms exist before the sum begins
    chain = SqDist()
    for _ in range(10):
        chain = Exp(-1.0 * chain)
    assert lower(chain).registers == 1


def test_result_is_left_in_register_zero():
    for e in (SqDist() + AbsDist(), RowProduct(RowFunction(len)), Dot() * AbsDist() + Dot()):
        assert lower(e).ops[-1].out == 0


@pytest.mark.parametrize("order", [0, 1, 2, 5])
def test_matern_polynomial(order):
    r = np.linspace(0.01, 20.0, 50)
    nu = order + 0.5
    expected = 2 ** (1 - nu) / special.gamma(nu) * r**nu * special.kv(nu, r)
    found = np.polynomial.polynomial.polyval(r, matern_polynomial(order)) * np.exp(-r)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# --- diagonal --------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1, 3])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_diagonal_of_symmetric_sums(kind, degree):
    rng = np.random.default_rng(0)
    X = rng.random((30, 7)) * (rng.random((30, 7)) < 0.5)
    found = diagonal(SymmetricSum(degree=degree), kind(X))
    expected = np.diagonal(evaluate(SymmetricSum(degree=degree), X, X))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
