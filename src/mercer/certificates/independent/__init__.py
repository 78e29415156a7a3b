"""Judgements of directions that are far from Gaussian."""
