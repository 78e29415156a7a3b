"""Kernel ridge and logistic regression."""
