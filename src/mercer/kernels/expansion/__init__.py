"""Kernels as series: of features, cut off where the rest is small, and of eigenfunctions."""
