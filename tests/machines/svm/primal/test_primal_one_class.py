"""One-class machines on features: nothing is asked of rows, so that sums alone tell sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mercer import OneClassSVM
from mercer.approximation import Nystrom
from mercer.kernels import Gaussian
from mercer.machines.svm.primal import interior_point

pytestmark = pytest.mark.numerics


@pytest.mark.parametrize("nu", [0.5, 0.1, 0.01])
def test_few_rows_are_left_to_the_interior_point_method(
    nu: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Descents on rounded corners end near the answer, whatever share is outside."""
    seen: list[int] = []
    follow = interior_point.barrier

    def counted(part: Any, *others: Any) -> Any:
        seen.append(part.rows.count)
        return follow(part, *others)

    monkeypatch.setattr(interior_point, "barrier", counted)
    X = np.random.default_rng(0).normal(size=(12_000, 3))
    machine = OneClassSVM(Gaussian(2.0), nu=nu, approximation=Nystrom(20)).fit(X)
    assert machine.certificate_.ok
    assert abs(np.mean(machine.predict(X) < 0) - nu) < 0.01
    assert max(seen) < len(X) // 2
