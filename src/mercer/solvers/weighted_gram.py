"""F' diag(h) F for features of many rows, without writing the weighted features out."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.card_rows import CardRows
from mercer.points import is_sparse, to_dense


def weighted_gram(F: Any, h: Array) -> Array:
    """Return F' diag(h) F.

    Parameters
    ----------
    F : (n, D) array or CSR array
        Features.
    h : (n,) array
        Weights of the rows; of either sign.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_gram(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 0.5]))
    array([[ 5.5,  8. ],
           [ 8. , 12. ]])
    """
    if is_sparse(F):
        return to_dense(F.T @ F.multiply(h[:, None]).tocsr())
    # where no card multiplies, roots of weights are taken below; not a number is passed on here
    if not isinstance(F, CardRows) and not (h >= 0).all():
        return np.asarray(F.T @ (h[:, None] * F))
    alone = np.full_like(h, -1, dtype=np.int8)
    return choose_backend().features(F, None).gram(h, np.zeros(F.shape[1]), alone, 0)
