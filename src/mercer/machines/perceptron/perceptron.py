"""Estimator `Perceptron`, its fast checks, and its attributes."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.approximation import ApproximateKernel, Approximation
from mercer.approximation.base import Features
from mercer.array_types import Array, Points
from mercer.expression import bind_columns
from mercer.gram import Gram, Need, make_gram
from mercer.gram.build import feature_gram, refuse_overflow
from mercer.kernels import Kernel, Linear, Precomputed
from mercer.kernels.features import feature_map
from mercer.machines.base.certificate import Certified, lazy_certificate
from mercer.machines.base.inputs import new_rows, refuse_nonfinite, refuse_overflown
from mercer.machines.base.machine import KernelMachine, all_or_nothing, kernel_of, offered_if
from mercer.machines.base.parameters import (
    check_choice,
    check_count,
    check_flag,
    check_limits,
    check_optional_count,
    check_seed,
    refuse,
)
from mercer.machines.base.targets import (
    batch_codes,
    classes_for,
    classes_of,
    labels_of,
    refuse_mixed_labels,
    refuse_targets,
)
from mercer.machines.perceptron.certificate import judged, radius_of
from mercer.machines.perceptron.problem import Separation
from mercer.machines.perceptron.solvers import AtRandom, Memory, Mistakes, Oldest, Smallest
from mercer.machines.perceptron.streams import (
    FeatureStream,
    GivenStream,
    KernelStream,
    LinearStream,
    Stream,
    linear_stream,
    memory_of,
)
from mercer.rows.points import is_objects, is_sparse, own, take
from mercer.solvers.base import Callback, Solution, Status
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.dispatch import solve

# --- fast checks ---------------------------------------------------------------------------------
#
# One example at a time: checks that cost a look at types and shapes, no more.
#
# The compiled loop may reject rows: it detects rows that are not finite by their norm, which it
# needs
# anyway. All other checks follow the general path.


def fast_codes(machine: Any, X: Any, y: Any) -> Array | None:
    """Return class numbers where rows and labels are plainly as before; None where in doubt."""
    state = machine.__dict__
    if "feature_names_in_" in state or not _plain(X) or X.shape[1] != state["n_features_in_"]:
        return None
    kind = type(y)
    if (kind is not np.ndarray and kind is not list) or len(y) != X.shape[0] or not len(y):
        return None
    if len(y) == 1:
        label = y[0]
        if isinstance(label, np.generic):
            label = label.item()
        code = machine._numbers.get(label) if isinstance(label, str | int) else None
        return None if code is None else np.array([code])
    classes = machine.classes_
    if kind is list or y.ndim != 1 or y.dtype != classes.dtype:
        return None
    codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return codes if (classes[codes] == y).all() else None


def plain_rows(machine: Any, X: Any) -> bool:
    """Return whether new rows are plainly fine: of the right width, and finite."""
    state = machine.__dict__
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype == np.float64
        and len(X) > 0
        and X.shape[1] == state["n_features_in_"]
        and "feature_names_in_" not in state
        and bool(np.isfinite(X.sum()))
    )


def _plain(X: Any) -> bool:
    if type(X) is np.ndarray:
        return X.ndim == 2 and X.dtype == np.float64 and X.flags.c_contiguous
    return bool(
        is_sparse(X) and X.format == "csr" and X.dtype == np.float64 and X.has_canonical_format
    )


# --- record --------------------------------------------------------------------------------------
#
# Results of a perceptron: counted during the fit, verified on request.


class StreamAttributes(Certified):
    """Attributes that are read from a stream and from the fit it may have begun with."""

    answer: str
    bias: bool
    classes_: Array
    _stream: Any
    _solution: Solution

    @property
    def mistakes_(self) -> int:
        """Mistakes so far."""
        return int(self._held.mistakes)

    @property
    def n_seen_(self) -> int:
        """Rows seen."""
        return int(self._held.steps)

    @property
    def radius_(self) -> float:
        """Length of the longest row."""
        columns = 1 if len(self.classes_) == 2 else len(self.classes_)
        return radius_of(self._held.longest, bool(self.bias), columns)

    @property
    def margin_(self) -> float:
        """Smallest lead of the right class, over the norm."""
        return float(self.certificate_.quantities.margin)

    @property
    def n_support_(self) -> int:
        """Mistakes that are kept."""
        held = self._held
        return 0 if isinstance(held, LinearStream) else len(held.memory.coef)

    @property
    def support_vectors_(self) -> Any:
        """Mistakes that are kept, as rows."""
        points = getattr(self._held, "points", None)
        if points is None:
            raise AttributeError("support_vectors_ exists for kernels that keep their mistakes")
        return points

    @property
    def coef_(self) -> Array:
        """Weights of the columns."""
        held = self._held
        if type(held) is not LinearStream:
            raise AttributeError("coef_ exists for the linear kernel without budget or votes")
        return np.asarray(held.functions(self.answer)[0].T)

    @property
    def intercept_(self) -> Array:
        """The constants."""
        return np.asarray(self._held.constants(self.answer))

    @property
    def certificate_(self) -> Certificate:
        """Mistakes against Novikoff's bound; computed when first read."""
        if "_stream" in self.__dict__ and "_judgement" not in self.__dict__:
            held = self._stream
            return judged(held.mistakes, held.forgotten, self.radius_, float("nan"))
        return super().certificate_

    @property
    def solution_(self) -> Solution:
        """How it ended; a stream has not."""
        held = self._held
        if "_solution" in self.__dict__:
            return self._solution
        seen = f"a stream of {held.steps} rows, {held.mistakes} mistakes"
        return Solution(None, Status.STREAMED, held.steps, float("nan"), "Mistakes", (), seen)

    @property
    def _held(self) -> Any:
        check_is_fitted(self, "_stream")
        return self._stream


# --- perceptron ----------------------------------------------------------------------------------
#
# The perceptron: learns from its mistakes, one example at a time.

_ANSWERS = ("last", "averaged", "voted")
_REMOVALS = ("oldest", "smallest", "random")


def _streams(machine: Any) -> bool:
    return not machine._is_precomputed()


class Perceptron(StreamAttributes, ClassifierMixin, KernelMachine):
    """Perceptron, linear or with any kernel: learns online, from its mistakes.

    For two classes f(x) = w'phi(x) + b; if y f(x) <= 0, w gains y phi(x) and b gains y. For more
    classes each has a function; if that of the right class is not strictly the largest, it gains
    phi(x), and the largest of the others loses phi(x): one mistake is one update. With the linear
    kernel there is one weight per column, and memory does not grow with the stream; with any other
    kernel mistakes are kept, at most `budget` of them.

    If some functions keep the classes apart by a margin gamma, there are at most (R/gamma)^2
    mistakes (Novikoff). `fit` passes over the rows until there are none; the functions it ends with
    then prove the bound, which `certificate_` states.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="linear"
        Kernel function.
    approximation : Approximation, str or None, default="auto"
        Approximate feature map, such as `Nystrom(1000)` or "random_features:2000"; None for
        the exact kernel. "auto" uses the exact kernel within the size limits; otherwise it uses the
        Nyström method and warns.
    max_epochs : int, default=100
        Most passes of `fit`; it stops after one without a mistake.
    shuffle : bool, default=True
        Whether each epoch of `fit` has a new order. A stream keeps its order.
    answer : {"last", "averaged", "voted"}, default="last"
        Which function predicts: the last; the mean of those after every row; or all of them by a
        vote, each as often as it survived. Votes keep every mistake, whatever the kernel.
    budget : int or None, default=None
        Most mistakes that are kept. None keeps all.
    removal : {"oldest", "smallest", "random"}, default="oldest"
        The mistake that is dropped beyond the budget: the oldest, the one with the smallest norm,
        or any.
    bias : bool, default=True
        Whether functions have a constant: the weight of a feature that is 1 in every row.
    random_state : int, RandomState or None, default=0
        Order of rows in `fit`, and removal at random.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress` after every pass of `fit`; a true value stops it.
    time_limit : float or None, default=None
        Time limit in seconds. `fit` then keeps the current solution.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    kernel_ : Kernel
        The kernel used.
    approximation_error_ : StatedError
        With features in place of the kernel: how far they are from it.
    mistakes_ : int
        Mistakes so far, ties included: the first row is always one.
    n_seen_ : int
        Rows seen, those of all passes counted.
    radius_ : float
        R: length of the longest row, with its constant feature; times sqrt(2) for more than two
        classes.
    margin_ : float
        Smallest lead of the right class over the norm of the last functions, on the rows of `fit`;
        NaN after a stream, whose rows are gone.
    n_support_ : int
        Mistakes that are kept; 0 in the space of the columns.
    support_vectors_ : array or sparse array of shape (n_support, n_features)
        Those mistakes, as rows.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Weights of the columns, with the linear kernel and no budget or votes.
    intercept_ : array of shape (1,) or (n_classes,)
        The constants.
    solution_ : Solution
        How it ended.
    certificate_ : Certificate
        Mistakes against Novikoff's bound.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Perceptron
    >>> X = np.array([[0.0, 1.0], [1.0, 2.0], [1.0, 0.0], [2.0, 1.0]])
    >>> machine = Perceptron().fit(X, ["up", "up", "down", "down"])
    >>> machine.predict([[0.0, 3.0]]).tolist()
    ['up']
    >>> machine.mistakes_ <= machine.certificate_.quantities.bound
    True

    On a stream, predict, then learn:

    >>> machine = Perceptron()
    >>> for x, label in zip(X, ["up", "up", "down", "down"]):
    ...     machine = machine.partial_fit([x], [label], classes=["up", "down"])
    >>> machine.n_seen_
    4
    """

    def __init__(
        self,
        kernel: Kernel | str | Any = "linear",
        *,
        approximation: Approximation | str | None = "auto",
        max_epochs: int = 100,
        shuffle: bool = True,
        answer: str = "last",
        budget: int | None = None,
        removal: str = "oldest",
        bias: bool = True,
        random_state: Any = 0,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.approximation = approximation
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.answer = answer
        self.budget = budget
        self.removal = removal
        self.bias = bias
        self.random_state = random_state
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Pass over the rows until none is wrong.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        refuse_mixed_labels(self, y)
        X, y = self._training_points(X, y)
        X = X if self._is_precomputed() else own(X)  # kept until the certificate is read
        refuse_targets(y)
        self.classes_, codes = classes_of(self, y, np.ones(len(y)))
        names = self._column_names()
        self._use_kernel(kernel_of(self.kernel, X, names=names), X, None, names)
        gram = self._gram(X)
        question = partial(Separation, codes=codes, count=len(self.classes_), bias=bool(self.bias))
        options: dict[str, Any] = {"callback": self.callback, "time_limit": self.time_limit}
        solution = solve(question(gram), self._solver(), **options)
        self._solution = solution
        self._judgement = lazy_certificate(gram, question, solution.value, certify)
        self._keep(X, gram, solution)
        return self

    @offered_if(_streams)
    def partial_fit(self, X: Any, y: Any, classes: npt.ArrayLike | None = None) -> Self:
        """Learn from one example, or from a block, in the order given.

        If a row raises an error, the estimator stays unchanged; an interrupted block has learned an
        integer number of its first rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; a single example is one row.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), optional
            All labels there will be; needed at the first call.

        Returns
        -------
        self
            The estimator.
        """
        linear = type(self.__dict__.get("_stream")) is LinearStream
        codes = fast_codes(self, X, y) if linear and classes is None else None
        if codes is None:
            X, codes = self._careful(X, y, classes)
        state, stream = self.__dict__, self._stream
        seen = stream.steps
        try:
            bad = stream.learn(X, codes)
        finally:  # results of an earlier fit no longer apply, even if Ctrl-C interrupted
            if stream.steps != seen:
                state.pop("_judgement", None)
                state.pop("_solution", None)
        if bad >= 0:
            self._refuse_row(X, bad)
        return self

    def decision_function(self, X: Any) -> Array:
        """Score new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel the matrix of new rows against training rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            For two classes f(x), positive for the second; for more, the score of each class. With
            votes, their fractions: the second's minus the first's, or of each class.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """Label new rows; of equal scores the first class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            Labels.
        """
        scores = self._scores(X)
        chosen = (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(1)
        return np.asarray(self.classes_[chosen])

    def _careful(self, X: Any, y: Any, classes: Any) -> tuple[Points, Array]:
        """Check all arguments, and begin a stream if there is none."""
        self._check_parameters()
        first = "_stream" not in self.__dict__
        if first:
            return self._begin(X, y, classes)
        rows = new_rows(self, X, False)
        labels = labels_of(self, y, rows.shape[0])
        classes_for(self, classes, False)
        return _as_float64(rows), batch_codes(self, labels, np.ones(len(labels)))

    def _begin(self, X: Any, y: Any, classes: Any) -> tuple[Points, Array]:
        fresh = object.__new__(type(self))  # so that an error leaves the estimator unchanged
        fresh.__dict__.update(self.__dict__)
        rows = fresh._rows_alone(X)
        labels = labels_of(fresh, y, rows.shape[0])
        fresh.classes_ = classes_for(fresh, classes, True)
        codes = batch_codes(fresh, labels, np.ones(len(labels)))
        names = fresh._column_names()
        fresh._use_kernel(kernel_of(fresh.kernel, rows), rows, None, names)
        fresh._stream = fresh._new_stream(rows)
        fresh._number()
        self.__dict__ = fresh.__dict__
        return _as_float64(rows), codes

    def _new_stream(self, X: Points) -> Stream:
        k = 1 if len(self.classes_) == 2 else len(self.classes_)
        averaged = self.answer == "averaged"
        features = self._features()
        if features is not None:
            empty = LinearStream.empty(features.dimension, k, bool(self.bias), averaged)
            return FeatureStream(empty.rules, features=features)
        if self._is_linear():
            return LinearStream.empty(X.shape[1], k, bool(self.bias), averaged)
        memory = Memory.empty(np.empty(0), k, bool(self.bias))
        memory.budget, memory.removal = self.budget, self._removal()
        return KernelStream(self._expression(), take(X, slice(0, 0)), memory)

    def _keep(self, X: Points, gram: Gram, solution: Solution) -> None:
        """Turn the solution of `fit` into a stream that can be continued."""
        value, squares = solution.value, gram.diag()
        steps, longest = solution.iterations * len(squares), float(squares.max())
        self._number()
        if value.weights is not None:
            averaged = self.answer == "averaged"
            self._stream: Any = linear_stream(value, bool(self.bias), averaged, steps, longest)
            features = self._features()
            if features is not None:
                self._stream = FeatureStream(self._stream.rules, features=features)
            return
        memory, rows = memory_of(value, bool(self.bias), self.answer == "voted", steps, squares)
        memory.budget, memory.removal = self.budget, self._removal()
        if isinstance(self.kernel_, Precomputed):
            self._stream = GivenStream(rows, memory, longest)
        else:
            self._stream = KernelStream(self._expression(), take(X, rows), memory, longest)

    def _scores(self, X: Any) -> Array:
        stream = self._held
        stream.refuse(self.answer)
        if type(stream) is not LinearStream or not plain_rows(self, X):
            X = _as_float64(new_rows(self, X, isinstance(stream, GivenStream)))
        return refuse_overflown(self, lambda: np.asarray(stream.scores(X, self.answer)))

    def _gram(self, X: Points) -> Gram:
        mapped = self._features()
        if mapped is not None:
            gram = feature_gram(mapped, X)
            refuse_overflow(gram, self.kernel_)
            return gram
        if self._is_linear() and not is_objects(X):
            features = feature_map(self._expression(), X.shape[1])
            assert features is not None  # the linear kernel has one
            gram = feature_gram(features, X)
            refuse_overflow(gram, self.kernel_)
            return gram
        return make_gram(self.kernel_, X, Need.ROWS, names=self._column_names())

    def _features(self) -> Features | None:
        """Return the features that stand for the kernel, where weights of them are all it takes."""
        kernel = self.kernel_
        return kernel.phi if isinstance(kernel, ApproximateKernel) and self._is_light() else None

    def _is_linear(self) -> bool:
        return isinstance(self.kernel_, Linear) and self._is_light()

    def _is_light(self) -> bool:
        """Return whether no mistake needs to be remembered."""
        return self.budget is None and self.answer != "voted"

    def _expression(self) -> Any:
        return bind_columns(self.kernel_.expression(), self._column_names())

    def _solver(self) -> Mistakes:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return Mistakes(
            max_epochs=int(self.max_epochs),
            shuffle=bool(self.shuffle),
            budget=self.budget,
            removal=self._removal(),
            keep_log=self.answer == "voted",
            random_state=seed,
        )

    def _removal(self) -> Any:
        if self.removal == "random":
            return AtRandom(int(check_random_state(self.random_state).randint(2**31 - 1)))
        return Oldest() if self.removal == "oldest" else Smallest()

    def _number(self) -> None:
        self._numbers = {label: c for c, label in enumerate(self.classes_.tolist())}

    def _refuse_row(self, X: Points, bad: int) -> None:
        refuse_nonfinite(self, X)
        raise ValueError(
            f"Perceptron: k(x, x) of row {bad} of X is not finite, so nothing of this block was "
            "learned. Scale the features first, e.g. with sklearn.preprocessing.StandardScaler."
        )

    def _check_parameters(self) -> None:
        check_count(self, "max_epochs")
        check_flag(self, "shuffle")
        check_flag(self, "bias")
        check_choice(self, "answer", _ANSWERS)
        check_choice(self, "removal", _REMOVALS)
        check_optional_count(self, "budget")
        check_seed(self)
        check_limits(self)
        if self.budget is not None and self.answer != "last":
            refuse(self, "answer", self.answer, "be 'last' with a budget: means need all mistakes")


def _as_float64(X: Points) -> Points:
    return X if X.dtype == object else X.astype(np.float64, copy=False)
