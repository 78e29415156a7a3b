"""Every kernel keeps the promises of all kernels; the kit finds kernels that do not."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

from mercer import expression as ex
from mercer.backends import available_backends
from mercer.kernels import (
    AllSubsets,
    Anova,
    Bilinear,
    ChiSquared,
    Constant,
    Cosine,
    FromCallable,
    Gaussian,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    Tanimoto,
    exp,
    polynomial,
)
from mercer.resources import config
from mercer.testing import check_kernel

KERNELS = [
    Linear(),
    Polynomial(),
    Polynomial(3, 0),
    Bilinear(np.diag([1.0, 2.0, 0.0, 1.0, 3.0]) + 0.1),
    Cosine(),
    AllSubsets(),
    Anova(3),
    Sigmoid(0.1, -1),
    Constant(2),
    Gaussian(2.0),
    Gaussian([1, 2, 3, 4, 5]),
    Laplacian(3),
    Laplacian([1, 2, 3, 4, 5]),
    Matern(0.5),
    Matern(1.5, [1, 2, 3, 4, 5]),
    Matern(2.5, 2),
    Matern(np.inf),
    Matern(1.2),
    RationalQuadratic(0.5, 2),
    ChiSquared(2.0),
    Intersection(),
    Tanimoto(),
    Gaussian() + Linear() + 1,
    2 * Gaussian() * Polynomial(2).on([0, 3]),
    (Linear() + 0.5) ** 3,
    exp(0.1 * Linear()),
    polynomial(Cosine(), [1, 0, 2]),
    Polynomial(2).normalized(),
    exp(-1 * -0.2 * Linear()).normalized().on(slice(1, 4)),
    (Linear() * 0.0) ** 2,
]


@pytest.fixture(autouse=True, scope="module", params=available_backends())
def backend(request):
    with config(backend=request.param):
        yield request.param


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernel(kernel):
    check_kernel(kernel)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernel_on_float32(kernel):
    X = np.random.default_rng(0).uniform(size=(9, 5)).astype(np.float32)
    assert kernel(X).dtype == np.float32
    assert kernel(X, X[:2]).dtype == np.float32
    assert kernel.diag(X).dtype == np.float32
    assert kernel(X, X[:2].astype(np.float64)).dtype == np.float64
    check_kernel(kernel, X)


def messy(X):
    """The same matrix with unsorted, duplicate and explicitly zero entries."""
    coo = sparse.coo_array(X)
    row, col = coo.coords
    rows, cols = np.r_[row, row, 0, 1], np.r_[col, col, 0, 1]
    data = np.r_[0.25 * coo.data, 0.75 * coo.data, 0.0, 0.0]
    order = np.random.default_rng(5).permutation(len(data))
    rows, cols, data = rows[order], cols[order], data[order]
    by_row = np.argsort(rows, kind="stable")
    indptr = np.r_[0, np.cumsum(np.bincount(rows, minlength=len(X)))]
    out = sparse.csr_array((data[by_row], cols[by_row], indptr), shape=X.shape)
    assert not out.has_canonical_format
    return out


def wide_indices(X):
    out = sparse.csr_array(X)
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    return out


FORMS = {
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csc_array": sparse.csc_array,
    "csc_matrix": sparse.csc_matrix,
    "coo_array": sparse.coo_array,
    "int64": wide_indices,
    "messy": messy,
}


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("form", FORMS)
def test_dense_and_sparse_agree(kernel, form):
    rng = np.random.default_rng(6)
    X = rng.uniform(size=(8, 5)) * (rng.uniform(size=(8, 5)) < 0.5)
    X[2] = 0.0
    K, size = kernel(X), np.abs(kernel(X)).max()
    S = FORMS[form](X)
    before = S.copy()
    for found, wanted in [
        (kernel(S), K),
        (kernel(S, X[:3]), K[:, :3]),
        (kernel(X[:3], S), K[:3]),
        (kernel.diag(S), np.diagonal(K)),
    ]:
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * size)
    assert (S != before).nnz == 0, "the caller's matrix was changed"


@dataclass(frozen=True)
class NotSymmetric(Kernel):
    def expression(self):
        return ex.Opaque(lambda X, Y: X[:, :1] @ Y[:, 1:2].T)


@dataclass(frozen=True)
class WrongClaim(Kernel):
    def expression(self):
        return -1.0 * ex.Dot()


class NoValue(Kernel):
    def __init__(self, a):
        object.__setattr__(self, "a", a)

    def expression(self):
        return ex.Opaque(lambda X, Y: X @ Y.T)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (NotSymmetric(), "k\\(X, X\\) differs"),
        (WrongClaim(), "eigenvalue"),
        (NoValue(3), "expression is not the same"),
        (FromCallable(lambda X, Y: np.full((X.shape[0], Y.shape[0]), np.nan)), "not finite"),
    ],
    ids=["asymmetric", "negative", "mutable", "nan"],
)
def test_the_kit_finds_what_is_wrong(kernel, words):
    with pytest.raises(AssertionError, match=words):
        check_kernel(kernel)


@dataclass(frozen=True)
class Own(Kernel):
    rate: float = 1.0

    def expression(self):
        return ex.Exp(self.rate * ex.Dot())


def test_a_kernel_of_ones_own():
    check_kernel(Own(0.5))
    check_kernel(Own(0.5) * 2 + Linear())
