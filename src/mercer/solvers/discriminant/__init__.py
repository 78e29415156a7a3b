"""Generalised eigenproblems of scatter matrices."""
