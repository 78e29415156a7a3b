"""Rows on a Dask cluster: arrays, data frames, and files."""
