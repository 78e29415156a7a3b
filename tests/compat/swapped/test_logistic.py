"""scikit-learn's tests of `LogisticRegression`, on Mercer's machine."""

from helpers import swapped_tests

globals().update(swapped_tests.executed("sklearn.linear_model.tests.test_logistic"))

NOT_SWAPPED = "(?i)regression_?cv|_cv_|test_lr_cv|_path|array_api|elastic_?net|scores_attribute"
CANNOT_PASS = {
    "test_newton_cholesky_fallback_to_lbfgs": (
        "limits steps of L-BFGS by those that this class has made, which are Newton's here"
    ),
}
