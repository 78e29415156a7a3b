"""Scenes: what a page shows, read with care, and the rows in it."""
