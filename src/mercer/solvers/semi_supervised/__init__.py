"""Rows of which only some have a label."""
