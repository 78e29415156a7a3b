"""Gaussian processes: whether posteriors are right, and parameters stand where evidence is flat."""
