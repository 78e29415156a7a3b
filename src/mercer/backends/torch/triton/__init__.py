"""Triton kernels: products with K without storing it."""
