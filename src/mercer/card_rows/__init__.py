"""Rows that lie on a card, in the words of NumPy."""

from mercer.card_rows.rows import CardRows

__all__ = ["CardRows"]
