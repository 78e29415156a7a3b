"""Gaussian processes: what is asked of them."""
