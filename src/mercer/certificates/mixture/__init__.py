"""Mixtures and latent Gaussians: stationarity of the likelihood."""
