"""What a display asks of a machine: that it is fitted, of a kind it can draw, and its description.

Pipelines and machines that tune themselves are looked into: a display draws the machine inside, on
the rows as that machine sees them.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array

# what changes how an answer is found, not which one: left out of titles
_NOT_SHOWN = {
    "cache_size",
    "callback",
    "copy_X",
    "max_iter",
    "n_init",
    "n_jobs",
    "probability",
    "random_state",
    "solver",
    "time_limit",
    "tol",
    "verbose",
    "warm_start",
}
_LONGEST = 40  # letters of a value in a title
# the display that suits a machine, by the class's own name: drop-ins share it
_SUITS = {
    "SVC": "MarginDisplay",
    "NuSVC": "MarginDisplay",
    "LinearSVC": "DecisionRegionDisplay",
    "SVR": "TubeDisplay",
    "NuSVR": "TubeDisplay",
    "OneClassSVM": "MarginDisplay",
    "EnclosingBall": "MarginDisplay",
    "KernelRidge": "RidgePathDisplay",
    "PCA": "ProjectionDisplay",
    "CCA": "CanonicalPairsDisplay",
    "KMeans": "KernelMatrixDisplay",
    "SpectralClustering": "KernelMatrixDisplay",
    "MultinomialMixture": "TopicsDisplay",
    "Tuned": "TuningDisplay",
    "GridSearchCV": "TuningDisplay",
}


def fitted(display: str, estimator: Any) -> Any:
    """Return the estimator, the pipeline of a model of tables, or refuse what is not fitted."""
    estimator = getattr(estimator, "pipeline", estimator)
    if inspect.isclass(estimator) or not hasattr(estimator, "fit"):
        name = getattr(estimator, "__name__", type(estimator).__name__)
        raise TypeError(f"{display}: needs a fitted machine, got {name}")
    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise NotFittedError(
            f"{display}: this {type(estimator).__name__} is not fitted; call fit first"
        ) from error
    return estimator


def inner_machine(estimator: Any) -> Any:
    """Return the machine inside pipelines and searches."""
    if isinstance(estimator, Pipeline):
        return inner_machine(estimator.steps[-1][1])
    inner = getattr(estimator, "best_estimator_", None)
    return estimator if inner is None else inner_machine(inner)


def inner_rows(estimator: Any, X: Any) -> Any:
    """Return rows as the machine inside pipelines and searches sees them."""
    if isinstance(estimator, Pipeline):
        last = estimator.steps[-1][1]
        return inner_rows(last, estimator[:-1].transform(X) if len(estimator) > 1 else X)
    inner = getattr(estimator, "best_estimator_", None)
    return X if inner is None else inner_rows(inner, X)


def wrong_machine(display: str, needs: str, machine: Any) -> TypeError:
    """Return the error for a machine that a display cannot draw, with the display that can."""
    name = type(machine).__name__
    suitable = _SUITS.get(name)
    if suitable is None:
        suitable = "ProjectionDisplay" if hasattr(machine, "transform") else ""
        suitable = "ResidualsDisplay" if is_regressor(machine) else suitable
        decides = is_classifier(machine) or is_outlier_detector(machine)
        suitable = "DecisionRegionDisplay" if decides else suitable
    remedy = f"; {suitable} draws {name}" if suitable and suitable != display else ""
    return TypeError(f"{display}: needs {needs}, got {name}{remedy}")


def described(estimator: Any) -> str:
    """Return the machine with those parameters that are not at their defaults.

    A kernel that was given as text is shown as it was resolved.
    """
    if isinstance(estimator, Pipeline):
        return ", ".join(described(step) for _, step in estimator.steps)
    inner = getattr(estimator, "best_estimator_", None)
    if inner is not None:
        return described(inner)
    if not hasattr(estimator, "get_params"):
        return type(estimator).__name__
    defaults = inspect.signature(type(estimator)).parameters
    shown = []
    params = estimator.get_params(deep=False)
    in_order = [name for name in defaults if name in params]
    for name in in_order + [name for name in params if name not in defaults]:
        value = params[name]
        known = getattr(estimator, f"{name}_", None) if name.startswith("kernel") else None
        default = defaults[name].default if name in defaults else inspect.Parameter.empty
        if known is not None:
            shown.append(f"{name}={_text(known)}")
        elif name not in _NOT_SHOWN and not _same(value, default):
            shown.append(f"{name}={_text(value)}")
    return f"{type(estimator).__name__}({', '.join(shown)})"


def _same(value: Any, default: Any) -> bool:
    if value is default:  # NaN does not equal itself
        return True
    try:
        return bool(np.all(value == default)) and np.ndim(value) == np.ndim(default)
    except (TypeError, ValueError):
        return False


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, np.ndarray):
        return f"{len(np.ravel(value))} values"
    if hasattr(value, "with_params"):  # a kernel: round its numbers, not those of the fit
        return _cut(_rounded(repr(value)))
    if hasattr(value, "get_params"):
        return described(value)
    return _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _rounded(text: str) -> str:
    """Shorten the numbers of a text to four digits."""
    return re.sub(r"\d+\.\d{4,}(?:e[-+]?\d+)?", lambda found: f"{float(found[0]):.4g}", text)


def labels_of(y: Any, n: int, display: str) -> tuple[Array, Array]:
    """Return the classes, sorted, and the class of each row as its place among them."""
    labels = np.asarray(y).ravel()
    if len(labels) != n:
        raise ValueError(f"{display}: {n} rows, but {len(labels)} labels in y")
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes
