"""Sphinx configuration. `make docs` builds with -W: a warning is an error."""

from __future__ import annotations

import inspect
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "extensions"))
os.environ.setdefault("MPLBACKEND", "Agg")

from sphinx.util.inspect import stringify_signature

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
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "command_reference",
    "offline",
    "pictures",
    "reference",
    "snippets",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "**/sg_execution_times*", "**/GALLERY_HEADER*"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = [
    "config.cache",  # the gallery's own settings hold functions
    "ref.python",  # `certificate_` in a list of attributes: many classes have one
]
default_role = "code"  # a single backtick in a docstring is code

html_theme = "pydata_sphinx_theme"
html_title = f"Mercer {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_end": [],
}
html_sidebars = {page: [] for page in ("index", "install", "quickstart", "which-machine")}
mathjax_path = "tex-svg-full.js"  # copied by the extension `offline`
mathjax3_config = {"options": {"enableMenu": False}}  # the menu would load parts from a network

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # the types stand in the docstrings
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# the order of the guide
SUBJECTS = "classify regress novelty project cluster densities choose understand plots".split()
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "subsection_order": [f"../examples/{subject}" for subject in SUBJECTS],
    "within_subsection_order": "pictures.MostUsedFirst",
    "image_scrapers": ("pictures.careful_scraper",),
    "thumbnail_size": (800, 480),
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(demo|__init__)\.py",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
}

warnings.filterwarnings("ignore", message="Mercer runs on its NumPy reference backend")

_LITERAL = re.compile(r"(`[^`]*`)")
# references to labels of other projects' pages, in docstrings that are inherited from them
_FOREIGN = re.compile(r":(?:ref|term):`([^<`]*?)(?: *<[^>]*>)?`")


def escape_formulas(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Let docstrings write formulas as plain text: |x| and a* are no markup there."""
    doctest = False
    for i, line in enumerate(lines):
        doctest = line.lstrip().startswith(">>>") or (doctest and bool(line.strip()))
        if doctest or set(line.strip()) <= set("=- "):
            continue
        parts = _LITERAL.split(_FOREIGN.sub(r"\1", line))
        parts[::2] = [re.sub(r"([|*])", r"\\\1", part) for part in parts[::2]]
        lines[i] = "".join(parts)


def name_types(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: Any
) -> tuple[str, Any] | None:
    """Return the signatures of a function that dispatches on a type apart by that type."""
    if what != "function" or name.strip(".") or not signature:
        return None  # only the signatures of the registered functions come without a name
    first = next(iter(inspect.signature(obj).parameters.values()))
    kind = getattr(first.annotation, "__name__", str(first.annotation))
    return signature.replace(first.name, f"{first.name}: {kind}", 1), returns


def name_arguments(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: Any
) -> tuple[str, Any] | None:
    """Return the arguments of a class where Sphinx looks at a __new__ that takes any."""
    if what != "class" or signature != "(*args, **kwargs)":
        return None
    return stringify_signature(inspect.signature(obj), False, False), returns


def only_rst_headers(app: Any) -> None:
    """Keep examples/data/README.md, which is for people, from becoming a section of the gallery."""
    app.config.sphinx_gallery_conf["source_suffix"] = {".rst": "restructuredtext"}


def setup(app: Any) -> None:
    """Run before numpydoc reads the docstrings, and before the gallery looks for its sections."""
    app.connect("autodoc-process-docstring", escape_formulas, priority=100)
    app.connect("autodoc-process-signature", name_types)
    app.connect("autodoc-process-signature", name_arguments)
    app.connect("builder-inited", only_rst_headers, priority=100)
