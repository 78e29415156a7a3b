"""Linear systems and ridge paths: residuals."""
