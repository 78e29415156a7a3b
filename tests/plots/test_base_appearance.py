import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from mercer.plots import base, style


def test_style_is_left_behind_even_after_an_error():
    before = dict(mpl.rcParams)
    with pytest.raises(ZeroDivisionError), style("dark"):
        assert mpl.rcParams["axes.facecolor"] == base.PAPER["dark"]
        _ = 1 / 0
    assert dict(mpl.rcParams) == before


def test_style_follows_the_paper_in_use():
    with mpl.rc_context({"figure.facecolor": "black"}), style():
        assert mpl.rcParams["text.color"] == base.INK["dark"]
    with style():
        assert mpl.rcParams["text.color"] == base.INK["light"]
    with pytest.raises(ValueError, match="background='blue' must be"), style("blue"):
        pass


def linear(colour):
    c = np.array(mpl.colors.to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(a, b):
    a, b = (float(linear(colour) @ [0.2126, 0.7152, 0.0722]) + 0.05 for colour in (a, b))
    return max(a, b) / min(a, b)


# Machado, Oliveira and Fernandes (2009), severity 1
BLINDNESS = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
               [-0.011820, 0.042940, 0.968881]],
}  # fmt: skip


@pytest.mark.parametrize("kind", BLINDNESS)
def test_first_colours_differ_for_colour_blind_readers(kind):
    seen = [np.clip(BLINDNESS[kind] @ linear(c), 0, 1) for c in base.PALETTE[:6]]
    apart = [np.abs(a - b).max() for i, a in enumerate(seen) for b in seen[:i]]
    assert min(apart) > 0.1


def test_colours_are_seen_on_both_papers():
    for paper in base.PAPER.values():
        assert min(contrast(colour, paper) for colour in base.PALETTE) > 2.2
        assert contrast(base.FAINT, paper) > 3
    for kind in ("light", "dark"):
        assert contrast(base.INK[kind], base.PAPER[kind]) > 10


def test_ink_follows_the_axes():
    figure = Figure(facecolor="black")
    ax = figure.add_subplot(facecolor="white")
    assert base.ink_of(ax) == base.INK["light"]
    ax.set_facecolor("none")
    assert base.ink_of(ax) == base.INK["dark"]
    assert base.ink_on("#000080") == base.INK["dark"]
    assert base.mixed("black", "white", 0.25) == (0.75, 0.75, 0.75)


def test_titles_are_no_wider_than_the_axes():
    figure = Figure(figsize=(4, 3))
    ax = figure.subplots()
    base.title(ax, "SVC(" + ", ".join(f"parameter_{k}={k}" for k in range(9)) + ")")
    lines = ax.get_title(loc="left").split("\n")
    assert len(lines) > 2 and max(map(len, lines)) < 60
    base.title(ax, "another")  # a title of the caller's stays
    assert ax.get_title(loc="left").startswith("SVC(")


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("turned", [0, 90])
def test_legends_cover_no_data_and_no_labels(long, turned):
    figure = Figure(layout="constrained")
    ax = figure.subplots()
    ax.scatter([0, 1], [0, 1], label="a class with a long name" if long else "a")
    ax.set(xlabel="x", xticks=[0, 1])
    ax.set_xticklabels(["first label", "second"], rotation=turned)
    base.legend_beside(ax)
    figure.draw_without_rendering()
    figure.draw_without_rendering()
    legend = ax.get_legend().get_window_extent()
    assert not legend.overlaps(ax.get_window_extent())
    assert not legend.overlaps(ax.xaxis.get_tightbbox())
    assert legend.x1 <= figure.bbox.x1 and legend.y0 >= 0


def test_very_long_legends_are_left_out():
    ax = Figure(layout="constrained").subplots()
    for k in range(30):
        ax.plot([0, 1], [k, k], label=str(k))
    base.legend_beside(ax)
    assert ax.get_legend() is None
