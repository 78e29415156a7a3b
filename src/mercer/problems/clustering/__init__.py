"""Partitions and minimum cuts."""
