"""scikit-learn's tests of `KMeans`, on Mercer's machine."""

from helpers import swapped_tests

globals().update(swapped_tests.executed("sklearn.cluster.tests.test_k_means"))

NOT_SWAPPED = "(?i)minibatch|plusplus|is_same_clustering|test_(relocate_empty|euclidean|inertia)"
CANNOT_PASS = {}
