"""scikit-learn's tests of linear and quadratic discriminants, on Mercer's machines."""

from helpers import swapped_tests

globals().update(swapped_tests.executed("sklearn.tests.test_discriminant_analysis"))

CANNOT_PASS = {}
