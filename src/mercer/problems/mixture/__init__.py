"""Mixtures and latent Gaussians."""
