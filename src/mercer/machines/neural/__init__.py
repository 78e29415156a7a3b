"""Autoencoders: the encoder and the decoder are networks of layers."""
