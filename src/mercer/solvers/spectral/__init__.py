"""Eigenpairs: LAPACK, Lanczos, LOBPCG, thick restarts."""
