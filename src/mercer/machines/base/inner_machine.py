"""Methods that machines around another machine pass on to it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar

from sklearn.base import MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from mercer.array_types import Array


def inner_has(name: str) -> Callable[[Any], bool]:
    """Return whether the machine inside, fitted if it is, can do something."""

    def check(self: InnerMachineMixin) -> bool:
        getattr(self.__dict__.get(self._fitted_name, self.machine), name)
        return True

    return check


class InnerMachineMixin(MetaEstimatorMixin):
    """Predictions and endings of a machine that fits the one it was given as `machine`."""

    machine: Any
    _fitted_name: ClassVar[str]  # the attribute that is the fitted machine

    @abstractmethod
    def _fitted(self, what: str) -> Any:
        """Return the fitted machine; raise NotFittedError, which names `what`, if there is none."""

    @abstractmethod
    def _inner(self, name: str) -> Any:
        """Return an attribute of the fitted machine; raise AttributeError if there is none."""

    @available_if(inner_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Array:
        """Predict with the fitted machine."""
        return self._fitted("predict").predict(X)  # type: ignore[no-any-return]

    @available_if(inner_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Estimate probabilities with the fitted machine."""
        return self._fitted("predict_proba").predict_proba(X)  # type: ignore[no-any-return]

    @available_if(inner_has("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Estimate logarithms of probabilities with the fitted machine."""
        return self._fitted("predict_log_proba").predict_log_proba(X)  # type: ignore[no-any-return]

    @available_if(inner_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Evaluate the decision function of the fitted machine."""
        return self._fitted("decision_function").decision_function(X)  # type: ignore[no-any-return]

    @property
    def classes_(self) -> Array:
        """Labels of a classifier."""
        return self._inner("classes_")  # type: ignore[no-any-return]

    @property
    def solution_(self) -> Any:
        """How the solver of the fitted machine ended."""
        return self._inner("solution_")

    @property
    def certificate_(self) -> Any:
        """The judgement of the fitted machine."""
        return self._inner("certificate_")

    def __sklearn_tags__(self) -> Any:
        return deepcopy(get_tags(self.machine))
