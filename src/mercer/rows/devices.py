"""Devices that single estimators work on (`to_device`), and what is kept there between calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, ref

from mercer.array_types import Array
from mercer.resources import config, get_config
from mercer.rows.device_rows import CardRows


@dataclass(frozen=True, eq=False)
class DeviceContext:
    """Where a machine works.

    Attributes
    ----------
    device : str
        As in `mercer.config(device=...)`.
    kept : dict
        By the number of an array of the machine, and a word for what a backend made of it there:
        the array, and that.
    """

    device: str
    kept: dict[tuple[int, Any], tuple[ref[Array], Any]] = field(default_factory=dict)

    def known(self, array: Array, what: Any) -> Any:
        """Return what was made of an array; None if nothing was."""
        for key, (known, _) in list(self.kept.items()):  # threads may look at the same time
            if known() is None:
                self.kept.pop(key, None)
        owner, made = self.kept.get((id(array), what), (None, None))
        return made if owner is not None and owner() is array else None

    def keep(self, array: Array, what: Any, made: Any) -> None:
        """Keep what was made of an array, as long as the array lives."""
        self.kept[id(array), what] = ref(array), made


_PLACES: WeakKeyDictionary[Any, DeviceContext] = WeakKeyDictionary()
_current: ContextVar[DeviceContext | None] = ContextVar("place", default=None)


def place_of(machine: Any) -> DeviceContext | None:
    """Return where a machine works; None where `config`, or its arrays, decide."""
    return _PLACES.get(machine) if _PLACES else None


def put(machine: Any, device: str | None) -> None:
    """Let a machine work on a device; None leaves it to `config` again, and lets go what is kept.

    Examples
    --------
    >>> class Machine: ...
    >>> machine = Machine()
    >>> put(machine, "cpu")
    >>> place_of(machine).device
    'cpu'
    >>> put(machine, None)
    """
    _PLACES.pop(machine, None)
    if device is not None:
        _PLACES[machine] = DeviceContext(device)


def current_place() -> DeviceContext | None:
    """Return the place of the machine whose method is running."""
    return _current.get()


@contextmanager
def where_rows_are(X: Any) -> Iterator[None]:
    """Run what follows on the card that rows lie on, if they do and no backend is asked for."""
    if not isinstance(X, CardRows) or get_config().backend is not None:
        yield
        return
    with config(backend="torch", device=str(X.tensor.device)):
        yield


@contextmanager
def at_its_place(machine: Any, *, learning: bool = False) -> Iterator[None]:
    """Run what follows where a machine works; what learns may change points, so none are kept."""
    place = place_of(machine)
    if place is None:
        yield
        return
    if learning:
        place.kept.clear()
    token = _current.set(None if learning else place)
    try:
        with config(backend="torch", device=place.device):
            yield
    finally:
        _current.reset(token)
