"""Gaussian processes: learning parameters, bands and classes, against scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier as TheirClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from benchmarks.harness import Case, Row, run
from mercer import GaussianProcess, GaussianProcessClassifier
from mercer.kernels import Gaussian

NOTE = """Both search from the same hyperparameters with L-BFGS-B in the logarithms, to their own
tolerances. The log-likelihood is the one they reach (higher is better)."""

RIVAL = "scikit-learn"


def data(n: int) -> tuple[Any, Any]:
    """Make a smooth function of four variables with some noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4))
    y = np.sin(X[:, 0] * X[:, 1]) + 0.5 * X[:, 2] + 0.2 * rng.standard_normal(n)
    return X, y


def learnt(n: int, scales: Any = 1.0) -> list[Row]:
    """Learn variance, scale and noise."""
    X, y = data(n)

    def ours() -> float:
        machine = GaussianProcess(1.0 * Gaussian(scales), noise=0.1, optimize=True).fit(X, y)
        return machine.log_marginal_likelihood_value_

    def theirs() -> float:
        kernel = ConstantKernel(1.0) * RBF(scales) + WhiteKernel(0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machine = GaussianProcessRegressor(kernel).fit(X, y)
        return float(machine.log_marginal_likelihood_value_)

    kind = "one scale" if np.ndim(scales) == 0 else "a scale for each column"
    repeats = 3 if n < 1000 else 1
    return run(
        Case(
            f"Gaussian process, parameters learnt, {kind}, n = {n}",
            ours,
            {RIVAL: theirs},
            lambda value: f"log-likelihood {value:.4f}",
            repeats=repeats,
            rival_repeats=repeats,
        )
    )


def bands(n: int, new: int) -> list[Row]:
    """Fit with given parameters, and predict with standard deviations."""
    X, y = data(n)
    Z = np.random.default_rng(1).standard_normal((new, 4))
    machine = GaussianProcess(1.0 * Gaussian(1.0), noise=0.1)
    rival = GaussianProcessRegressor(ConstantKernel(1.0) * RBF(1.0), alpha=0.1, optimizer=None)
    rows = run(
        Case(
            f"Gaussian process, one fit, n = {n}",
            lambda: machine.fit(X, y).log_marginal_likelihood_value_,
            {RIVAL: lambda: rival.fit(X, y).log_marginal_likelihood_value_},
            lambda value: f"log-likelihood {value:.4f}",
        )
    )
    return rows + run(
        Case(
            f"Gaussian process, {new} new rows with standard deviations, n = {n}",
            lambda: machine.predict(Z, return_std=True)[1],
            {RIVAL: lambda: rival.predict(Z, return_std=True)[1]},
            lambda std: f"mean {std.mean():.6f}",
        )
    )


def classes(n: int) -> list[Row]:
    """Learn the kernel of a classifier."""
    X, y = data(n)
    labels = y > 0

    def ours() -> float:
        machine = GaussianProcessClassifier(1.0 * Gaussian(1.0), optimize=True).fit(X, labels)
        return machine.log_marginal_likelihood_value_

    def theirs() -> float:
        machine = TheirClassifier(ConstantKernel(1.0) * RBF(1.0)).fit(X, labels)
        return float(machine.log_marginal_likelihood_value_)

    return run(
        Case(
            f"Gaussian process classes, parameters learnt, n = {n}",
            ours,
            {RIVAL: theirs},
            lambda value: f"log-evidence {value:.4f}",
            repeats=1,
            rival_repeats=1,
        )
    )


def cases() -> list[Row]:
    rows = [row for n in (100, 300, 1000, 3000) for row in learnt(n)]
    rows += learnt(300, [1.0, 1.0, 1.0, 1.0])
    return rows + bands(3000, 3000) + classes(300)


if __name__ == "__main__":
    cases()
