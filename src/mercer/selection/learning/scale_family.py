"""A kernel as a function of its scales: how it is written, and which distance they stretch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array, FrozenArray, Points
from mercer.expression import (
    AbsDist,
    Expression,
    SqDist,
    Statistic,
    Stretch,
    bind_columns,
    walk,
)
from mercer.kernels import Kernel
from mercer.kernels.slopes import NoSlopeError, columns_of_distance, slope
from mercer.points import row_count


@dataclass(frozen=True, eq=False)
class ScaleFamily:
    """Kernels that differ in their scales.

    Attributes
    ----------
    template : Kernel
        One of them.
    parameter : str
        The name of the scale in it.
    names : list of str or None
        Names of the columns of the rows.
    start : (d,) array
        Scales to start from.
    units : (d,) array
        What scales are compared with: the spread of each column, times the root of their number (or
        times that number where distances are sums of absolute differences).
    spread : (d,) array
        Standard deviation of each column.
    """

    template: Kernel
    parameter: str
    names: list[str] | None
    start: Array
    units: Array
    spread: Array

    def kernel(self, scales: Array) -> Kernel:
        """Return the kernel with these scales."""
        return self.template.with_params(**{self.parameter: FrozenArray(scales)})

    def formula(self, scales: Array) -> tuple[Expression, Statistic]:
        """Return its formula, and the distance in it that the scales stretch."""
        expression = bind_columns(self.kernel(scales).expression(), self.names)
        return expression, _stretched(expression, self.template)


def scale_family(
    kernel: Any, points: Points, names: list[str] | None, weights: Array
) -> ScaleFamily:
    """Read a kernel, or one of their classes; refuse those without scales or without a gradient."""
    given = isinstance(kernel, Kernel)
    template = kernel if given else _instance(kernel)
    parameters = template.get_params()
    scales = [name for name in parameters if name == "scale" or name.endswith("__scale")]
    if len(scales) != 1:
        raise ValueError(
            f"learn_scales: kernel={template!r} has {len(scales)} parameters called scale; use a "
            "kernel with one, such as Gaussian, Laplacian, Matern or RationalQuadratic"
        )
    # how many columns the distance looks at shows once it has a stretch
    bare = template.with_params(**{scales[0]: FrozenArray([1.0])})
    leaf = _stretched(bind_columns(bare.expression(), names), template)
    raw = columns_of_distance(leaf, points)
    spread = _spread(raw, weights)
    units = spread * (raw.shape[1] if isinstance(leaf, AbsDist) else np.sqrt(raw.shape[1]))
    own = np.asarray(parameters[scales[0]], dtype=np.float64)
    if own.ndim and own.shape != units.shape:
        raise ValueError(
            f"learn_scales: kernel={template!r} has {len(own)} scales, but it looks at "
            f"{len(units)} columns of X; give one scale, or one for each"
        )
    start = np.broadcast_to(own, units.shape)
    family = ScaleFamily(
        template, scales[0], names, start.copy() if given else units, units, spread
    )
    _refuse_without_slope(family)
    return family


def _instance(kernel: Any) -> Kernel:
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        return kernel()
    raise TypeError(
        f"learn_scales: kernel={kernel!r} must be a kernel with a scale, such as Gaussian(1.0), or "
        "the class of one, such as Gaussian"
    )


def _stretched(expression: Expression, kernel: Kernel) -> Statistic:
    """Find the distance whose last step is a stretch."""
    found = {
        leaf
        for leaf in walk(expression)
        if isinstance(leaf, SqDist | AbsDist) and leaf.steps and isinstance(leaf.steps[-1], Stretch)
    }
    if len(found) != 1:
        raise ValueError(
            f"learn_scales: kernel={kernel!r} has no distance with one scale per feature; use "
            "Gaussian, Laplacian, Matern or RationalQuadratic, alone or in sums and products"
        )
    leaf: Statistic = found.pop()
    return leaf


def _refuse_without_slope(family: ScaleFamily) -> None:
    expression, leaf = family.formula(family.start)
    try:
        slope(expression, leaf)
    except NoSlopeError as error:
        raise ValueError(
            f"learn_scales: kernel={family.template!r} has no gradient in its scales: {error}"
        ) from error


def _spread(rows: Array, weights: Array) -> Array:
    """Return the standard deviation of each column; 1 where all entries are equal."""
    if not row_count(rows):
        return np.ones(rows.shape[1])
    share = weights / weights.sum()
    deviation = np.sqrt(share @ (rows - share @ rows) ** 2)
    size = np.abs(rows).max(axis=0)
    return np.where(deviation > 1e-12 * size, deviation, 1.0)
