"""Float64 products of a kernel matrix that is not stored, by tensor cores; and rows to 40 bits."""
