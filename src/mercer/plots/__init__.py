"""Pictures in scikit-learn's manner: classes with `from_estimator` and `plot`."""
