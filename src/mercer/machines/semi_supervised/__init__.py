"""Learning from rows of which only some have a label: graphs of similarity, and kernels."""
