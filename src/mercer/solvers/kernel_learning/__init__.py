"""Weights on the simplex, and scales by descent."""
