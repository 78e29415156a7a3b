"""What machines share: validation, labels, weights, parameters, lazy certificates."""
