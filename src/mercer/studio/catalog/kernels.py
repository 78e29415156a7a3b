"""Kernels that a page offers as blocks; any text that the parser reads will do."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from mercer.kernels import Kernel

LOWEST, HIGHEST = 1e-3, 1e3  # of the sliders of positive numbers
_DEGREES = (1, 10)
# every number of a kernel that has a slider: its lowest and highest value, and the slider's scale
RANGES: dict[str, tuple[float, float, str]] = {
    "scale": (LOWEST, HIGHEST, "log"),
    "alpha": (0.05, 50.0, "log"),
    "nu": (0.5, 4.5, "linear"),
    "degree": (*_DEGREES, "linear"),
    "exponent": (*_DEGREES, "linear"),
    "offset": (0.0, 10.0, "linear"),
    "slope": (0.01, 10.0, "log"),
    "factor": (LOWEST, HIGHEST, "log"),
    "value": (LOWEST, HIGHEST, "log"),
}


@dataclass(frozen=True)
class Offer:
    """A kernel of the palette."""

    name: str
    text: str
    words: str


OFFERS = (
    Offer("linear", "linear", "<x, z>: lines"),
    Offer("polynomial", "polynomial(3)", "(<x, z> + 1)^3: curves of degree 3"),
    Offer("gaussian", "gaussian(0.5)", "exp(-|x - z|^2 / (2 scale^2)): any smooth border"),
    Offer(
        "laplacian", "laplacian(0.5)", "exp(-(|x1 - z1| + |x2 - z2|) / scale): borders with corners"
    ),
    Offer("matern", "matern(1.5, 0.5)", "rougher than the Gaussian: 1.5 says how much"),
    Offer("rationalquadratic", "rational_quadratic(1, 0.5)", "Gaussians of all widths at once"),
    Offer("cosine", "cosine", "the cosine of the angle between x and z"),
    Offer("allsubsets", "all_subsets", "products of all subsets of columns"),
    Offer("anova", "anova(2)", "products of two columns"),
    Offer("constant", "constant(1)", "1 everywhere: lets the function have an offset"),
    Offer("sigmoid", "sigmoid(1, 0)", "tanh(<x, z>): not positive semidefinite, as one sees"),
)
OPERATORS = (
    ("+", "sum: features of both, side by side"),
    ("*", "product: all products of features"),
    ("2 *", "weight"),
    ("** 2", "power"),
    ("[0]", "on some columns alone"),
    ("normalized(...)", "every point at length one"),
    ("exp(...)", "exponential: all powers at once"),
)


def numbers_of(kernel: Kernel, prefix: str = "kernel") -> list[dict[str, Any]]:
    """Return the numbers in a kernel that can be set, by the names that machines know.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> [one["name"] for one in numbers_of(Gaussian(2.0) + 0.5 * Linear())]
    ['kernel__k1__scale', 'kernel__k2__factor']
    """
    found = []
    for name, value in kernel.get_params().items():
        last = name.rpartition("__")[2]
        if last not in RANGES or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if last == "factor" and value == 1.0:
            continue  # a product without a number in front
        low, high, scale = RANGES[last]
        whole = isinstance(value, int)
        found.append(
            {"name": f"{prefix}__{name}", "value": value, "low": min(low, value),
             "high": max(high, value), "scale": scale, "kind": "integer" if whole else "number"}
        )  # fmt: skip
    return found


def tree_of(kernel: Kernel) -> dict[str, Any]:
    """Return how a kernel is made, as blocks within blocks."""
    inner, own = [], {}
    for field in fields(kernel):
        value = getattr(kernel, field.name)
        if isinstance(value, Kernel):
            inner.append(value)
        elif isinstance(value, tuple) and value and all(isinstance(one, Kernel) for one in value):
            inner += value
        else:
            own[field.name] = value if isinstance(value, int | float | str) else str(value)
    parts = [tree_of(one) for one in inner]
    return {"name": type(kernel).__name__.lower(), "parameters": own, "parts": parts}
