"""Principal components and canonical correlations against their rivals."""
