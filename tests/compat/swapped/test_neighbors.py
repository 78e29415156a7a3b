"""scikit-learn's tests of `KNeighborsClassifier`, on Mercer's search."""

import swapped_tests

globals().update(swapped_tests.executed("sklearn.neighbors.tests.test_neighbors"))

NOT_SWAPPED = "(?i)radius|regress|unsupervised|NearestNeighbors|kneighbors_graph"
CANNOT_PASS = {}
