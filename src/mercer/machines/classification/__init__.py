"""Nearest mean and neighbours, the Fisher discriminant, rectangles."""
