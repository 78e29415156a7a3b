"""Rows placed by their distances."""
