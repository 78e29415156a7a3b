"""Penalised losses."""
