"""Canonical correlations, and how views are penalised."""
