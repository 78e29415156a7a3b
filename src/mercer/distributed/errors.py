"""What goes wrong with a cluster, in words."""

from __future__ import annotations

from importlib.util import find_spec


class ClusterError(RuntimeError):
    """The cluster could not answer; the message says what it lost and what to do."""


def require_dask() -> None:
    """Raise if Dask is not installed, with the command that installs it."""
    if find_spec("dask") is None or find_spec("distributed") is None:
        raise ImportError(
            "rows on a cluster need Dask, which is not installed: pip install 'mercer[dask]'"
        )
