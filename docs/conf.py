"""Sphinx configuration. `make docs` builds with -W: a warning is an error."""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
os.environ.setdefault("MPLBACKEND", "Agg")

import mercer

project = "Mercer"
author = "The Mercer developers"
project_copyright = "2026, The Mercer developers"
version = release = mercer.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "**/sg_execution_times*"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # the gallery's own settings hold functions
default_role = "code"  # a single backtick in a docstring is code

html_theme = "pydata_sphinx_theme"
html_title = f"Mercer {release}"
html_static_path: list[str] = []
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_end": [],
}

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # the types stand in the docstrings
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(demo|__init__)\.py",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 5,
    "abort_on_example_error": True,
}

warnings.filterwarnings("ignore", message="Mercer runs on its NumPy reference backend")

_LITERAL = re.compile(r"(`[^`]*`)")


def escape_formulas(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Let docstrings write formulas as plain text: |x| and a* are no markup there."""
    doctest = False
    for i, line in enumerate(lines):
        doctest = line.lstrip().startswith(">>>") or (doctest and bool(line.strip()))
        if doctest or set(line.strip()) <= set("=- "):
            continue
        parts = _LITERAL.split(line)
        parts[::2] = [re.sub(r"([|*])", r"\\\1", part) for part in parts[::2]]
        lines[i] = "".join(parts)


def setup(app: Any) -> None:
    """Run before numpydoc reads the docstrings."""
    app.connect("autodoc-process-docstring", escape_formulas, priority=100)
