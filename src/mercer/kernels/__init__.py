"""Kernels: what similarity is. No storage, no device, no solver.

A kernel k(x, y) is the inner product of two rows in a space of features that need not be computed.
Kernels are immutable values: they compare, hash, pickle, print as the code that makes them, and
combine by rules that keep them valid:

==========================  ===============================================
`c * k`, `k1 + k2`          c >= 0; a number added is a constant kernel
`k1 * k2`, `k ** p`         p = 1, 2, ...
`exp(k)`                    exponential
`polynomial(k, c)`          c_0 + c_1 k + c_2 k^2 + ..., all c_i >= 0
`k.on(columns)`             looks at these columns only
`k.after(phi)`              k(phi(x), phi(y))
`k.scaled_by(f)`            f(x) k(x, y) f(y)
`k.normalized()`            k(x, y) / sqrt(k(x, x) k(y, y))
==========================  ===============================================

`k(X, Y)` is the matrix, `k.diag(X)` its diagonal, `k.features(d)` the finite feature map if there
is one, `k.features(X, tol)` one with a bound on its error. `parse` reads a kernel from text,
`resolve` from any value of a `kernel=` parameter, and `is_valid` checks a custom function
on data. `eigenfunctions` is Mercer's theorem, `mercer_condition` its test of a kernel.

>>> from mercer.kernels import Gaussian, Polynomial
>>> k = Gaussian(scale=2.0) + 0.5 * Polynomial(degree=2).on([0, 1])
>>> k([[1.0, 0.0, 3.0], [0.0, 0.0, 1.0]]).round(3).tolist()
[[3.0, 1.035], [1.035, 1.5]]
"""

from mercer.kernels.algebra import Kernel, exp, polynomial
from mercer.kernels.default_kernels import resolve
from mercer.kernels.families import (
    AllSubsets,
    Anova,
    Bilinear,
    ChiSquared,
    Constant,
    Coregionalized,
    Cosine,
    FromCallable,
    FromFeatures,
    Gaussian,
    Intersection,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    Tanimoto,
)
from mercer.kernels.features import FeatureMap
from mercer.kernels.mercer_theorem import (
    BoxDensity,
    Density,
    Eigenfunctions,
    NormalDensity,
    SampleDensity,
    UniformDensity,
    eigenfunctions,
)
from mercer.kernels.parser import ParseError, parse
from mercer.kernels.sequences import Spectrum, Subsequence
from mercer.kernels.series import TruncatedFeatureMap
from mercer.kernels.validity import (
    MercerCondition,
    Validity,
    integral_form,
    is_valid,
    mercer_condition,
)

__all__ = [
    "Kernel",
    # dot products
    "Linear",
    "Polynomial",
    "Bilinear",
    "Coregionalized",
    "Cosine",
    "AllSubsets",
    "Anova",
    "Sigmoid",
    "Constant",
    # distances
    "Gaussian",
    "Laplacian",
    "Matern",
    "RationalQuadratic",
    # histograms and sets
    "ChiSquared",
    "Intersection",
    "Tanimoto",
    # sequences
    "Spectrum",
    "Subsequence",
    # given
    "Precomputed",
    "FromFeatures",
    "FromCallable",
    # building
    "exp",
    "polynomial",
    "parse",
    "ParseError",
    "resolve",
    # looking
    "FeatureMap",
    "TruncatedFeatureMap",
    "is_valid",
    "Validity",
    # Mercer's theorem
    "eigenfunctions",
    "Eigenfunctions",
    "mercer_condition",
    "MercerCondition",
    "integral_form",
    "Density",
    "NormalDensity",
    "UniformDensity",
    "BoxDensity",
    "SampleDensity",
]
