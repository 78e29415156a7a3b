"""scikit-learn's tests of `KernelPCA`, on Mercer's machines."""

import pytest
from helpers import swapped_tests

pytestmark = pytest.mark.numerics

globals().update(swapped_tests.executed("sklearn.decomposition.tests.test_kernel_pca"))

CANNOT_PASS = {}
