"""Directions along which rows are as far from Gaussian as they can be."""
