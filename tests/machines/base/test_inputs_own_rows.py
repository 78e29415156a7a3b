"""What a caller does to his rows after a fit changes nothing that a machine says."""

import numpy as np
import pytest

import mercer
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
X, Z = rng.standard_normal((80, 4)), rng.standard_normal((9, 4))
LABELS = (X[:, 0] > 0).astype(int)
FEW = np.where(np.arange(80) < 30, LABELS, -1)


@pytest.mark.parametrize(
    ("machine", "target"),
    [
        (mercer.SVC(kernel=Gaussian(2.0)), LABELS),
        (mercer.KernelRidge(kernel=Gaussian(2.0)), X[:, 1]),
        (mercer.GaussianProcess(kernel=Gaussian(2.0)), X[:, 1]),
        (mercer.NearestNeighbors(3), LABELS),
        (mercer.Perceptron(kernel=Gaussian(2.0)), LABELS),
        (mercer.SpectralClustering(2), None),
        (mercer.SpectralClustering(2, neighbors=8), None),
        (mercer.LabelPropagation(neighbors=8), FEW),
        (mercer.LabelSpreading(neighbors=8), FEW),
        (mercer.HarmonicRegressor(neighbors=8), np.where(FEW < 0, np.nan, X[:, 1])),
        (mercer.LaplacianSVC(neighbors=8), FEW),
    ],
    ids=lambda m: type(m).__name__ if hasattr(m, "fit") else "",
)
def test_rows_that_change_after_a_fit(machine, target):
    rows = X.copy()
    machine.fit(rows, target)
    before = machine.predict(Z)
    rows *= 7.0
    np.testing.assert_array_equal(machine.predict(Z), before)
    assert machine.certificate_.ok
