"""Figures of merit with their confidence intervals."""
