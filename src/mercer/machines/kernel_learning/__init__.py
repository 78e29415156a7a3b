"""Learning the kernel: weights of a sum, one scale per feature."""
