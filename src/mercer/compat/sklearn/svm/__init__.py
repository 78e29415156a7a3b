"""Drop-ins for `sklearn.svm`."""
