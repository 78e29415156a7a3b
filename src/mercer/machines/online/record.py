"""What a perceptron tells of itself: counted on the way, judged when asked."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.certificates import Certificate
from mercer.certificates.separation import judged, radius_of
from mercer.machines.base.certificate import Certified
from mercer.machines.online.stream import LinearStream
from mercer.solvers import Solution, Status


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
        return Solution(None, Status.SOLVED, held.steps, float("nan"), "Mistakes", (), seen)

    @property
    def _held(self) -> Any:
        check_is_fitted(self, "_stream")
        return self._stream
