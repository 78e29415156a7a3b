"""Overflow in fits that run on scikit-learn, said in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def in_words(name: str) -> Iterator[None]:
    """Let overflow be judged by what comes of it, as in all machines, and refuse huge integers."""
    try:
        with np.errstate(all="ignore"):
            yield
    except OverflowError as error:
        raise ValueError(f"{name}: X has an integer beyond float64; scale that column") from error
