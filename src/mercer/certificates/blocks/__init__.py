"""Answers to problems on rows in blocks, judged by a pass over all rows in float64."""

from mercer.certificates.blocks import ridge, risk

__all__ = ["ridge", "risk"]
