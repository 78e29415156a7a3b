"""Words of a text column and their weights, as scikit-learn's TfidfVectorizer has them.

A word counts 1 + log(times) in an entry, weighs log((1 + n) / (1 + entries with it)) + 1, and every
row has length one. The state is a list of words and an array of weights, which a file can hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array
from mercer.data.kinds import WORD


def words_in(texts: Iterable[str | None], most: int) -> list[str]:
    """Return the most frequent words, in alphabetical order.

    Examples
    --------
    >>> words_in(["the cat saw the dog", None, "a dog"], most=2)
    ['dog', 'the']
    """
    counts: Counter[str] = Counter()
    for text in texts:
        if text is not None:
            counts.update(WORD.findall(text.lower()))
    if len(counts) > most:
        return sorted(sorted(counts, key=lambda word: (-counts[word], word))[:most])
    return sorted(counts)


def counts_of(texts: Sequence[str | None], words: Sequence[str]) -> Any:
    """Return how often each word comes in each text, as CSR; what is missing says nothing."""
    place = {word: k for k, word in enumerate(words)}
    indptr, indices, counts = [0], [], []
    for text in texts:
        found = Counter(WORD.findall(text.lower())) if text is not None else {}
        for word, count in found.items():
            if word in place:
                indices.append(place[word])
                counts.append(count)
        indptr.append(len(indices))
    shape = (len(texts), len(words))
    table = sparse.csr_array((np.array(counts, dtype=float), indices, indptr), shape=shape)
    table.sort_indices()
    return table


def weights_of(counts: Any) -> Array:
    """Return what each word weighs: more, the fewer the texts that have it."""
    n, width = counts.shape
    having = np.bincount(counts.indices, minlength=width)
    return np.asarray(np.log((1.0 + n) / (1.0 + having)) + 1.0)


def weighted(counts: Any, weights: Array) -> Any:
    """Return weighted rows of length one."""
    values = (1.0 + np.log(counts.data)) * weights[counts.indices]
    rows = sparse.csr_array((values, counts.indices, counts.indptr), shape=counts.shape)
    norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    norms[norms == 0.0] = 1.0
    rows.data /= np.repeat(norms, np.diff(rows.indptr))
    return rows
