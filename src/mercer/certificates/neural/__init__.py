"""Autoencoders: stationarity and held-out bounds, without torch."""
