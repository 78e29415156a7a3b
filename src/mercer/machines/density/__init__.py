"""Mixtures and maximum entropy."""
