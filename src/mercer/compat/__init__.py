"""Faces of other libraries: their names and conventions, Mercer's solvers and certificates."""
