"""What all displays have in common: they draw, leave no state, survive pickling."""

import inspect
import io
import pickle
import subprocess
import sys
from copy import copy
from functools import cache

import matplotlib as mpl
import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure
from pictures import empty_axes
from plots.shown import DPI, REFERENCES, SHOWN

from mercer import plots
from mercer.plots.base import Display


@cache
def drawn(name):
    """Draw each display once, on a figure of its own, which pyplot forgets at once."""
    import matplotlib.pyplot as plt

    shown = SHOWN[name](None)
    plt.close(shown.figure_)
    return shown


@pytest.fixture(params=SHOWN)
def name(request):
    return request.param


def test_every_display_is_shown_here():
    displays = {n for n in plots.__all__ if n.endswith("Display")}
    assert displays == set(SHOWN)


def test_it_draws_and_is_labelled(name):
    shown = drawn(name)
    assert isinstance(shown, Display) and type(shown).__name__ == name
    assert shown.figure_ is shown.ax_.figure
    assert not empty_axes(shown.figure_)
    labelled = shown.ax_.get_xlabel() and shown.ax_.get_ylabel()
    assert labelled or name == "KernelMatrixDisplay"  # whose ticks are the names of the classes
    assert shown.ax_.get_title(loc="left") or name == "BoundsDisplay"


def test_it_is_a_picture_of_the_size_of_its_reference(name):
    """Warnings are errors here: letters without a shape, axes without room."""
    held = io.BytesIO()
    drawn(name).figure_.savefig(held, format="png", dpi=DPI)
    held.seek(0)
    picture = mpl.image.imread(held, format="png")[..., :3]
    reference = mpl.image.imread(REFERENCES / f"{name}.png")
    assert picture.shape[:2] == reference.shape[:2]
    ink = np.abs(picture - picture[0, 0]).max(axis=2) > 0.1
    assert 0.01 < ink.mean() < 0.95  # more than a frame, and not all of the paper
    halves = np.array_split(ink, 2)
    quarters = [part.mean() for half in halves for part in np.array_split(half, 2, axis=1)]
    assert min(quarters) > 0.001  # in every part of the paper


def test_a_pickled_copy_draws_on_given_axes_and_leaves_nothing_behind(name):
    """On a bare figure: neither settings nor figures of pyplot change, nor other axes."""
    import matplotlib.pyplot as plt

    twin = pickle.loads(pickle.dumps(drawn(name)))
    plt.close("all")  # figures come back with their pickles
    left, right = Figure().subplots(1, 2)
    settings = dict(mpl.rcParams)
    assert twin.plot(right) is twin
    assert twin.ax_ is right and twin.figure_ is right.figure
    assert dict(mpl.rcParams) == settings and not plt.get_fignums()
    assert not left.has_data() and (right.has_data() or right.texts)
    with pytest.raises(TypeError, match=r"ax must be one Axes .* pass one, such as"):
        twin.plot(np.array([left, right]))


def test_it_is_readable_on_dark_paper(name):
    """Letters are light where the paper is dark, also those beside the axes' own."""
    with plots.style("dark"):
        shown = copy(drawn(name)).plot(Figure(layout="constrained").subplots())
    for text in shown.ax_.texts:
        box = text.get_bbox_patch()
        behind = shown.ax_.get_facecolor() if box is None else box.get_facecolor()
        on_image = bool(shown.ax_.images or name == "TuningDisplay")
        light = np.abs(np.subtract(mpl.colors.to_rgb(text.get_color()), behind[:3])).max()
        assert on_image or light > 0.3, text.get_text()
    assert mpl.colors.to_rgb(shown.ax_.title.get_color())[0] > 0.8


def test_its_docstring_names_what_it_has(name):
    kind = getattr(plots, name)
    attributes = inspect.getdoc(kind).split("Attributes")[1].split("Examples")[0]
    named = {
        word.strip()
        for line in attributes.splitlines()
        if " : " in line and not line.startswith(" ")
        for word in line.split(" : ")[0].split(",")
        if word.strip().endswith("_")
    }
    missing = {attribute for attribute in named if not hasattr(drawn(name), attribute)}
    assert not missing


def test_a_drawing_that_fails_leaves_no_figure():
    import matplotlib.pyplot as plt

    with pytest.raises(AttributeError, match="no_such"):
        plots.ResidualsDisplay.from_predictions([1.0, 2.0], [1.0, 1.5], no_such=1)
    assert not plt.get_fignums()


def test_references_are_small_and_all_there():
    files = list(REFERENCES.glob("*.png"))
    assert {file.stem for file in files} == set(SHOWN)
    assert sum(file.stat().st_size for file in files) < 1_000_000


def test_matplotlib_is_imported_when_something_is_drawn():
    code = (
        "import sys, mercer.plots\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from mercer.plots import ResidualsDisplay\n"
        "from matplotlib.figure import Figure\n"
        "ResidualsDisplay.from_predictions([1.0, 2.0], [1.0, 1.5], ax=Figure().subplots())\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_without_matplotlib_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "mercer\[plot\]"'):
        plots.ResidualsDisplay.from_predictions([1.0, 2.0], [1.0, 1.5])
