"""Smooth losses (log, squared, tanh), and the regularized empirical risk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log1p, log_expit, xlog1py, xlogy

from mercer.array_types import Array
from mercer.gram import Gram
from mercer.gram.accurate_products import gamma, inner, product_rounding
from mercer.machines.ridge.problem import Coefficients
from mercer.rows.device_arrays import placed_beside
from mercer.rows.points import to_host

# --- losses --------------------------------------------------------------------------------------
#
# Smooth losses of classifiers: value, slope, curvature and conjugate, row by row.
#
# Scores f are (n, 1) for two classes, coded 0 and 1, and (n, classes) for more.


@dataclass(frozen=True, eq=False)
class LossCurvature:
    """Second derivatives of a loss at each row.

    Attributes
    ----------
    own : (n, k) array
        With no `shares`: each score's own curvature, and none between scores.
    shares : (n, k) array or None
        Probabilities p of the classes: the curvature is diag(p) - p p'.
    """

    own: Array
    shares: Array | None = None

    def convex(self) -> LossCurvature:
        """Return the same with all curvature upwards, by its size: as far as it reaches, go."""
        return self if self.shares is not None else LossCurvature(np.abs(self.own))

    def times(self, V: Array) -> Any:
        """Multiply a change of scores (n, k) by the curvature of its row."""
        if self.shares is None:
            return self.own * V
        middle = (self.shares * V).sum(axis=1, keepdims=True)
        return self.shares * (V - middle)

    def mean(self, weights: Array) -> Array:
        """Return the weighted mean over the rows of the curvature between scores: (k, k)."""
        total = float(weights.sum())
        if self.shares is None:
            return np.diag(weights @ self.own / total)
        p = self.shares
        return np.asarray(np.diag(weights @ p) - p.T @ (weights[:, None] * p)) / total

    def between(self, c: int, e: int) -> Array | None:
        """Return the curvature between two scores: (n,); None where there is none at all."""
        if self.shares is None:
            return self.own[:, c] if c == e else None
        p = self.shares
        return p[:, c] * (1 - p[:, c]) if c == e else -p[:, c] * p[:, e]


class Loss(ABC):
    """A smooth loss of scores.

    Attributes
    ----------
    convex : bool
        Whether it is a convex function of the scores.
    """

    convex: ClassVar[bool] = True

    @abstractmethod
    def steepest(self, columns: int) -> float:
        """Return a bound of its curvature."""

    @abstractmethod
    def values(self, f: Array, codes: Array) -> Any:
        """Return the loss of each row: (n,)."""

    @abstractmethod
    def slopes(self, f: Array, codes: Array) -> Any:
        """Return its derivatives by the scores: (n, k)."""

    def both(self, f: Array, codes: Array) -> tuple[Array, Array]:
        """Return values and slopes; quicker together where they share their work."""
        return self.values(f, codes), self.slopes(f, codes)

    @abstractmethod
    def curvature(self, f: Array, codes: Array) -> LossCurvature:
        """Return its second derivatives."""

    @abstractmethod
    def conjugates(self, u: Array, codes: Array) -> Any:
        """Return sup_f u'f - loss(f) of each row, at slopes u that the loss has somewhere: (n,)."""

    @abstractmethod
    def log_probabilities(self, f: Array) -> Array:
        """Return what scores say of the classes, in logarithms: (n, classes)."""

    def probabilities(self, f: Array) -> Array:
        """Return what scores say of the classes: (n, classes)."""
        return np.asarray(np.exp(self.log_probabilities(f)))


class LogLoss(Loss):
    """-log of the probability of the right class: log(1 + exp(-y f)), or of a softmax."""

    def steepest(self, columns: int) -> float:
        """Return the most that p (1 - p), or diag(p) - p p', can be."""
        return 0.25 if columns == 1 else 0.5

    def values(self, f: Array, codes: Array) -> Any:
        """Return -log p of the right class."""
        return self.both(f, codes)[0]

    def slopes(self, f: Array, codes: Array) -> Any:
        """Return p less one for the right class; exact where p is near one, too."""
        return self.both(f, codes)[1]

    def both(self, f: Array, codes: Array) -> tuple[Array, Array]:
        """Return values and slopes from the same exponentials."""
        if f.shape[1] == 1:
            y = signs(codes)
            behind = -y * f
            small = np.exp(-np.abs(behind))
            values = np.maximum(behind, 0.0) + log1p(small)
            return values[:, 0], -y * np.where(behind > 0, 1.0, small) / (1.0 + small)
        rows, most = np.arange(len(f), like=f), f.max(axis=1)
        ahead = f[rows, codes] - most
        p = np.exp(f - most[:, None])
        p[rows, codes] = 0.0
        others, right = p.sum(axis=1), np.exp(ahead)
        # where the right class is ahead, what is small is not first added to what is large
        total = others + right
        values = np.where(ahead < 0, np.log(total) - ahead, log1p(others))
        p /= total[:, None]
        p[rows, codes] = -others / total
        return values, p

    def curvature(self, f: Array, codes: Array) -> LossCurvature:
        """Return p (1 - p), or diag(p) - p p'."""
        if f.shape[1] == 1:
            return LossCurvature(expit(f) * expit(-f))
        p = softmax(f)
        return LossCurvature(p, p)

    def conjugates(self, u: Array, codes: Array) -> Any:
        """Return the negative entropy of the probabilities that have these slopes."""
        if u.shape[1] == 1:
            wrong = np.clip(-signs(codes) * u, 0.0, 1.0)[:, 0]
            return xlogy(wrong, wrong) + xlog1py(1 - wrong, -wrong)
        others, rows = np.maximum(u, 0.0), np.arange(len(u), like=u)
        others[rows, codes] = 0.0
        wrong = np.minimum(others.sum(axis=1), 1.0)
        right = xlog1py(1 - wrong, -wrong)
        return xlogy(others, others).sum(axis=1) + right

    def log_probabilities(self, f: Array) -> Array:
        """Return the logarithm of the logistic function of the scores."""
        if f.shape[1] == 1:
            return two_columns(log_expit(f[:, 0]), log_expit(-f[:, 0]))
        return log_softmax(f)

    def probabilities(self, f: Array) -> Array:
        """Return the logistic function of the scores."""
        return two_columns(expit(f[:, 0]), expit(-f[:, 0])) if f.shape[1] == 1 else softmax(f)


class SquaredLoss(Loss):
    """Half the squared distance of the score from y = 1 or -1; of each class against the rest."""

    def steepest(self, columns: int) -> float:
        """Return one."""
        return 1.0

    def values(self, f: Array, codes: Array) -> Any:
        """Return (f - y)^2 / 2, added up over the scores."""
        return 0.5 * np.square(f - targets(codes, f.shape[1])).sum(axis=1)

    def slopes(self, f: Array, codes: Array) -> Any:
        """Return f - y."""
        return f - targets(codes, f.shape[1])

    def curvature(self, f: Array, codes: Array) -> LossCurvature:
        """Return one."""
        return LossCurvature(np.ones_like(f))

    def conjugates(self, u: Array, codes: Array) -> Any:
        """Return u^2 / 2 + u y."""
        return (0.5 * np.square(u) + u * targets(codes, u.shape[1])).sum(axis=1)

    def log_probabilities(self, f: Array) -> Array:
        """Refuse: least squares fits labels, not chances."""
        raise AttributeError("the squared loss gives no probabilities; use loss='log'")


class TanhLoss(Loss):
    """1 - y tanh(f), between 0 and 2 however far off a row is; of each class against the rest.

    It is twice the chance of a mistake when the class is drawn with probability 1 / (1 + exp(-2f)).
    """

    convex = False

    def steepest(self, columns: int) -> float:
        """Return the most that 2 t (1 - t^2) can be."""
        return float(4 / (3 * np.sqrt(3.0)))

    def values(self, f: Array, codes: Array) -> Any:
        """Return 1 - y tanh(f), added up over the scores."""
        return (2 * expit(-2 * targets(codes, f.shape[1]) * f)).sum(axis=1)

    def slopes(self, f: Array, codes: Array) -> Any:
        """Return -y (1 - tanh(f)^2)."""
        return -targets(codes, f.shape[1]) * _square_sech(f)

    def curvature(self, f: Array, codes: Array) -> LossCurvature:
        """Return 2 y tanh(f) (1 - tanh(f)^2)."""
        y = targets(codes, f.shape[1])
        return LossCurvature(2 * y * np.tanh(f) * _square_sech(f))

    def conjugates(self, u: Array, codes: Array) -> Any:
        """Return infinity: below a bounded function there is no line that rises."""
        return np.full(len(u), np.inf)

    def log_probabilities(self, f: Array) -> Array:
        """Return the probabilities of which the loss is the chance of a mistake, in logarithms."""
        if f.shape[1] == 1:
            return two_columns(log_expit(2 * f[:, 0]), log_expit(-2 * f[:, 0]))
        return log_softmax(log_expit(2 * f))


def signs(codes: Array) -> Array:
    """Return -1 for code 0 and 1 for code 1: (n, 1)."""
    return np.where(codes == 1, 1.0, -1.0)[:, None]


def targets(codes: Array, columns: int) -> Array:
    """Return 1 for the score of the right class and -1 for others: (n, columns)."""
    if columns == 1:
        return signs(codes)
    return np.where(codes[:, None] == np.arange(columns), 1.0, -1.0)


def softmax(f: Array) -> Any:
    """Return exp(f) with rows that add up to one."""
    p = np.exp(f - f.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def log_softmax(f: Array) -> Array:
    """Return the logarithm of `softmax`."""
    behind = f - f.max(axis=1, keepdims=True)
    return np.asarray(behind - np.log(np.exp(behind).sum(axis=1, keepdims=True)))


def two_columns(second: Array, first: Array) -> Array:
    """Put the probabilities of two classes side by side."""
    return np.column_stack([first, second])


def _square_sech(f: Array) -> Array:
    return 4 * expit(2 * f) * expit(-2 * f)


# --- smooth risk ---------------------------------------------------------------------------------
#
# A smooth loss over rows plus a squared norm: logistic regression and its relatives.


@dataclass(frozen=True, eq=False)
class SmoothRisk:
    """Minimise sum_i s_i loss(f(x_i), y_i) + penalty / 2 |f|^2 over f = sum_j a_j k(x_j, .) + b.

    One function for two classes, one for each class otherwise. At a minimum
    a_i = -s_i loss'(f(x_i)) / penalty and, with a bias, the a_i add up to zero. The answer is a
    `Coefficients`.

    Attributes
    ----------
    gram : Gram
        K.
    codes : (n,) int array
        The number of the class of each row.
    count : int
        How many classes.
    weights : (n,) array
        Positive weights s of the rows.
    penalty : float
        Weight of the squared norm; zero where features of full rank, and classes that overlap,
        leave a minimum without it.
    loss : Loss
        Log, squared or tanh.
    bias : bool
        Whether there is a bias b, which is not penalised.
    """

    gram: Gram
    codes: Array
    count: int
    weights: Array
    penalty: float
    loss: Loss
    bias: bool

    @property
    def columns(self) -> int:
        """How many functions there are."""
        return 1 if self.count == 2 else self.count

    def risk(self, f: Array) -> float:
        """Return the weighted loss of scores (n, columns)."""
        return float(self.weights @ self.loss.values(f, self.codes))

    def weighted_slopes(self, f: Array) -> Any:
        """Return the weighted slopes of the loss: (n, columns)."""
        return self.weights[:, None] * self.loss.slopes(f, self.codes)

    def both(self, f: Array) -> tuple[float, Array]:
        """Return risk and pulls."""
        values, slopes = self.loss.both(f, self.codes)
        return float(self.weights @ values), self.weights[:, None] * slopes

    def sizes(self, weighted_slopes: Array) -> Array:
        """Return what pulls are measured by: their sizes, (n, columns).

        Of a bounded loss, the sizes they can have anywhere: its slopes all vanish together when a
        bias runs away, where there is no minimum to come near to.
        """
        if self.loss.convex:
            return np.abs(weighted_slopes)
        return np.ones_like(weighted_slopes) * self.weights[:, None]

    def objective(self, value: Coefficients) -> float:
        """Return the weighted loss and the penalty of an answer in coefficients of rows."""
        image = np.asarray(self.gram @ value.coef)
        squared = float((value.coef * image).sum())
        return self.risk(image + value.intercept) + 0.5 * self.penalty * squared

    def placed(self) -> SmoothRisk:
        """Return the same question with what it holds of rows where their features lie."""
        codes, weights = self.beside(self.codes), self.beside(self.weights)
        return replace(self, codes=codes, weights=weights)

    def beside(self, array: Any) -> Any:
        """Return numbers of rows where the features lie, if these are many; else on the host."""
        return placed_beside(self.gram.at_hand, array)

    def of_weight_one(self) -> SmoothRisk:
        """Return the same question with weights that add up to one: its answers are the same."""
        total = float(self.weights.sum())
        return replace(self, weights=self.weights / total, penalty=self.penalty / total)


CERTIFIED = 1e-6  # the relative gap that certificates allow unless told otherwise
_MORE = 12  # roundings of what the dual is computed from, in addition to those of its sums


def rounding_of_dual(problem: SmoothRisk, gram: Gram, u: Any, squares: Array) -> float:
    """Bound the rounding of u'Ku / (2 penalty): samples far from zero leave it no digit.

    By |u|'r with r the bound of K u, entries of K included. If K = F F' it is less: with e the
    same bound of F'u, Higham (3.5), and c the computed square, |F'u| <= c^1/2 + 3 e, and u'Ku is
    off by e (|F'u| + e) of F'u and as much of the outer product: by 2 e c^1/2 + 8 e^2.

    Parameters
    ----------
    problem : SmoothRisk
        The problem.
    gram : Gram
        Its K in float64.
    u : (n, k) array
        Weighted slopes.
    squares : (k,) array
        u'Ku of each function, as computed.
    """
    total, lengths = 0.0, np.sqrt(np.abs(gram.diag()))
    for v, square in zip(np.abs(to_host(u)).T, squares, strict=True):
        if gram.features is None:
            total += inner(v, product_rounding(gram, v, more=_MORE))
            continue
        e = gamma(len(v) + gram.rank + _MORE) * inner(v, lengths)
        total += 2 * e * float(np.sqrt(abs(square))) + 8 * e**2
    return total / (2 * problem.penalty)
