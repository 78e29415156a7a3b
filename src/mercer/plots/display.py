"""What every display is: an object that holds what it draws, and draws it on axes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mercer.plots.appearance import matplotlib_module, style


class Display:
    """What every display has.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
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
                except BaseException:  # nobody could close it: it was never handed out
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
