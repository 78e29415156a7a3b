"""The command `mercer`: from a table to a model, its report and its predictions.

`main` is the entry point. It imports only the standard library until a command is known. All
commands import click; each imports rich (progress bar), SciPy, scikit-learn and the packages
below only if it needs them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; `mercer --help` lists the codes.

    Parameters
    ----------
    args : sequence of str, optional
        Command-line arguments. If None, `sys.argv[1:]`.

    Returns
    -------
    int
        The exit code.

    Examples
    --------
    >>> from mercer.command import main
    >>> main(["kernels", "show", "gaussian(2)", "--quiet"])
    0
    """
    from mercer.command.terminal import repair_streams  # noqa: PLC0415  start-up is measured

    repair_streams()
    try:
        import click  # noqa: F401, PLC0415
    except ImportError:
        print(
            'mercer: the command needs the packages click and rich: pip install "mercer[cli]"',
            file=sys.stderr,
        )
        return 1
    from mercer.command.application import application  # noqa: PLC0415

    try:
        application.main(args)
    except SystemExit as end:
        return int(end.code or 0)
