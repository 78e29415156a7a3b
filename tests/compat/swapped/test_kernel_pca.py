"""scikit-learn's tests of `KernelPCA`, on Mercer's machines."""

from helpers import swapped_tests

globals().update(swapped_tests.executed("sklearn.decomposition.tests.test_kernel_pca"))

CANNOT_PASS = {}
