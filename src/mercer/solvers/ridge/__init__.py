"""Linear systems and their regularization paths."""
