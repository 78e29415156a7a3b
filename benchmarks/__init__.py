"""Mercer and its rivals on the same data in one process; never part of the tests."""
