"""Fits that see rows block by block, and predictions that stream: only sums of them are held.

``machine.fit(blocks)`` comes here by itself; `predict`, `transform`, `decision_function` and
`predict_proba` take any fitted machine.
"""

from mercer.machines.blocks.apply import apply, decision_function, predict, predict_proba, transform

__all__ = ["apply", "decision_function", "predict", "predict_proba", "transform"]
