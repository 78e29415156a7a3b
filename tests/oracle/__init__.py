"""Check certificates against 50-digit arithmetic that uses none of the library's kernels.

Each family has a file with two functions for each estimator: one draws a hostile fit, the other
recomputes what its certificate states from the training data and the public attributes.
"""
