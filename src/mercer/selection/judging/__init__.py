"""How good is it? Validation, nesting, thresholds, bias and variance."""
