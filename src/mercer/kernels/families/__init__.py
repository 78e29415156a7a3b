"""The kernels themselves, by family."""
