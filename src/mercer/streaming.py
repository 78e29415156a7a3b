"""Predictions for rows in blocks, by any fitted estimator.

`fit` of an estimator accepts blocks itself. `predict`, `transform`, `decision_function` and
`predict_proba` of this module read the rows block by block.
"""

from mercer.machines.blocks.apply import apply, decision_function, predict, predict_proba, transform

__all__ = ["apply", "decision_function", "predict", "predict_proba", "transform"]
