"""Machines that predict numbers: along one axis, or on the plane."""

from __future__ import annotations

from functools import partial

from mercer.studio.catalog.classifiers import COST, GAUSSIAN
from mercer.studio.catalog.entry import Entry
from mercer.studio.catalog.parameters import Choice, Number, Switch
from mercer.studio.drawing import curves, layers, margin_layers, surfaces
from mercer.studio.reasons import sums

regressor = partial(Entry, tasks=("regression", "targets"), surface=surfaces.value)

REGRESSORS = (
    regressor(
        "SVR", "Support vector regression", "A tube in which errors cost nothing.",
        layers=(margin_layers.support, layers.predicted_values), curve=curves.tube,
        parameters=(
            COST,
            Number("epsilon", 0.1, "half the width of the tube", 1e-3, 1.0, "log", curve=True),
            Choice("tube", "l1", "errors are paid for as they are, or squared",
                   choices=("l1", "l2")),
        ),
        kernel=GAUSSIAN, tune=("C", "kernel__scale"), reason=sums.kernel_sum, proves=True,
    ),
    regressor(
        "KernelRidge", "Ridge regression", "Least squares, and a price for large functions.",
        layers=(layers.predicted_values,), curve=curves.plain_curve,
        parameters=(
            Number("penalty", 0.1, "price of a large function", 1e-8, 1e3, "log", curve=True),
            Switch("bias", True, "whether there is a constant without a price"),
        ),
        kernel=GAUSSIAN, tune=("penalty", "kernel__scale"), reason=sums.kernel_sum,
    ),
    regressor(
        "GaussianProcess", "Gaussian process", "All functions at once, weighed by the points.",
        layers=(layers.predicted_values,), curve=curves.process,
        parameters=(
            Number("noise", 0.1, "variance of the noise", 1e-6, 10.0, "log", curve=True),
            Switch("optimize", False, "whether kernel and noise are fitted by likelihood"),
        ),
        kernel=GAUSSIAN, tune=("noise", "kernel__scale"), reason=sums.kernel_sum,
    ),
)  # fmt: skip
