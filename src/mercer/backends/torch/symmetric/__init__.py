"""Kernel matrices of points with themselves, stored on a device."""
