"""Run a program with Mercer's classes in place of scikit-learn's.

``python -m mercer.compat.sklearn script.py [arguments]``, or ``-m module [arguments]``; with
``--quiet`` first, nothing is said of what runs where.
"""

from __future__ import annotations

import os
import runpy
import sys

from mercer.compat.sklearn.patch import patch

_USAGE = "usage: python -m mercer.compat.sklearn [--quiet] (script.py | -m module) [arguments]"


def main(arguments: list[str]) -> None:
    """Swap the classes, and run the program as Python would."""
    verbose = arguments[:1] != ["--quiet"]
    rest = arguments if verbose else arguments[1:]
    as_module = rest[:1] == ["-m"]
    rest = rest[1:] if as_module else rest
    if not rest or (rest[0].startswith("-") and not as_module):
        sys.exit(_USAGE)
    patch(verbose=verbose)
    sys.argv = rest
    if as_module:
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        return
    sys.path[0] = os.path.dirname(os.path.abspath(rest[0]))
    runpy.run_path(rest[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
