"""Eigenpairs and doubly stochastic scalings: residuals, and what was left out."""
