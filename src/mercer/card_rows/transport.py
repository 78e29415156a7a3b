"""Between a card and the host: numbers that are brought, and work for which a card has no room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.array_types import Array


def there_or_here(there: Callable[[], Any], here: Callable[[], Any]) -> Any:
    """Return what is made on the card; of a card that is full, the same made on the host."""
    try:
        return there()
    except torch_library().cuda.OutOfMemoryError:
        return here()


def torch_library() -> Any:
    """Return torch, which is imported by no one who has no tensor."""
    import torch  # noqa: PLC0415  is there: the rows are a tensor

    return torch


def bring_numbers(tensor: Any) -> Array:
    """Return a tensor of a card as an array."""
    from mercer.staging import bring  # noqa: PLC0415  needs torch, which is there

    return np.asarray(bring(tensor).numpy())
