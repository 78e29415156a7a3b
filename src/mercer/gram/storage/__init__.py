"""Ways to hold K: dense, cached rows, lazy, factored, low rank, sparse, given."""
