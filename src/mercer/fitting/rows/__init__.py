"""Rows of a fit: of a table in memory, or of a file read block by block."""
