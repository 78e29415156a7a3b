"""A local page that demonstrates kernel methods on painted points or on your own table."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.studio.limits import StudioLimits
    from mercer.studio.notebook import Shown, show
    from mercer.studio.server import application, run

__all__ = ["Shown", "StudioLimits", "application", "run", "show"]

# starlette and uvicorn are an extra, and processes that do the fits need neither
_HOME = {
    "Shown": "mercer.studio.notebook",
    "StudioLimits": "mercer.studio.limits",
    "application": "mercer.studio.server",
    "run": "mercer.studio.server",
    "show": "mercer.studio.notebook",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mercer.studio' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
