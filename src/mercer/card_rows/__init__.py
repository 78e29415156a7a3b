"""Rows and vectors that lie on a card, in the words of NumPy."""

from mercer.card_rows.arrays import LONG, CardArray, looked_up, placed_beside
from mercer.card_rows.rows import CardRows

__all__ = ["LONG", "CardRows", "CardArray", "looked_up", "placed_beside"]
