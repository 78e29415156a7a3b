"""A certificate that could contradict SOLVED is made before the fit ends, not when it is read."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import Status
from mercer.kernels import Precomputed

pytestmark = pytest.mark.numerics

RNG = np.random.default_rng(0)
MINUS_DISTANCES = -np.abs(RNG.normal(size=(30, 1)) - RNG.normal(size=30))
INDEFINITE = MINUS_DISTANCES + MINUS_DISTANCES.T
LABELS = np.arange(30) % 2


@pytest.mark.parametrize(
    "machine",
    [
        mercer.SVC(kernel=Precomputed()),
        mercer.SVR(kernel=Precomputed()),
        mercer.FisherDiscriminant(kernel=Precomputed()),
        mercer.NearestMean(kernel=Precomputed()),
        mercer.KMeans(2, kernel=Precomputed(), random_state=0),
        mercer.KernelRidge(kernel=Precomputed()),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_solved_is_not_said_before_it_is_shown(machine):
    with pytest.warns(ConvergenceWarning):
        machine.fit(INDEFINITE, LABELS)
    said = machine.solution_.status
    assert said is not Status.SOLVED
    assert not machine.certificate_.ok
    assert machine.solution_.status is said
