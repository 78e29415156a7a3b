"""The perceptron, one example at a time."""
