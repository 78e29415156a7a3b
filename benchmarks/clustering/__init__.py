"""K-means, spectral clustering and mixtures against their rivals."""
