"""Fits over rows in blocks: shared problems, features, and entry points."""
