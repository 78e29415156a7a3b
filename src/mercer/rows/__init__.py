"""Rows in any form: arrays, sparse matrices, GPU arrays, blocks, and Dask collections."""
