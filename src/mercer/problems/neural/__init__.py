"""Autoencoders, whose maps are networks of layers."""
