"""Rows and vectors that lie on a card, in the words of NumPy."""

from mercer.card_rows.rows import CardRows
from mercer.card_rows.vector import LONG, CardVector, looked_up

__all__ = ["LONG", "CardRows", "CardVector", "looked_up"]
