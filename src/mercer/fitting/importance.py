"""What each column of a table is worth to a model: the score lost when its entries are shuffled.

The preparation makes numbers of each column by itself, so shuffling the entries of a column is
shuffling, by rows, the numbers made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.fitting.evaluation import Importance
from mercer.points import is_sparse

_ROWS = 1000
_SHUFFLES = 5
_LEAST_ROWS, _LEAST_SHUFFLES = 100, 2
_MOST_COLUMNS = 100  # of wide tables: those that depend most on the target by themselves
_AGAIN = 20  # columns that are measured once more, on more rows, where there are many
# Rows times stored rows times columns, over all predictions: some 10 s. A count rather than
# seconds, so that the same call gives the same answer on any machine.
_WORK = 4e10
_PREDICTIONS = 300  # each costs a few milliseconds, however small


def permutation_importance(
    machine: Any,
    rows: Any,
    blocks: dict[str, list[int]],
    score: Callable[[Any, Any], float],
    truth: Array,
    seed: int,
    tell: Callable[[str, float], Any] | None = None,
) -> tuple[tuple[Importance, ...], str]:
    """Shuffle one column of the table after the other.

    Parameters
    ----------
    machine : estimator
        Fitted, behind the preparation.
    rows : (n, d) array or CSR matrix
        Prepared rows that it is judged by.
    blocks : dict of str to list of int
        Which prepared columns each column of the table became.
    score : callable
        From truth and prediction to a number, the higher the better.
    truth : (n,) array
        What is right.
    seed : int
        Of sample and shuffles.
    tell : callable, optional
        Told which column is at work, and the share that is done.

    Returns
    -------
    importance : tuple of Importance
        The most important first.
    note : str
        How many rows and shuffles there were, or why there is none.
    """
    if not blocks or len(truth) < 2:
        return (), "No column can be shuffled."
    rng = np.random.default_rng(seed)
    names = list(blocks)
    few = names[:_MOST_COLUMNS] if len(names) > _MOST_COLUMNS else names
    if len(names) > _MOST_COLUMNS:
        few = _related(rows, blocks, truth)
    shuffling = Shuffling(machine, rows, blocks, score, truth, rng, tell)
    kept, shuffles = _budget(machine, rows, len(few))
    found = shuffling.measure(few, kept, shuffles)
    note = f"{shuffles} shuffles of each column on {kept} rows"
    if len(few) < len(names):
        note += (
            f", for the {len(few)} of {len(names)} columns that depend most on the target by "
            "themselves"
        )
    if kept < min(_ROWS, len(truth)) and len(few) > _AGAIN:
        best = sorted(few, key=lambda name: -found[name].drop)[:_AGAIN]
        kept, shuffles = _budget(machine, rows, _AGAIN)
        found |= shuffling.measure(best, kept, shuffles)  # on other rows: the luckiest lose
        note += f"; of the {_AGAIN} that matter most, {shuffles} more on {kept} rows"
    return tuple(sorted(found.values(), key=lambda one: -one.drop)), note


@dataclass(frozen=True, eq=False)
class Shuffling:
    """What is shuffled and by what it is judged: as `permutation_importance` has it."""

    machine: Any
    rows: Any
    blocks: dict[str, list[int]]
    score: Callable[[Any, Any], float]
    truth: Array
    rng: np.random.Generator
    tell: Callable[[str, float], Any] | None

    def measure(self, names: list[str], rows: int, shuffles: int) -> dict[str, Importance]:
        """Shuffle columns on a sample of rows."""
        some = np.sort(self.rng.permutation(len(self.truth))[:rows])
        Z, y = self.rows[some], self.truth[some]
        full = self.score(y, self.machine.predict(Z))
        found = {}
        for place, name in enumerate(names):
            if self.tell is not None:
                self.tell(f"column {place + 1} of {len(names)}", place / len(names))
            drops = []
            for _ in range(shuffles):
                changed = _shuffled(Z, self.blocks[name], self.rng.permutation(len(y)))
                drops.append(full - self.score(y, self.machine.predict(changed)))
            error = float(np.std(drops, ddof=1) / np.sqrt(shuffles))
            found[name] = Importance(name, float(np.mean(drops)), error)
        return found


def _shuffled(Z: Any, columns: list[int], order: Array) -> Any:
    """Return rows with the entries of some columns in another order."""
    if not is_sparse(Z):
        changed = np.array(Z)
        changed[:, columns] = Z[order][:, columns]
        return changed
    by_column = Z.tocsc(copy=True)
    place = np.argsort(order)  # where each row's entry goes
    for j in columns:
        stored = slice(by_column.indptr[j], by_column.indptr[j + 1])
        by_column.indices[stored] = place[by_column.indices[stored]]
    by_column.has_sorted_indices = False
    changed = by_column.tocsr()
    changed.sort_indices()
    return changed


def _budget(machine: Any, rows: Any, columns: int) -> tuple[int, int]:
    """Return how many rows and shuffles the budget allows."""
    stored = getattr(machine, "support_", None)
    count = len(stored) if stored is not None else getattr(machine, "n_samples_", rows.shape[0])
    per_row = float(max(count, 1)) * rows.shape[1]
    most = min(_ROWS, rows.shape[0])
    shuffles = min(_WORK / (per_row * most * columns), _PREDICTIONS / columns)
    shuffles = int(np.clip(shuffles, _LEAST_SHUFFLES, _SHUFFLES))
    kept = int(np.clip(_WORK / (per_row * shuffles * columns), min(_LEAST_ROWS, most), most))
    return kept, shuffles


def _related(rows: Any, blocks: dict[str, list[int]], truth: Array) -> list[str]:
    """Return the columns with the largest correlation of any of their numbers with the target."""
    if truth.dtype.kind in "OUSb":
        codes = np.unique(truth, return_inverse=True)[1]
        targets = (codes[:, None] == np.unique(codes)).astype(np.float64)
    else:
        targets = np.asarray(truth, dtype=np.float64)[:, None]
    targets = targets - targets.mean(axis=0)
    cross = np.abs(np.asarray(rows.T @ targets))
    squares = rows.multiply(rows) if is_sparse(rows) else np.square(rows)
    mean = np.asarray(rows.mean(axis=0)).ravel()
    spread = np.sqrt(np.maximum(np.asarray(squares.mean(axis=0)).ravel() - mean**2, 1e-300))
    strength = cross.max(axis=1) / spread
    by_name = {name: float(strength[place].max()) for name, place in blocks.items() if len(place)}
    return sorted(by_name, key=lambda name: -by_name[name])[:_MOST_COLUMNS]
