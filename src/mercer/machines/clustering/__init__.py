"""K-means and spectral clustering."""
