"""Weights and scales of kernels."""
