"""What machines share: validation, the kernel parameter, tags, fits that change all or nothing."""

from __future__ import annotations

import functools
import warnings
from abc import ABC
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mercer.approximation import Approximation
from mercer.array_types import Array, Points
from mercer.blocks.arrays import is_past_memory
from mercer.blocks.base import RowBlocks
from mercer.deadline import within
from mercer.distributed.chunks import is_dask
from mercer.foreign_arrays import answers_in_kind, call_in_kind, holds_foreign
from mercer.gram import Expansion
from mercer.kernels import Kernel, Precomputed, resolve
from mercer.machines.base.approximate import (
    ERRORS,
    ApproximationWarning,
    refused_exact,
    used_kernel,
)
from mercer.machines.base.certificate import agree
from mercer.machines.base.inputs import (
    new_rows,
    refuse_overflown,
    training_rows,
    training_rows_alone,
)
from mercer.machines.base.inputs.kept import at_rest
from mercer.machines.base.other_names import Machine
from mercer.machines.base.parameters import is_real, plain
from mercer.machines.base.reuse import Store
from mercer.machines.base.similarity import is_trying_settings
from mercer.places import at_its_place
from mercer.progress import shown
from mercer.resources import (
    MemoryBudgetError,
    explained_full_card,
    format_bytes,
    memory_budget,
)
from mercer.solvers import Callback, Progress

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
    twin.__dict__.update({name: plain(value) for name, value in given.items()})
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
    """Hand a fit to rows in blocks over to `mercer.streaming`, the room above this one.

    Mapped arrays that memory does not hold go there, too, where the machine has such a fit.
    """
    from mercer.streaming.fits import fit, has_fit  # noqa: PLC0415  the one look upwards

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
