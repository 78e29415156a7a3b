"""Canonical correlations of two views."""
