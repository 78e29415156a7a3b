"""What happened: states, actions, rewards and the states after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.machines.base.inputs import read_array, refuse_nonfinite


@dataclass(frozen=True, eq=False)
class Transitions:
    """A sample of a Markov decision process.

    Attributes
    ----------
    states : (n, d) array
        Where it was.
    actions : (n,) array
        What was done.
    rewards : (n,) array
        What that was worth.
    next_states : (n, d) array
        Where it led.
    ended : (n,) bool array
        Whether nothing comes after it.
    weights : (n,) array or None
        How often each counts: a row of weight 2 is that row twice. None for once each.

    Examples
    --------
    >>> import numpy as np
    >>> seen = Transitions([[0.0]], [1.0], [-1.0], [[1.0]], [False])
    >>> len(seen)
    1
    """

    states: Array
    actions: Array
    rewards: Array
    next_states: Array
    ended: Array
    weights: Array | None = None

    def __post_init__(self) -> None:
        rows = {}
        for name in ("states", "next_states"):
            rows[name] = np.asarray(read_array("Transitions", getattr(self, name), name), float)
            refuse_nonfinite("Transitions", rows[name], name)
        n = len(rows["states"])
        if rows["next_states"].shape != rows["states"].shape:
            raise ValueError(
                f"Transitions: next_states of shape {rows['next_states'].shape} must have the "
                f"shape of states, {rows['states'].shape}"
            )
        weights = np.ones(n) if self.weights is None else self.weights
        for name, values in (
            ("actions", self.actions),
            ("rewards", self.rewards),
            ("weights", weights),
        ):
            rows[name] = np.asarray(values, dtype=np.float64)
            if rows[name].shape != (n,) or not np.isfinite(rows[name]).all():
                raise ValueError(
                    f"Transitions: {name} must be {n} finite numbers, one for each row"
                )
        if (rows["weights"] < 0).any() or not rows["weights"].any():
            raise ValueError("Transitions: weights must not be negative, and not all zero")
        rows["ended"] = np.asarray(self.ended, dtype=bool)
        if rows["ended"].shape != (n,):
            raise ValueError(f"Transitions: ended must be {n} truth values, one for each row")
        for name, values in rows.items():
            object.__setattr__(self, name, values)

    def __len__(self) -> int:
        return len(self.states)

    @property
    def rows(self) -> Array:
        """States and actions side by side, (n, d + 1): what kernels compare."""
        return np.column_stack([self.states, self.actions])

    def next_rows(self, actions: Sequence[float]) -> Array:
        """Return the next states with every action, (actions * n, d + 1), action by action."""
        n = len(self)
        return np.vstack([np.column_stack([self.next_states, np.full(n, a)]) for a in actions])

    @staticmethod
    def joined(parts: Sequence[Transitions]) -> Transitions:
        """Return several samples as one."""
        names = ("states", "actions", "rewards", "next_states", "ended", "weights")
        return Transitions(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in names)
        )
