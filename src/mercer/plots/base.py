"""Base of the plots: style, class `Display`, and checks of fitted estimators."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array

# --- appearance ----------------------------------------------------------------------------------
#
# One look for all pictures: colors that color-blind readers tell apart, readable sizes.
#
# Matplotlib is imported when a picture is drawn, not before, and its settings are changed inside
# `style` only.

# Okabe and Ito, Color universal design (2008), without black, which is the ink, and without yellow,
# which white paper swallows; then a grey, and three of ColorBrewer and Tol for up to ten classes.
PALETTE = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"),
    *("#8C8C8C", "#7570B3", "#999933", "#A6761D"),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")  # classes differ by shape, too
SEQUENTIAL = "viridis"  # its lightness rises evenly: also in print without color
DIVERGING = "PuOr_r"  # of ColorBrewer, color-blind safe
INK = {"light": "#262626", "dark": "#E6E6E6"}
PAPER = {"light": "#FFFFFF", "dark": "#1B1B1B"}
FAINT = "#8C8C8C"  # guides and rows that carry nothing: seen on both papers
SIZE = (6.4, 4.6)  # inches
_MOST_ENTRIES = 20  # of a legend
_SHORT = 16  # letters of a name in a legend to the right of the picture
_WIDTH = 0.52  # of a letter, in font sizes, on average


def matplotlib_module(name: str = "") -> Any:
    """Return Matplotlib, or a module of it; the error explains how to install it."""
    try:
        return import_module(f"matplotlib.{name}" if name else "matplotlib")
    except ImportError as error:
        raise ImportError(
            'mercer.plots draws with Matplotlib, an extra: pip install "mercer[plot]"'
        ) from error


@contextmanager
def style(background: str | None = None) -> Iterator[None]:
    """Draw in the style of this library inside a `with` block; settings are as before after it.

    Displays draw in this style whenever they make their own figure. The block is for figures that
    made earlier, and for other drawings next to them.

    Parameters
    ----------
    background : {"light", "dark"} or None
        Of the paper; None keeps to that of Matplotlib's present settings, so that
        `plt.style.use("dark_background")` is followed.

    Examples
    --------
    >>> import matplotlib
    >>> from mercer.plots import style
    >>> before = matplotlib.rcParams["axes.facecolor"]
    >>> with style("dark"):
    ...     print(matplotlib.rcParams["axes.facecolor"])
    #1B1B1B
    >>> matplotlib.rcParams["axes.facecolor"] == before
    True
    """
    matplotlib = matplotlib_module()
    if background not in (None, "light", "dark"):
        raise ValueError(f"style: background={background!r} must be 'light', 'dark' or None")
    if background is None:
        paper = matplotlib.rcParams["figure.facecolor"]
        background = "dark" if _luminance(paper) < 0.4 else "light"
    ink, paper = INK[background], PAPER[background]
    colours = dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), ink
    )
    settings = {
        **colours,
        "figure.facecolor": paper,
        "axes.facecolor": paper,
        "figure.figsize": SIZE,
        "figure.constrained_layout.use": True,
        "font.size": 10.5,
        "axes.titlesize": 11,
        "axes.titlelocation": "left",
        "axes.labelsize": 10.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": matplotlib_module("rcsetup").cycler("color", PALETTE),
        "xtick.labelsize": 9.5,
        "ytick.labelsize": 9.5,
        "legend.fontsize": 9.5,
        "legend.title_fontsize": 9.5,
        "legend.frameon": False,
        "lines.linewidth": 1.8,
        "image.cmap": SEQUENTIAL,
        "savefig.bbox": None,
    }
    with matplotlib.rc_context(settings):
        yield


def ink_of(ax: Any) -> str:
    """Return the color of lines and letters that is read on the paper of these axes."""
    face = matplotlib_module("colors").to_rgba(ax.get_facecolor())
    paper = face if face[3] > 0.5 else ax.figure.get_facecolor()
    return INK["dark" if _luminance(paper) < 0.4 else "light"]


def paper_of(ax: Any) -> str:
    """Return the color of paper that the ink of these axes is made for."""
    return PAPER["dark" if ink_of(ax) == INK["dark"] else "light"]


def ink_on(colour: Any) -> str:
    """Return the color of letters that is read on a patch of this color."""
    return INK["dark" if _luminance(colour) < 0.4 else "light"]


def mixed(colour: Any, paper: Any, share: float) -> Any:
    """Return a color thinned by paper: what `alpha` does, without seams where patches meet."""
    to_rgb = matplotlib_module("colors").to_rgb
    return tuple(share * np.array(to_rgb(colour)) + (1 - share) * np.array(to_rgb(paper)))


def _luminance(colour: Any) -> float:
    """Return how light a color looks, from 0 to 1 (gamma is left out: a threshold is all)."""
    red, green, blue, alpha = matplotlib_module("colors").to_rgba(colour)
    return float(alpha * (0.299 * red + 0.587 * green + 0.114 * blue) + (1 - alpha))


def colour_of(place: int) -> str:
    """Return the color of a class or curve; they begin again after the last."""
    return PALETTE[place % len(PALETTE)]


def marker_of(place: int) -> str:
    """Return the shape of the points of a class."""
    return MARKERS[place % len(MARKERS)]


def plain(text: Any) -> str:
    """Return text that is drawn literally: between two dollars Matplotlib would read a formula."""
    return str(text).replace("$", r"\$")


def title(ax: Any, text: str) -> None:
    """Set a title, unless there is one; break it into lines no wider than the axes."""
    if ax.get_title(loc="left") or ax.get_title() or not text:
        return
    size = matplotlib_module("font_manager").FontProperties(
        size=matplotlib_module().rcParams["axes.titlesize"]
    )
    points = ax.get_window_extent().width * 72 / ax.figure.dpi
    width = max(24, int(points / (_WIDTH * size.get_size_in_points())))
    lines = [line for part in text.split("\n") for line in textwrap.wrap(part, width)]
    ax.set_title(plain("\n".join(lines)), loc="left")


def axis_labels(ax: Any, xlabel: str, ylabel: str) -> None:
    """Name the axes, unless their owner has."""
    if not ax.get_xlabel():
        ax.set_xlabel(plain(xlabel))
    if not ax.get_ylabel():
        ax.set_ylabel(plain(ylabel))


def legend_beside(ax: Any, heading: str | None = None, handles: Any = None) -> None:
    """Put the legend next to the data if the layout has space, else at the emptiest location.

    Short names stand to the right, long ones below the axis, whose labels must be there already.
    With very many entries there is no legend: it would be larger than the plot.
    """
    if handles is None:
        handles, _ = ax.get_legend_handles_labels()
    if not handles or len(handles) > _MOST_ENTRIES:
        return
    look: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0)}
    if ax.figure.get_layout_engine() is None:
        look = {"loc": "best", "frameon": True, "framealpha": 0.8}
    elif max(len(handle.get_label()) for handle in handles) > _SHORT:
        look = {"loc": "upper left", **_below(ax), "ncols": 2}
    legend = ax.legend(handles=handles, title=heading, borderaxespad=0.0, **look)
    for mark in legend.legend_handles:  # the points of large data sets may be tiny
        if hasattr(mark, "set_sizes"):
            mark.set_sizes(np.clip(mark.get_sizes(), 26.0, 60.0))
            mark.set_alpha(1.0)
        elif hasattr(mark, "set_markersize"):
            mark.set_markersize(min(mark.get_markersize(), 7.0))


def _below(ax: Any) -> dict[str, Any]:
    """Return the place below the labels of the x axis, however long these are."""
    box = ax.xaxis.get_tightbbox()
    inches = (ax.get_window_extent().y0 - box.y0) / ax.figure.dpi if box is not None else 0.0
    shift = matplotlib_module("transforms").ScaledTranslation(
        0.0, -inches - 0.1, ax.figure.dpi_scale_trans
    )
    return {"bbox_to_anchor": (0.0, 0.0), "bbox_transform": ax.transAxes + shift}


def legend_inside(ax: Any, heading: str | None = None) -> None:
    """Put the legend of curves at the location where it covers them least."""
    handles, _ = ax.get_legend_handles_labels()
    if handles:
        ax.legend(title=heading, loc="best")


def tick_numbers(ax: Any, numbers: Any, most: int = 8) -> None:
    """Label the x axis by some of these integers, whatever its scale."""
    numbers = np.asarray(numbers)
    step = max(1, -(-len(numbers) // most))
    shown = numbers[::-1][::step][::-1]
    ax.set_xticks(shown, [f"{number:d}" for number in shown])
    ax.minorticks_off()


# --- display -------------------------------------------------------------------------------------
#
# The base of all displays: an object that holds data, and draws them on axes.


class Display:
    """Base class of displays.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the drawing.
    figure_ : matplotlib Figure
        The figure of these axes.
    """

    ax_: Any
    figure_: Any

    @contextmanager
    def _drawing(self, ax: Any) -> Iterator[Any]:
        """Give the axes to draw on: those of the caller, or new ones in the style of the library.

        New ones are pyplot's, as those of scikit-learn's displays, so that `plt.show()` shows
        them; with axes of the caller's pyplot is not even imported.
        """
        if ax is None:
            pyplot = matplotlib_module("pyplot")
            with style():
                figure, ax = pyplot.subplots()
                try:
                    yield ax
                except BaseException:  # the caller has no reference to close it
                    pyplot.close(figure)
                    raise
        elif isinstance(ax, matplotlib_module("axes").Axes):
            yield ax
        else:
            raise TypeError(
                f"{type(self).__name__}: ax must be one Axes of Matplotlib or None, got "
                f"{type(ax).__name__}; of an array of axes pass one, such as axes[0]"
            )
        self.ax_, self.figure_ = ax, ax.figure


# --- fitted --------------------------------------------------------------------------------------
#
# Requirements of a display on an estimator: fitted, of a supported kind, and its description.
#
# Displays draw the estimator inside pipelines and searches, on the rows as that estimator sees
# them.

# parameters that change how a solution is found, not which one: left out of titles
_NOT_SHOWN = {
    "cache_size",
    "callback",
    "copy_X",
    "max_iter",
    "n_init",
    "n_jobs",
    "probability",
    "random_state",
    "solver",
    "time_limit",
    "tol",
    "verbose",
    "warm_start",
}
_LONGEST = 40  # letters of a value in a title
# the display that suits an estimator, by the class's own name: drop-ins share it
_SUITS = {
    "SVC": "MarginDisplay",
    "NuSVC": "MarginDisplay",
    "LinearSVC": "DecisionRegionDisplay",
    "SVR": "TubeDisplay",
    "NuSVR": "TubeDisplay",
    "OneClassSVM": "MarginDisplay",
    "EnclosingBall": "MarginDisplay",
    "KernelRidge": "RidgePathDisplay",
    "PCA": "ProjectionDisplay",
    "CCA": "CanonicalPairsDisplay",
    "KMeans": "KernelMatrixDisplay",
    "SpectralClustering": "KernelMatrixDisplay",
    "MultinomialMixture": "TopicsDisplay",
    "Tuned": "TuningDisplay",
    "GridSearchCV": "TuningDisplay",
}


def fitted(display: str, estimator: Any) -> Any:
    """Return the estimator, the pipeline of a model of tables, or raise if it is not fitted."""
    estimator = getattr(estimator, "pipeline", estimator)
    if inspect.isclass(estimator) or not hasattr(estimator, "fit"):
        name = getattr(estimator, "__name__", type(estimator).__name__)
        raise TypeError(f"{display}: needs a fitted estimator, got {name}")
    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise NotFittedError(
            f"{display}: this {type(estimator).__name__} is not fitted; call fit first"
        ) from error
    return estimator


def inner_machine(estimator: Any) -> Any:
    """Return the estimator inside pipelines and searches."""
    if isinstance(estimator, Pipeline):
        return inner_machine(estimator.steps[-1][1])
    inner = getattr(estimator, "best_estimator_", None)
    return estimator if inner is None else inner_machine(inner)


def inner_rows(estimator: Any, X: Any) -> Any:
    """Return rows as the estimator inside pipelines and searches sees them."""
    if isinstance(estimator, Pipeline):
        last = estimator.steps[-1][1]
        return inner_rows(last, estimator[:-1].transform(X) if len(estimator) > 1 else X)
    inner = getattr(estimator, "best_estimator_", None)
    return X if inner is None else inner_rows(inner, X)


def wrong_machine(display: str, needs: str, machine: Any) -> TypeError:
    """Return the error for an unsupported estimator, with a display that supports it."""
    name = type(machine).__name__
    suitable = _SUITS.get(name)
    if suitable is None:
        suitable = "ProjectionDisplay" if hasattr(machine, "transform") else ""
        suitable = "ResidualsDisplay" if is_regressor(machine) else suitable
        decides = is_classifier(machine) or is_outlier_detector(machine)
        suitable = "DecisionRegionDisplay" if decides else suitable
    remedy = f"; {suitable} draws {name}" if suitable and suitable != display else ""
    return TypeError(f"{display}: needs {needs}, got {name}{remedy}")


def described(estimator: Any) -> str:
    """Return the estimator with those parameters that are not at their defaults.

    A kernel given as text is shown in resolved form.
    """
    if isinstance(estimator, Pipeline):
        return ", ".join(described(step) for _, step in estimator.steps)
    inner = getattr(estimator, "best_estimator_", None)
    if inner is not None:
        return described(inner)
    if not hasattr(estimator, "get_params"):
        return type(estimator).__name__
    defaults = inspect.signature(type(estimator)).parameters
    shown = []
    params = estimator.get_params(deep=False)
    in_order = [name for name in defaults if name in params]
    for name in in_order + [name for name in params if name not in defaults]:
        value = params[name]
        known = getattr(estimator, f"{name}_", None) if name.startswith("kernel") else None
        default = defaults[name].default if name in defaults else inspect.Parameter.empty
        if known is not None:
            shown.append(f"{name}={_text(known)}")
        elif name not in _NOT_SHOWN and not _same(value, default):
            shown.append(f"{name}={_text(value)}")
    return f"{type(estimator).__name__}({', '.join(shown)})"


def _same(value: Any, default: Any) -> bool:
    if value is default:  # NaN does not equal itself
        return True
    try:
        return bool(np.all(value == default)) and np.ndim(value) == np.ndim(default)
    except (TypeError, ValueError):
        return False


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, np.ndarray):
        return f"{len(np.ravel(value))} values"
    if hasattr(value, "with_params"):  # a kernel: round its numbers, not those of the fit
        return _cut(_rounded(repr(value)))
    if hasattr(value, "get_params"):
        return described(value)
    return _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _rounded(text: str) -> str:
    """Shorten the numbers of a text to four digits."""
    return re.sub(r"\d+\.\d{4,}(?:e[-+]?\d+)?", lambda found: f"{float(found[0]):.4g}", text)


def labels_of(y: Any, n: int, display: str) -> tuple[Array, Array]:
    """Return the classes, sorted, and the class of each row as its place among them."""
    labels = np.asarray(y).ravel()
    if len(labels) != n:
        raise ValueError(f"{display}: {n} rows, but {len(labels)} labels in y")
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes
