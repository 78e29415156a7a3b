"""Run the benchmarks and write the table into the documentation.

python -m benchmarks.run            everything
python -m benchmarks.run gram       one part
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

from benchmarks import floor, gram, linear_svm, memory, ridge, svm
from benchmarks.harness import as_table, machine

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"

PARTS = {
    "gram": ("Gram matrices", gram.cases),
    "ridge": ("Kernel ridge", ridge.cases, ridge.NOTE),
    "svm": ("Support vector machines", svm.cases, svm.NOTE),
    "linear": ("Linear support vector machines", linear_svm.cases, linear_svm.NOTE),
    "floor": ("How far from the floor", floor.cases),
    "memory": ("Memory of a lazy product", memory.cases),
}

INTRODUCTION = """# Benchmarks

`python -m benchmarks.run` (or `make bench`) runs Mercer and its rivals in one process on the same
data, the contestants taking turns, and judges both answers by the same code: an error against
float64, or the certificate of the equations. Ratios of medians are what to read; seconds depend on
the machine and on what else it does. Results go back to memory that was touched before, as they do
in a second fit; the first large result of a process also pays for fresh pages.
"""


def main(wanted: list[str]) -> None:
    """Run the wanted parts; a full run rewrites the page."""
    sections = []
    for name in wanted or list(PARTS):
        title, cases, *notes = PARTS[name]
        result = cases()
        text = result if isinstance(result, str) else as_table(result)
        sections.append("\n\n".join([f"## {title}", text, *notes]) + "\n")
    if not wanted:
        measured = f"Measured on {date.today().isoformat()}: {machine()}.\n"
        PAGE.write_text("\n".join([INTRODUCTION, measured, *sections]))


if __name__ == "__main__":
    main(sys.argv[1:])
