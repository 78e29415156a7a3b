"""Perceptron steps."""
