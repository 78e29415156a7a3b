"""Approximate kernels K ~ F F' by few features F, which every estimator can use.

An approximation is a value (`Nystrom(1000)`, `RandomFeatures(2000)`); `of` binds it to a kernel and
rows, and gives a kernel with a finite feature map for any estimator. `ApproximateKernel.error`
estimates the difference from the exact kernel.
"""

from mercer.approximation.base import (
    ApproximateKernel,
    Approximation,
    ApproximationError,
    StatedError,
)
from mercer.approximation.nystrom import Nystrom
from mercer.approximation.random_features import RandomFeatures

__all__ = [
    "ApproximateKernel",
    "Approximation",
    "ApproximationError",
    "Nystrom",
    "RandomFeatures",
    "StatedError",
]
