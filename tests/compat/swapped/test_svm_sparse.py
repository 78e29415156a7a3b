"""scikit-learn's tests of `sklearn.svm` on sparse rows, on Mercer's machines."""

import pytest
from helpers import swapped_tests

globals().update(swapped_tests.executed("sklearn.svm.tests.test_sparse"))
test_svc = pytest.mark.sampled(4)(globals()["test_svc"])

CANNOT_PASS = {"test_timeout": "one step is asked for, and takes the fit to its optimum here"}
