"""Run the benchmarks and write the tables into the documentation.

python -m benchmarks.run            everything
python -m benchmarks.run gram pca   some parts: their sections are written anew, the others stay
"""

from __future__ import annotations

import re
import sys
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.arithmetic import floor, gram, memory
from benchmarks.classification import bayes, fisher, online
from benchmarks.clustering import kmeans, mixtures, spectral
from benchmarks.harness import as_table, machine
from benchmarks.margin import compression, linear, strings, svm
from benchmarks.margin import tuning as tuning_margin
from benchmarks.projection import cca, pca
from benchmarks.regression import process, ridge
from benchmarks.regression import tuning as tuning_ridge
from benchmarks.tables import choosing, gallery, kernel_learning, real

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"

# name: title, function that runs the comparisons (a table of rows, or text), and explanation
PARTS: dict[str, tuple[str, Any, str]] = {
    "gram": ("Kernel matrices", gram.cases, ""),
    "ridge": ("Kernel ridge", ridge.cases, ridge.NOTE),
    "process": ("Gaussian processes", process.cases, process.NOTE),
    "svm": ("Support vector machines", svm.cases, svm.NOTE),
    "linear": ("Linear support vector machines", linear.cases, linear.NOTE),
    "strings": ("Strings", strings.cases, strings.NOTE),
    "pca": ("Principal components", pca.cases, pca.NOTE),
    "spectral": ("Spectral clustering", spectral.main, spectral.NOTE),
    "kmeans": ("K-means", kmeans.cases, kmeans.NOTE),
    "cca": ("Canonical correlations", cca.main, cca.NOTE),
    "fisher": ("Fisher discriminants and neighbors", fisher.main, fisher.NOTE),
    "bayes": ("Naive Bayes and Gaussian classes", bayes.main, bayes.NOTE),
    "mixtures": ("Mixtures and topics", mixtures.main, mixtures.NOTE),
    "online": ("Perceptron and logistic regression", online.main, online.NOTE),
    "tuning": ("Tuning of support vector machines", tuning_margin.main, tuning_margin.NOTE),
    "tuning_ridge": ("Tuning of kernel ridge", tuning_ridge.cases, tuning_ridge.NOTE),
    "choosing": ("Kernel selection on real data", choosing.main, choosing.NOTE),
    "compression": ("Fewer support vectors", compression.main, compression.NOTE),
    "tables": ("From a table to a model", real.main, real.NOTE),
    "kernels": ("Learning kernels", kernel_learning.main, kernel_learning.NOTE),
    "gallery": ("Programs of scikit-learn's gallery", gallery.main, gallery.NOTE),
    "floor": ("Distance from the lower bounds", floor.cases, ""),
    "memory": ("Memory of products without a stored matrix", memory.cases, ""),
}

INTRODUCTION = """# Benchmarks

`python -m benchmarks.run` (or `make bench`) runs Mercer and its rivals in one process on the same
data, in turns. The same code verifies both results: by an error against float64, or by the
certificate. Read the ratios of the medians ("times faster"); seconds depend on the computer and its
load. As in a second fit, results use memory that was touched before. The first large result of a
process also pays for fresh pages.
"""


def main(wanted: list[str]) -> None:
    """Run the wanted parts, and write their sections."""
    sections = written()
    for name in wanted or list(PARTS):
        title, cases, note = PARTS[name]
        result = cases()
        text = result if isinstance(result, str) else as_table(result)
        measured = f"*Measured on {date.today().isoformat()}: {machine()}.*"
        sections[title] = "\n\n".join(filter(None, [text, note, measured]))
        save(sections)  # each as soon as it is there: a full run takes an hour


def written() -> dict[str, str]:
    """Read the sections of the page."""
    if not PAGE.exists():
        return {}
    parts = re.split(r"^## (.+)$", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {title: text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}


def save(sections: dict[str, str]) -> None:
    """Write the page: the sections in the order of the parts, then those written by hand."""
    order = [title for title, *_ in PARTS.values() if title in sections]
    order += [title for title in sections if title not in order]
    PAGE.write_text("\n".join([INTRODUCTION, *(f"## {t}\n\n{sections[t]}\n" for t in order)]))


if __name__ == "__main__":
    main(sys.argv[1:])
