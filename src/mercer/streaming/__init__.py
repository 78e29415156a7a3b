"""Fits that see rows block by block, and predictions that stream: only sums of them are held."""
