"""Generated kernels: an expression becomes one Triton kernel, its matrix is not stored."""
