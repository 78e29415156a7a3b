"""Machines as nodes: one rule per machine, by family. Importing this registers them all."""

from mercer.files.onnx.machines import (
    bayes,
    clustering,
    drop_ins,
    linear_steps,
    margin,
    projection,
    regression,
)

__all__ = ["bayes", "clustering", "drop_ins", "linear_steps", "margin", "projection", "regression"]
