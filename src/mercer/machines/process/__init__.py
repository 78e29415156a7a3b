"""Gaussian processes: regression and classification with their uncertainty."""
