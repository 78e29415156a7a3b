"""Answers of a model over HTTP, on this machine."""
