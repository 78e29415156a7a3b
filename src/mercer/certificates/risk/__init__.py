"""Penalised losses: duality gap and gradient."""
