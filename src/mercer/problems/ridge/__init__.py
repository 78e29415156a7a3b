"""Penalised least squares: one penalty, or a path of them."""
