"""Pages that the compiled core keeps for later calls.

Arrays that are let go leave their pages behind, so that the next ones need not be given fresh pages
by the system. Under a configured budget these count, too.
"""

from __future__ import annotations

import os

try:
    from mercer import _native
except ImportError:  # the reference backend keeps no pages
    _native = None  # type: ignore[assignment]

_MOST = 1 << 32  # bytes kept where no budget is configured
_OF_ALL = 4  # and no more than one in so many of the machine's
_OF_BUDGET = 32  # one in so many of a configured budget

_budget: int | None = None  # what the limit was last set for


def limit_idle(budget: int | None) -> None:
    """Let the core keep idle pages for a budget; None is the default of the library."""
    global _budget  # noqa: PLW0603  the limit is the process's, too
    if budget == _budget or _native is None:
        return
    _native.set_idle_limit(_default_limit() if budget is None else budget // _OF_BUDGET)
    _budget = budget


def _default_limit() -> int:
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return _MOST
    return min(_MOST, physical // _OF_ALL)
