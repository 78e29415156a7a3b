"""scikit-learn's tests of mixtures of Gaussians, on Mercer's class."""

from helpers import swapped_tests

globals().update(swapped_tests.executed("sklearn.mixture.tests.test_gaussian_mixture"))

CANNOT_PASS = {}
