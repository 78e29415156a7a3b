"""Answers to problems on rows in blocks, judged by a pass over all rows in float64."""

from mercer.certificates.blocks import margin, ridge, risk

__all__ = ["margin", "ridge", "risk"]
