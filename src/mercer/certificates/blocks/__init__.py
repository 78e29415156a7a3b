"""Answers to problems on rows in blocks, judged by a pass over all rows in float64."""

from mercer.certificates.blocks import components, discriminant, margin, partition, ridge, risk

__all__ = ["components", "discriminant", "margin", "partition", "ridge", "risk"]
