"""Factors of large matrices on a device: triangles by panels, and sums of squares."""
