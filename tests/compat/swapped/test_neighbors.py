"""scikit-learn's tests of `KNeighborsClassifier`, on Mercer's search."""

from helpers import swapped_tests

globals().update(swapped_tests.executed("sklearn.neighbors.tests.test_neighbors"))

NOT_SWAPPED = (
    "(?i)radius|regress|unsupervised|NearestNeighbors|kneighbors_graph|ball_tree|kd_tree"
    "|test_neighbors_metrics|brute_backend|nn_model1"
)
CANNOT_PASS = {}
