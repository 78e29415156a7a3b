"""Base class of the estimators: kernel parameter, tags, devices, and display in notebooks."""

from __future__ import annotations

import functools
import warnings
from abc import ABC
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MethodType
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mercer.approximation import Approximation
from mercer.arguments import NamedArguments, arguments_of, first_argument
from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.backends.lapack import blas_threads_for
from mercer.deadline import within
from mercer.gram import Expansion
from mercer.html import page
from mercer.kernels import Kernel, Precomputed, resolve
from mercer.kernels.parser import KERNELS, plain
from mercer.machines.base.approximate import (
    ERRORS,
    ApproximationWarning,
    is_trying_settings,
    refused_exact,
    used_kernel,
)
from mercer.machines.base.certificate import LazyDataCertificate, LazyPointsCertificate, agree
from mercer.machines.base.inputs import (
    at_rest,
    new_rows,
    refuse_overflown,
    training_rows,
    training_rows_alone,
)
from mercer.machines.base.parameters import is_real
from mercer.machines.base.parameters import plain as parameters_plain
from mercer.machines.base.sharing import Store
from mercer.progress import shown
from mercer.resources import (
    MemoryBudgetError,
    config,
    explained_full_card,
    format_bytes,
    memory_budget,
)
from mercer.rows import devices
from mercer.rows.blocks import RowBlocks, is_past_memory
from mercer.rows.dask.chunks import is_dask
from mercer.rows.devices import at_its_place
from mercer.rows.foreign import (
    METHODS,
    answer_in_kind,
    answering_in_kind,
    answers_in_kind,
    call_in_kind,
    holds_foreign,
)
from mercer.solvers.base import Callback, Progress, Solution
from mercer.solvers.certificate import Certificate

# --- notebook ------------------------------------------------------------------------------------
#
# What notebooks show below scikit-learn's diagram: how a fit ended, and its certificate.

_ROWS = 3000  # judged to be shown: a fraction of a second


class Displayed:
    """A machine whose display says how its fit ended, and whether that is certified.

    `_repr_html_` and `_repr_mimebundle_` are the names that notebooks look for. scikit-learn reads
    every attribute for its diagram, and to complete names: what takes long to judge is hidden from
    it, and made when somebody asks for it by name.
    """

    @property
    def _repr_html_(self) -> Any:
        base: Any = super(Displayed, quick(self))
        diagram = base._repr_html_  # there is no such attribute where no diagrams are wanted

        def both() -> str:
            return str(diagram()) + ending(self)

        return both

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        base: Any = super(Displayed, quick(self))
        bundle = dict(base._repr_mimebundle_(**kwargs))
        if "text/html" in bundle:
            bundle["text/html"] = str(bundle["text/html"]) + ending(self)
        return bundle

    def __dir__(self) -> list[str]:
        shown = quick(self, rows=0)
        more = [] if shown is self else ["certificate_"]
        return [*super(Displayed, shown).__dir__(), *more]


def quick(machine: Any, rows: int = _ROWS) -> Any:
    """Return a machine without a certificate that is to be made from more than `rows` rows."""
    held = machine.__dict__.get("_judgement")
    if not isinstance(held, LazyPointsCertificate | LazyDataCertificate) or held.rows <= rows:
        return machine
    twin = object.__new__(type(machine))
    twin.__dict__.update({k: v for k, v in machine.__dict__.items() if k != "_judgement"})
    return twin


def ending(machine: Any) -> str:
    """Return the status of a fit and its certificate as HTML; nothing before a fit."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a warning would say is shown
            certificate = _certificate(machine)
            solution = getattr(machine, "solution_", None)
    except (AttributeError, ValueError, TypeError):  # not fitted
        return ""
    values = {}
    if isinstance(solution, Solution):
        steps = f"{solution.solver}, {solution.iterations} steps, {solution.seconds:.3g} s"
        values["fit"] = f"{solution.status.name}: {solution.status.value} ({steps})"
    title = type(machine).__name__
    if isinstance(certificate, Certificate):
        title += ": certified" if certificate.ok else ": NOT certified"
        values["certificate"] = certificate.statement
    elif certificate is not None:
        values["certificate"] = "made when certificate_ is first read"
    return page(title, values) if values else ""


def _certificate(machine: Any) -> Any:
    """Return the certificate where it is known or quickly made, else what waits to make it."""
    if quick(machine) is not machine:
        return machine.__dict__["_judgement"]
    return getattr(machine, "certificate_", None)


# --- other names ---------------------------------------------------------------------------------
#
# Names that other libraries give to parameters, and what to write here instead.
#
# One table for all machines, so that it can be read as a whole; `{value}` stands for what was
# passed.

OTHER_NAMES: Mapping[str, Mapping[str, str]] = {
    "Machine": {
        "verbose": "progress is shown for all work: mercer.set_config(progress=True)",
        "n_jobs": "threads are set for all work: mercer.set_config(threads={value})",
        "copy": "what is passed in is never changed",
        "copy_X": "what is passed in is never changed",
    },
    "NestedKernels": {
        "gamma": (
            "it belongs to the kernel: kernel=Gaussian(gamma={value}), which is Gaussian(scale=1 "
            "/ sqrt(2 gamma)); kernel='gaussian' is gamma='scale'"
        ),
        "degree": "it belongs to the kernel: kernel=Polynomial(degree={value}, offset=1.0)",
        "coef0": (
            "it belongs to the kernel: kernel=Polynomial(degree, offset={value}) or "
            "Sigmoid(slope, offset={value})"
        ),
        "kernel_params": "parameters belong to the kernel, for example kernel=Gaussian(scale=2.0)",
        "metric": "similarity is a kernel here: kernel='linear' has Euclidean distances",
        "cache_size": "memory is bounded for all fits: mercer.set_config(memory='2 GB')",
        "shrinking": "it is always used where it helps",
        "random_state": "the answer does not depend on chance, so that no seed is needed",
        "fit_intercept": "the constant of f is called bias: bias={value}",
    },
    "SVC": {
        "decision_function_shape": (
            "it is called multiclass, and `predict` always follows it: multiclass={value}"
        ),
        "break_ties": "`predict` is always the argmax of `decision_function`",
        "alpha": "the weight of the slack is C, of which 1 / alpha is a multiple",
        "penalty": (
            "the weight of the slack is C, that of the norm is one half; squared slack is "
            "slack='l2'"
        ),
        "loss": "the slack counts as it is or squared: slack='l1' or 'l2'",
    },
    "SVR": {
        "alpha": "the weight of the slack is C, of which 1 / alpha is a multiple",
        "loss": "the slack counts as it is or squared: tube='l1' or 'l2'",
    },
    "OneClassSVM": {
        "contamination": "the share of training rows left outside is bounded by nu={value}",
    },
    "KernelRidge": {
        "alpha": (
            "it is called penalty: penalty={value}; scikit-learn's has no constant, bias=False"
        ),
        "alphas": "pass penalty='loo', penalties={value}: exact leave-one-out picks the best",
        "C": "the weight of the squared norm is penalty, 1 / C here",
    },
    "GaussianProcess": {
        "alpha": "it is called noise: noise={value}",
        "penalty": "it is called noise: noise={value}, the variance of the noise",
        "optimizer": "pass optimize=True to maximise the marginal likelihood, False to leave it",
        "n_restarts_optimizer": "pass starts, one more than restarts",
        "normalize_y": "pass bias=True for a constant beside f; scale y before the fit",
    },
    "MultiTaskGaussianProcess": {
        "alpha": "it is called noise: noise={value}",
        "penalty": "it is called noise: noise={value}, the variance of the noise",
        "B": "it is called task_covariance",
        "tasks": "the covariance of the tasks is task_covariance; y has one column for each task",
    },
    "GaussianProcessClassifier": {
        "optimizer": "pass optimize=True to maximise the evidence, False to leave the kernel",
        "n_restarts_optimizer": "pass starts, one more than restarts",
        "max_iter_predict": "Newton's method needs few steps; solvers.LaplaceMode bounds them",
        "multi_class": "with more than two classes each is asked against the rest",
    },
    "LogisticRegression": {
        "C": "the weight of the squared norm is penalty = 1 / C, with C={value}",
        "alpha": "the weight of the squared norm is penalty; with a mean of losses it is n * alpha",
        "max_iter": (
            "Newton's method needs few steps; solver=NewtonRisk(max_iter={value}) bounds them"
        ),
        "tol": "it belongs to the solver: solver=NewtonRisk(tol={value})",
        "multi_class": (
            "with more than two classes it is the softmax; loss='squared' is one against the rest"
        ),
        "l1_ratio": "the penalty is the squared norm of the kernel's space; there is no other",
    },
    "FisherDiscriminant": {
        "shrinkage": "it is called penalty, in units of the scatter within classes",
        "priors": "it is called prior: prior={value}",
        "tol": "directions without scatter are held down by penalty",
        "store_covariance": "scatter lives in the kernel's space; there is no such matrix to store",
    },
    "NearestNeighbors": {
        "weights": "neighbours vote alike or by similarity: votes='plain' or 'similarity'",
        "algorithm": "neighbours are found exactly, by blocks of the kernel matrix",
        "leaf_size": "neighbours are found exactly, by blocks of the kernel matrix",
        "p": "distances are those of the kernel's space; kernel='linear' has p = 2",
    },
    "NearestMean": {
        "shrink_threshold": "means are not shrunk",
    },
    "PCA": {
        "svd_solver": "solver=Eigh() or Lanczos() of mercer.solvers; None chooses by size",
        "fit_inverse_transform": "`inverse_transform` is always there; preimage says how",
        "alpha": "the penalty of learned pre-images is chosen by leave-one-out",
        "remove_zero_eig": "components without variance are always dropped",
        "max_iter": "the tolerance of eigenpairs is tol",
    },
    "CCA": {
        "scale": "columns are taken as they are; put StandardScaler before it",
        "reg": "it is called penalty, a share of the variance of each view",
        "regularization": "it is called penalty, a share of the variance of each view",
        "kernel": "there are two views: kernel_x={value}, kernel_y={value}",
        "max_iter": "all pairs come from one eigenproblem, without iteration",
        "tol": "all pairs come from one eigenproblem, without iteration",
    },
    "KMeans": {
        "k": "it is called n_clusters: n_clusters={value}",
        "algorithm": "the exact accelerated passes are chosen by size",
        "tol": "passes end when no point moves",
    },
    "SpectralClustering": {
        "affinity": (
            "it is called kernel: 'gaussian', 'precomputed', any kernel; 'nearest_neighbors' is "
            "neighbors=10"
        ),
        "n_neighbors": "it is called neighbors: neighbors={value}",
        "assign_labels": "it is called assign: assign='kmeans', ...",
        "n_components": "there is one eigenvector for each cluster",
        "eigen_tol": "it is called tol: tol={value}",
    },
    "Perceptron": {
        "max_iter": "it is called max_epochs: max_epochs={value}",
        "eta0": "the size of a step does not change a perceptron's labels",
        "tol": "it ends after an epoch without mistakes",
        "penalty": "the perceptron has none; LogisticRegression and SVC do",
    },
    "MixtureMachine": {
        "k": "it is called n_components: n_components={value}",
        "init_params": "starts are drawn by k-means++; n_init says how many",
        "warm_start": "fit again: starts are cheap, and the best of n_init is kept",
    },
    "GaussianMixture": {
        "covariance_type": (
            "it is called covariance: 'full', 'shared' (tied), 'diagonal' (diag) or 'spherical'"
        ),
        "reg_covar": "it is called floor, the smallest variance, columns having variance one",
        "means_init": "starts are drawn by k-means++; n_init says how many",
    },
    "BernoulliMixture": {
        "alpha": "it is called smoothing: smoothing={value}",
    },
    "MultinomialMixture": {
        "n_topics": "it is called n_components: n_components={value}",
        "doc_topic_prior": "it is called document_smoothing: document_smoothing={value}",
        "topic_word_prior": "it is called smoothing: smoothing={value}",
    },
    "MDS": {
        "dissimilarity": "it is called metric: metric='precomputed' for a matrix",
        "metric_mds": "classical scaling is what there is: eigenvectors, no iteration",
        "n_init": "classical scaling has one answer, and no starts",
        "max_iter": "classical scaling has one answer, without iteration",
        "eps": "classical scaling has one answer, without iteration",
        "kernel": "similarities belong to PCA(kernel={value})",
        "random_state": "the answer does not depend on chance, so that no seed is needed",
    },
    "ProbabilisticPCA": {
        "kernel": "a model of densities lives in the space of the rows; PCA takes a kernel",
        "svd_method": "method='closed' (eigenpairs) or 'em' (which takes missing entries)",
    },
    "GraphDiffusion": {
        "n_neighbors": "it is called neighbors: neighbors={value}",
        "gamma": "it belongs to the kernel: kernel=Gaussian(scale=(0.5 / gamma) ** 0.5)",
        "max_iter": "the equations are solved; there is nothing to repeat",
        "tol": "the equations are solved, and the certificate bounds the error of every value",
        "n_jobs": "threads are those of mercer.config(threads={value})",
    },
    "ManifoldMachine": {
        "n_neighbors": "it is called neighbors: neighbors={value}",
        "alpha": "the weight of the squared norm is penalty (LaplacianRidge) or 1 / C",
        "gamma": "the weight along the graph is intrinsic_penalty; a scale belongs to the kernel",
    },
    "UnmixingMachine": {
        "fun": "it is called contrast: contrast={value}",
        "whiten": "components always have variance one",
        "whiten_solver": "rows are whitened by PCA, which chooses by size",
        "w_init": "starts are random; n_init says how many",
        "kernel": "directions are sought in the space of the rows; transform them by PCA first",
    },
    "NetworkMachine": {
        "hidden_layer_sizes": "it is called encoder_sizes: encoder_sizes={value}",
        "latent_dim": "it is called n_components: n_components={value}",
        "alpha": "it is called penalty: penalty={value}",
        "learning_rate_init": "it is called learning_rate: learning_rate={value}",
        "n_iter_no_change": "it is called patience: patience={value}",
        "epochs": "it is called max_iter, passes with a batch_size: max_iter={value}",
        "solver": "batch_size=None is L-BFGS on all rows, a number Adam on so many at a time",
        "kernel": "the maps are networks; PCA takes a kernel",
    },
    "NaiveBayes": {
        "class_prior": "it is called prior: prior={value}",
        "priors": "it is called prior: prior={value}",
        "fit_prior": "prior=None takes the shares of the classes, prior='uniform' equal ones",
        "binarize": "it is called threshold: threshold={value}",
    },
    "GaussianClassifier": {
        "priors": "it is called prior: prior={value}",
        "reg_param": "it is called floor, the smallest variance",
        "store_covariance": "covariances are always kept",
    },
    "Tuned": {
        "estimator": "it is called machine: machine={value}",
        "param_grid": "it is called grid: grid={value}",
        "param_distributions": (
            "give values to try: grid={...}, and search=Halve() or Race() to spare work"
        ),
        "return_train_score": "it is called train_scores: train_scores={value}",
    },
}


class Machine(Displayed, NamedArguments):
    """Base of machines: constructors answer other libraries' names with the ones here.

    Methods that take rows take arrays of other libraries, too, and answer in their kind.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        answer_in_kind(cls)

    @classmethod
    def what_stands_for(cls, name: str) -> str | None:
        """Return what to write in place of another library's name; base classes speak last."""
        found = (OTHER_NAMES.get(base.__name__, {}).get(name) for base in cls.__mro__)
        return next((hint for hint in found if hint is not None), None)

    @classmethod
    def check_first(cls, given: Any) -> None:
        """Raise if the kernel is not passed by name, where it was the first argument until 0.7."""
        kind: Any = cls
        first = first_argument(kind)
        named = isinstance(given, str) and plain(given.strip()) in KERNELS
        if (named or isinstance(given, Kernel)) and not first.startswith("kernel"):
            takers = [name for name in ("kernel", "kernel_x") if name in arguments_of(kind)]
            if not takers:
                return
            name = takers[0]
            raise TypeError(
                f"{cls.__name__}: the first argument is {first}, as in scikit-learn; pass the "
                f"kernel by name: {cls.__name__}({name}={given!r})"
            )


# --- offered -------------------------------------------------------------------------------------
#
# Methods that a machine has only with some of its parameters, and that say which.

Method = Callable[..., Any]


def offered_if(check: Callable[[Any], bool]) -> Callable[[Method], Any]:
    """Make a method one that is there only where `check` passes.

    scikit-learn's `available_if` does the same, but keeps the reason to itself: here the
    AttributeError that `check` raises is what people read. `hasattr` is false all the same.
    """

    def offered(method: Method) -> _Offered:
        rows = method.__name__ in METHODS
        return _Offered(answering_in_kind(method) if rows else method, check)

    return offered


class _Offered:
    def __init__(self, method: Method, check: Callable[[Any], bool]) -> None:
        self.method, self.check = method, check
        self.__doc__, self.__name__ = method.__doc__, method.__name__

    def __get__(self, machine: Any, owner: type | None = None) -> Any:
        if machine is None:
            return self.method
        if not self.check(machine):
            raise AttributeError(
                f"{type(machine).__name__} has no attribute {self.method.__name__!r}"
            )
        return MethodType(self.method, machine)


# --- moving --------------------------------------------------------------------------------------
#
# Machines on a device of their own.

M = TypeVar("M")


def to_device(machine: M, device: str | None) -> M:
    """Let a machine do its work on a device from now on; its points stay there between calls.

    Parameters
    ----------
    machine : estimator
        Fitted or not.
    device : str or None
        "cuda", "cuda:1" or "cpu", by the torch backend, whatever `config` says; None leaves the
        choice to `config` and to the arrays again, and lets go of what is kept there.

    Returns
    -------
    estimator
        The same machine. Copies, clones and model files of it are not on the device.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge, to_device
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> machine = KernelRidge(0.1, kernel="gaussian").fit(X, X[:, 0])
    >>> to_device(machine, "cuda").predict(X[:3])  # doctest: +SKIP
    """
    if not isinstance(machine, Machine):
        raise TypeError(
            f"to_device: machine={machine!r:.80} is no machine of Mercer; move the machines inside"
        )
    if device is not None:
        with config(backend="torch", device=device):
            choose_backend()  # says what is missing: torch, or the card
    devices.put(machine, device)
    return machine


# --- machine -------------------------------------------------------------------------------------
#
# What machines share: validation, the kernel parameter, tags, fits that change all or nothing.

F = TypeVar("F", bound=Callable[..., Any])


def all_or_nothing(method: F) -> F:
    """Make a fitting method leave the machine exactly as it was if it does not finish.

    Errors, Ctrl-C and callbacks that raise all count: every fitted attribute is new, or none is.
    What it says about its ending agrees with the certificate, where that is made by then. All of
    it, from the first look at the rows, is done within the machine's `time_limit`. While it runs,
    parameters that are NumPy's numbers are plain ones: a count of type int8 would otherwise
    overflow in the first product it is part of.
    """
    return _guarded(method, _time_limit)


def all_or_nothing_search(method: F) -> F:
    """Do the same for a search, whose `time_limit` is that of the search, not of fits in it."""
    return _guarded(method, lambda machine: None)


def _time_limit(machine: Any) -> float | None:
    """Read the limit; one that is no positive number is refused by the fit, not here."""
    limit: Any = getattr(machine, "time_limit", None)
    return float(limit) if is_real(limit) and limit > 0 else None


def _guarded(method: F, limit_of: Callable[[Any], float | None]) -> F:
    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        if holds_foreign(args, kwargs):
            return call_in_kind(guarded, self, args, kwargs)
        # the work is done on a twin: there is nothing to undo, and no moment in between at which
        # another thread, or a second Ctrl-C, could find half a machine
        kind: Any = type(self)
        given = {name: vars(self)[name] for name in parameters_of(kind) & vars(self).keys()}
        twin = _twin(self, given)
        # overflow is judged by what comes of it: a refusal, a status, a certificate, in words
        with (
            within(limit_of(twin), kind.__name__),
            shown(kind.__name__),
            np.errstate(all="ignore"),
            at_its_place(self, learning=True),
            explained_full_card(kind.__name__),
            blas_threads_for(*args[:2], kwargs.get("X"), kwargs.get("y")),
        ):
            rows = args[0] if args else kwargs.get("X")
            work: Any = method
            if isinstance(rows, RowBlocks) or is_dask(rows) or is_past_memory(rows):
                work = functools.partial(_over_blocks, method=method)
            try:
                work(twin, *args, **kwargs)
            except MemoryBudgetError as error:
                twin = _twin(self, given)
                if work is not method or not _may_go_on(method, twin, error):
                    raise
                method(twin, *args, **kwargs)
        twin.__dict__.update(_without_card(twin))
        twin.__dict__.update(given)  # what the user passed is what `get_params` gives back
        agree(twin, stacklevel=3)
        self.__dict__ = twin.__dict__
        return self

    return answers_in_kind(guarded)  # type: ignore[return-value]


def _twin(machine: Any, given: dict[str, Any]) -> Any:
    """Return an object that holds what the machine does, with plain numbers for parameters."""
    twin = object.__new__(type(machine))
    twin.__dict__.update(machine.__dict__)
    twin.__dict__.update({name: parameters_plain(value) for name, value in given.items()})
    return twin


def _without_card(machine: Any) -> dict[str, Any]:
    """Return the attributes of a fitted machine, which may answer anywhere: no rows on a card."""
    known: dict[int, Any] = {}
    held = vars(machine).items()
    # certificates last: they let go of the caller's array, which tells rows without bringing them
    held = sorted(held, key=lambda item: hasattr(item[1], "keeps_card_rows"))
    return {name: at_rest(value, known) for name, value in held}


def _may_go_on(method: Callable[..., Any], machine: Any, error: MemoryBudgetError) -> bool:
    """Return whether a fit whose exact kernel is refused may be tried with features."""
    return method.__name__ == "fit" and refused_exact(machine, error)


def _over_blocks(
    machine: Any, X: Any, *args: Any, method: Callable[..., Any], **kwargs: Any
) -> None:
    """Hand a fit to rows in blocks over to the family of the estimator.

    Mapped arrays that memory does not hold go there, too, where the machine has such a fit.
    """
    from mercer.machines.block_fits import fit, has_fit  # noqa: PLC0415  the one look upwards

    if is_past_memory(X):
        if method.__name__ != "fit" or not has_fit(machine):
            method(machine, X, *args, **kwargs)
            return
        warnings.warn(
            f"{type(machine).__name__}: the mapped array takes {format_bytes(X.nbytes)}, more than "
            f"half of the memory budget of {format_bytes(memory_budget())}, so it is read block by "
            "block; mercer.blocks.ArrayBlocks(X, y) asks for that in words",
            UserWarning,
            stacklevel=4,
        )
    elif method.__name__ != "fit":
        raise TypeError(
            f"{type(machine).__name__}.{method.__name__} takes rows in memory; fit takes rows in "
            "blocks"
        )
    fit(machine, X, *args, **kwargs)


@functools.cache
def parameters_of(kind: Any) -> frozenset[str]:
    """Return the names of a machine's parameters; read off the signature once, not in every fit."""
    return frozenset(kind._get_param_names())


class NestedKernels(Machine, BaseEstimator):
    """Parameters that are kernels, whose own parameters grids can reach.

    Attributes
    ----------
    exact_rows : int
        Rows past which approximation="auto" does not try an exact fit that nothing refuses, since
        it would evaluate the kernel between all of them time and again.
    """

    exact_rows: ClassVar[float] = 1_000_000

    @classmethod
    @functools.cache
    def _get_param_names(cls) -> list[str]:
        # read off the signature once, not in every clone: a grid makes a machine for each point
        return list(super()._get_param_names())

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `kernel__scale` and the like replace the kernel, which is immutable.

        The same holds for `approximation__n_components`.
        """
        nested: dict[str, dict[str, Any]] = defaultdict(dict)
        for name in [name for name in params if "__" in name]:
            outer, _, inner = name.partition("__")
            kernel = params.get(outer, getattr(self, outer, None))
            if isinstance(kernel, Kernel | Approximation):
                nested[outer][inner] = params.pop(name)
            elif outer.startswith("kernel"):
                raise ValueError(
                    f"{type(self).__name__}: {name} cannot be set while {outer}={kernel!r}; pass a "
                    "kernel object that has this parameter, such as Gaussian(scale=1.0)"
                )
        for outer, inner_params in nested.items():
            kernel = params.get(outer, getattr(self, outer))
            params[outer] = kernel.with_params(**inner_params)
        super().set_params(**params)
        return self

    def _use_kernel(
        self,
        kernel: Kernel,
        X: Points,
        weights: Array | None,
        names: Sequence[str] | None,
        *,
        view: str = "kernel_",
        store: Store | None = None,
        numbers: Array | None = None,
    ) -> None:
        """Keep the kernel of a fit to rows, exact or by features, and how far these are from it.

        Rows that have `numbers` are the distinct ones of a table, in the order of their merging.
        """
        make = partial(used_kernel, self, kernel, X, weights, names, numbers)
        used = make() if store is None else store.once(view, make)
        self.__dict__.pop(ERRORS[view], None)
        setattr(self, view, used.kernel)
        if used.error is not None:
            setattr(self, ERRORS[view], used.error)
        if used.notice and not is_trying_settings():
            warnings.warn(used.notice, ApproximationWarning, stacklevel=4)


class KernelMachine(NestedKernels, ABC):
    """Base of machines that take one kernel."""

    kernel: Any
    kernel_: Kernel
    _expansion: Expansion

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_precomputed()
        tags.input_tags.pairwise = self._is_precomputed()
        return tags

    def _is_precomputed(self) -> bool:
        return is_precomputed(self.kernel)

    def _training_points(self, X: Any, y: Any, **target: Any) -> tuple[Points, Any]:
        """Validate training rows and targets, and remember the names of the columns."""
        return training_rows(self, X, y, self._is_precomputed(), **target)

    def _rows_alone(self, X: Any) -> Points:
        """Validate training rows that have no targets."""
        return training_rows_alone(self, X, self._is_precomputed())

    def _values(self, X: Any) -> Array:
        """Validate new rows and evaluate the fitted expansion there: (n, k)."""
        check_is_fitted(self)
        # what counts is the kernel of the fit, not what the parameter may have become since
        points = new_rows(self, X, isinstance(self.kernel_, Precomputed))
        return refuse_overflown(self, lambda: self._expansion(points))

    def _column_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else list(names)


def kernel_of(
    given: Any, X: Any = None, weights: Array | None = None, names: Sequence[str] | None = None
) -> Kernel:
    """Return the kernel that a parameter is, or that its name or function means for these rows."""
    return given if isinstance(given, Kernel) else resolve(given, X, weights, names)


def is_precomputed(kernel: Any) -> bool:
    """Return whether a kernel parameter, an object or a name, stands for a given matrix."""
    if isinstance(kernel, str):
        return kernel.strip().lower().removesuffix("()") == "precomputed"
    return isinstance(kernel, Precomputed)


# --- progress through scikit-learn's callback protocol (1.9 and later) as well as our own --------
#
# The only functions that know of that protocol, which is still allowed to change. Each report of
# the solver is one subtask of the fit; a callback that returns true stops the fit with what it has.

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin  # noqa: PLC0414
    from sklearn.callback import with_callbacks as _torn_down
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def _torn_down(method: Any) -> Any:
        return method


def with_callbacks(method: F) -> F:
    """Tear callbacks down when the fit ends, however it ends."""
    return cast(F, _torn_down(method))


@contextmanager
def progress_of(machine: Any, own: Callback | None) -> Iterator[Callback | None]:
    """Return one callback for the solver that speaks to the machine's own and scikit-learn's."""
    if not getattr(machine, "_skl_callbacks", None):
        yield own
        return
    fit = machine._init_callback_context(max_subtasks=None)
    fit.call_on_fit_task_begin(estimator=machine)

    def report(progress: Progress) -> bool:
        step = fit.subcontext(task_name="progress")
        step.call_on_fit_task_begin(estimator=machine)
        asked = step.call_on_fit_task_end(estimator=machine)
        return bool(own is not None and own(progress)) or bool(asked)

    yield report
    fit.call_on_fit_task_end(estimator=machine)
