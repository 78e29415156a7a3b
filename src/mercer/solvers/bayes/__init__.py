"""Closed forms: averages, counts, Gaussian likelihoods."""
