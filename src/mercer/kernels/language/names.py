"""The names of kernels in texts: any case, with or without underscores."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from mercer.kernels.algebra import exp, polynomial
from mercer.kernels.base import Kernel
from mercer.kernels.families.dot import (
    AllSubsets,
    Anova,
    Bilinear,
    Constant,
    Cosine,
    Linear,
    Polynomial,
    Sigmoid,
)
from mercer.kernels.families.given import Precomputed
from mercer.kernels.families.histogram import ChiSquared, Intersection, Tanimoto
from mercer.kernels.families.radial import Gaussian, Laplacian, Matern, RationalQuadratic
from mercer.kernels.families.sequence import Spectrum, Subsequence
from mercer.kernels.families.tasks import Coregionalized

# what scikit-learn, LIBSVM and kernlab call them
_ALIASES = {
    "rbf": "gaussian",
    "rbfdot": "gaussian",
    "radial": "gaussian",
    "squaredexponential": "gaussian",
    "poly": "polynomial",
    "polydot": "polynomial",
    "vanilladot": "linear",
    "dot": "linear",
    "laplace": "laplacian",
    "laplacedot": "laplacian",
    "tanh": "sigmoid",
    "tanhdot": "sigmoid",
    "anovadot": "anova",
    "chi2": "chisquared",
    "jaccard": "tanimoto",
    "rq": "rationalquadratic",
}


def plain(name: str) -> str:
    """Write a name in small letters without underscores; other libraries' names become ours."""
    found = name.lower().replace("_", "")
    return _ALIASES.get(found, found)


KERNELS: dict[str, type[Kernel]] = {
    plain(kernel.__name__): kernel
    for kernel in (
        *(Linear, Polynomial, Bilinear, Cosine, AllSubsets, Anova, Sigmoid, Constant),
        *(Gaussian, Laplacian, Matern, RationalQuadratic),
        *(ChiSquared, Intersection, Tanimoto, Spectrum, Subsequence, Precomputed, Coregionalized),
    )
}


def _normalized(kernel: Kernel) -> Kernel:
    if not isinstance(kernel, Kernel):
        raise TypeError("normalized(...) takes a kernel")
    return kernel.normalized()


_FUNCTIONS: dict[str, Callable[..., Kernel]] = {
    "exp": exp,
    "normalized": _normalized,
    "polynomial": polynomial,
}


def maker(name: str, of_kernel: bool) -> Callable[..., Kernel] | None:
    """Find what a name makes; `polynomial` of a kernel is another thing than of a number."""
    kernel, function = KERNELS.get(plain(name)), _FUNCTIONS.get(plain(name))
    return function or kernel if of_kernel else kernel or function


def unknown(name: str) -> str:
    """Return a message that there is no such kernel, and which one may be meant."""
    known = sorted({*KERNELS, *_FUNCTIONS})
    near = get_close_matches(plain(name), [*known, *_ALIASES], n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return f"there is no kernel {name!r}; {hint}"
