"""Gram matrices, floors and memory."""
