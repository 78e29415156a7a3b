"""Eigenpairs, and doubly stochastic scaling."""
