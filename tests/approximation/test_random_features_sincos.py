"""Cosines and sines from a table: those of NumPy, to rounding."""

import numpy as np
import pytest

from mercer.approximation.random_features import PLACES, cosines_and_sines


@pytest.mark.parametrize("size", [1e-150, 1e-9, 1.0, 1e4])
def test_they_are_those_of_numpy(size):
    angles = size * np.random.default_rng(0).standard_normal((70, 300))
    angles[0, :4] = 0.0, np.pi, -np.pi / 2, np.pi / 256
    cosines, sines = np.empty_like(angles), np.empty_like(angles)
    cosines_and_sines(angles * (PLACES / (2 * np.pi)), 3.0, cosines, sines)
    np.testing.assert_allclose(cosines, 3 * np.cos(angles), atol=3e-15 * max(1, size))
    np.testing.assert_allclose(sines, 3 * np.sin(angles), atol=3e-15 * max(1, size), rtol=1e-14)


def test_angles_that_are_no_numbers():
    places = np.array([[np.inf, np.nan, 64.0]])
    cosines, sines = np.empty((1, 3)), np.empty((1, 3))
    cosines_and_sines(places, 1.0, cosines, sines)
    assert np.isnan(cosines[0, :2]).all()
    np.testing.assert_allclose([cosines[0, 2], sines[0, 2]], [0.0, 1.0], atol=1e-15)
