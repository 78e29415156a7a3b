"""scikit-learn's tests of `KernelRidge`, on Mercer's machine."""

from helpers import swapped_tests

globals().update(swapped_tests.executed("sklearn.tests.test_kernel_ridge"))

CANNOT_PASS = {}
