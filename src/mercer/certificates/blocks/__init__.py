"""Answers to problems on rows in blocks, judged by a pass over all rows in float64."""

from mercer.certificates.blocks import (
    components,
    cut,
    discriminant,
    margin,
    partition,
    ridge,
    risk,
)

__all__ = ["components", "cut", "discriminant", "margin", "partition", "ridge", "risk"]
