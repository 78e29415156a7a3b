"""Fitted machines with fewer vectors, and how far their functions moved."""
