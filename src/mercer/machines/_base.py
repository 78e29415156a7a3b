"""What machines share: validation, the kernel parameter, tags, fits that change all or nothing."""

from __future__ import annotations

import functools
import warnings
from abc import ABC
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from mercer._points import as_points, is_objects, is_sequence_data, is_sparse
from mercer._types import Array, Points
from mercer.kernels import Kernel, Precomputed, resolve

_SPREAD = 1e8  # ratio of column scales beyond which one column drowns the others in float64

F = TypeVar("F", bound=Callable[..., Any])


def all_or_nothing(method: F) -> F:
    """Make a fitting method leave the machine exactly as it was if it does not finish.

    Errors, Ctrl-C and callbacks that raise all count: every fitted attribute is new, or none is.
    """

    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = self.__dict__.copy()
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return guarded  # type: ignore[return-value]


class KernelMachine(BaseEstimator, ABC):
    """Base of machines that take one kernel."""

    kernel: Any

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `kernel__scale` and the like replace the kernel, which is immutable."""
        nested: dict[str, dict[str, Any]] = defaultdict(dict)
        for name in [name for name in params if "__" in name]:
            outer, _, inner = name.partition("__")
            held = params.get(outer, getattr(self, outer, None))
            if isinstance(held, Kernel):
                nested[outer][inner] = params.pop(name)
        for outer, inner_params in nested.items():
            held = params.get(outer, getattr(self, outer))
            params[outer] = held.with_params(**inner_params)
        super().set_params(**params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_precomputed()
        tags.input_tags.pairwise = self._is_precomputed()
        return tags

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or self.kernel == "precomputed"

    def _training_points(self, X: Any, y: Any, **target: Any) -> tuple[Points, Any]:
        """Validate training rows and targets, and remember the names of the columns."""
        if is_sequence_data(X):
            self.__dict__.pop("n_features_in_", None)
            rows = as_points(X)
            y = np.asarray(y)
            if len(rows) != len(y):
                raise ValueError(f"X has {len(rows)} rows, but y has {len(y)} entries")
            return rows, y
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=False if self._is_precomputed() else "csr",
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
            **target,
        )
        refuse_nonfinite(self, X)
        X = as_points(X)
        if not self._is_precomputed():
            _warn_of_spread(self, X)
        return X, y

    def _new_points(self, X: Any) -> Points:
        """Validate rows to predict for."""
        check_is_fitted(self)
        if not hasattr(self, "n_features_in_"):
            return as_points(X)
        options: dict[str, Any] = {"dtype": [np.float64, np.float32], "order": "C"}
        if self._is_precomputed():
            X = check_array(X, ensure_all_finite=False, estimator=self, **options)
        else:
            X = validate_data(
                self, X, reset=False, accept_sparse="csr", ensure_all_finite=False, **options
            )
        refuse_nonfinite(self, X)
        return as_points(X)

    def _resolved_kernel(self, X: Points, weights: Array) -> Kernel:
        return resolve(self.kernel, X, weights)

    def _column_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else list(names)


def refuse_nonfinite(machine: Any, X: Any) -> None:
    """Raise if X holds NaN or infinity, saying how many and where the first one is."""
    if is_objects(X):
        return
    values = X.data if is_sparse(X) else X
    if np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all():
        return
    bad = ~np.isfinite(values)
    kind = "NaN" if np.isnan(values).any() else "infinity"
    if is_sparse(X):
        first = int(np.flatnonzero(bad)[0])
        row, column = int(np.searchsorted(X.indptr, first, side="right")) - 1, X.indices[first]
    else:
        row, column = np.argwhere(bad)[0]
    names = getattr(machine, "feature_names_in_", None)
    called = f" ({names[column]!r})" if names is not None else ""
    raise ValueError(
        f"Input X contains {kind}: {int(bad.sum())} bad value(s), the first in row {row}, column "
        f"{column}{called}. {type(machine).__name__} does not accept missing or infinite values; "
        "remove those rows or fill them in, e.g. with sklearn.impute.SimpleImputer."
    )


def _warn_of_spread(machine: Any, X: Points) -> None:
    """Warn when one column is so much larger than another that the smaller cannot matter."""
    largest = abs(X).max(axis=0)
    largest = np.asarray(largest.toarray() if is_sparse(largest) else largest).ravel()
    used = largest[largest > 0]
    if len(used) and used.max() > _SPREAD * used.min():
        warnings.warn(
            f"{type(machine).__name__}: the columns of X differ in scale by a factor of "
            f"{np.exp(np.log(used.max()) - np.log(used.min())):.1e}; the largest drown the "
            "others. Scale the features first, e.g. with sklearn.preprocessing.StandardScaler.",
            UserWarning,
            stacklevel=5,
        )
