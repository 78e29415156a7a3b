"""Canonical correlations, by how each view is held."""
