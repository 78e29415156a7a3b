"""Gaussian processes: posteriors, modes, and parameters of most evidence."""
