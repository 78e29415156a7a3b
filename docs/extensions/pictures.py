"""Pictures of the gallery: none is empty, and thumbnails are large enough to be seen.

A figure that is made in one cell and drawn in the next is saved empty after the first: its axes
hold no data at that moment, which is what is looked for here. A row of several panels would be a
narrow strip among the thumbnails, so only its first panels are shown there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

WIDE = 2.1  # a picture wider than that, in heights, is cut


class EmptyPictureError(Exception):
    """A figure was saved before anything was drawn in it."""


def empty_axes(figure: Any) -> list[int]:
    """Return the places of those axes that are seen and have nothing in them."""
    return [
        place
        for place, axes in enumerate(figure.axes)
        if axes.get_visible() and axes.axison and not (axes.has_data() or axes.texts)
    ]


def refuse_empty(figures: list[Any], source: str) -> None:
    """Raise if one of the figures of an example shows nothing."""
    for figure in figures:
        blank = empty_axes(figure)
        if blank or not figure.axes:
            raise EmptyPictureError(
                f"{source}: a figure has no drawing in its axes {blank}; "
                "make a figure and draw in it in the same cell"
            )


def careful_scraper(block: Any, block_vars: Any, gallery_conf: Any, **kwargs: Any) -> Any:
    """Save the open figures as sphinx-gallery does, once each of them shows something."""
    from sphinx_gallery.scrapers import matplotlib_scraper  # noqa: PLC0415 - not a need of tests

    refuse_empty([plt.figure(number) for number in plt.get_fignums()], block_vars["src_file"])
    return matplotlib_scraper(block, block_vars, gallery_conf, **kwargs)


def first_panels(picture: Any) -> Any:
    """Return the left part of a wide picture, cut at the widest gap; others as they are."""
    height, width = picture.shape[:2]
    if width <= WIDE * height:
        return picture
    low, high = int(1.0 * height), int(WIDE * height)
    white = (picture[..., :3] > 0.98).all(axis=(0, 2))[low:high]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], white, [0]])))
    if not len(edges):
        return picture
    starts, ends = edges[::2], edges[1::2]
    widest = np.argmax(ends - starts)
    return picture[:, : low + (starts[widest] + ends[widest]) // 2]


def crop_thumbnails(app: Any) -> None:
    """Make the thumbnails of wide pictures anew, from their first panels."""
    from sphinx_gallery.utils import scale_image  # noqa: PLC0415 - not a need of tests

    size = app.config.sphinx_gallery_conf["thumbnail_size"]
    for path in Path(app.srcdir, "gallery").glob("*/images/sphx_glr_*_001.png"):
        whole = plt.imread(path)
        part = first_panels(whole)
        if part.shape != whole.shape:
            thumbnail = path.parent / "thumb" / path.name.replace("_001", "_thumb")
            plt.imsave(thumbnail, np.ascontiguousarray(part))
            scale_image(thumbnail, thumbnail, *size)


def setup(app: Any) -> dict[str, Any]:
    """Run after the gallery has been made."""
    app.connect("builder-inited", crop_thumbnails, priority=900)
    return {"parallel_read_safe": True}


class MostUsedFirst:
    """Order the examples of a subject: what most readers look for, then the rest by name."""

    FIRST = ("svc_margin", "svc_cost_and_kernel", "logistic", "ridge_path", "pca_rings", "kmeans")
    FIRST += ("gaussian_mixture", "choosing", "kernels", "looking_at_data", "machines")

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file: str) -> tuple[int, str]:
        """Return the key of a file."""
        name = Path(file).stem.removeprefix("plot_")
        return (self.FIRST.index(name) if name in self.FIRST else len(self.FIRST), name)
