"""Machines on a device of their own."""

from __future__ import annotations

from typing import TypeVar

from mercer import places
from mercer.backends import choose_backend
from mercer.machines.base.other_names import Machine
from mercer.resources import config

M = TypeVar("M")


def to_device(machine: M, device: str | None) -> M:
    """Let a machine do its work on a device from now on; its points stay there between calls.

    Parameters
    ----------
    machine : estimator
        Fitted or not.
    device : str or None
        "cuda", "cuda:1" or "cpu", by the torch backend, whatever `config` says; None leaves the
        choice to `config` and to the arrays again, and lets go of what is kept there.

    Returns
    -------
    estimator
        The same machine. Copies, clones and model files of it are not on the device.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge, to_device
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> machine = KernelRidge(0.1, kernel="gaussian").fit(X, X[:, 0])
    >>> to_device(machine, "cuda").predict(X[:3])  # doctest: +SKIP
    """
    if not isinstance(machine, Machine):
        raise TypeError(
            f"to_device: machine={machine!r:.80} is no machine of Mercer; move the machines inside"
        )
    if device is not None:
        with config(backend="torch", device=device):
            choose_backend()  # says what is missing: torch, or the card
    places.put(machine, device)
    return machine
