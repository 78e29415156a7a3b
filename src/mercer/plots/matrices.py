"""The kernel matrix, ordered by class or cluster, and its spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.array_types import Array
from mercer.kernels import Kernel, Precomputed
from mercer.kernels import resolve as resolve_kernel
from mercer.machines.clustering.spectral import SpectralClustering
from mercer.plots.base import (
    DIVERGING,
    SEQUENTIAL,
    Display,
    axis_labels,
    colour_of,
    described,
    fitted,
    ink_of,
    inner_machine,
    inner_rows,
    legend_inside,
    plain,
    title,
    wrong_machine,
)
from mercer.selection.folds import count_rows, take_rows

_MOST_ROWS = 1000  # of a picture: it has no more pixels
_NEGATIVE = 1e-9  # of the largest entry: less is rounding
_MOST_BARS = 40
_ROUNDING = 1e-13  # of the largest eigenvalue


@dataclass(eq=False)
class KernelMatrixDisplay(Display):
    """The kernel matrix as a picture, rows ordered so that classes or clusters lie together.

    A kernel that suits the labels shows bright squares along the diagonal.

    Parameters
    ----------
    matrix : array of shape (n_rows, n_rows)
        Entries in the order of the picture.
    order : int array of shape (n_rows,)
        The row of X that each row of the picture is.
    groups : array of shape (n_groups,)
        The labels, in the order of the picture; empty if there are none.
    sizes : int array of shape (n_groups,)
        Number of rows of each.
    text : str
        The title.

    Attributes
    ----------
    image_ : AxesImage
        The picture.
    colorbar_ : Colorbar or None
        Its scale.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    See Also
    --------
    SpectrumDisplay : Eigenvalues of the same matrix.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer.kernels import Gaussian
    >>> from mercer.plots import KernelMatrixDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> shown = KernelMatrixDisplay.from_kernel(Gaussian(1.0), X, y)
    >>> shown.matrix.shape, shown.groups.tolist(), shown.sizes.tolist()
    ((150, 150), [0, 1, 2], [50, 50, 50])
    """

    matrix: Array
    order: Array
    groups: Array
    sizes: Array
    text: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        order: str = "auto",
        n_clusters: int | str = "eigengap",
        max_rows: int = _MOST_ROWS,
        random_state: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the kernel matrix of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with a kernel; also inside a pipeline or a search.
        X : array-like or table
            Rows; the square matrix for a precomputed kernel.
        y : array-like of shape (n_samples,), optional
            Their labels.
        order : {"auto", "class", "cluster", "rows"}
            By the labels `y`; by clusters: those of the estimator (`labels_`) if X is its training
            data, else of a spectral clustering of the matrix; or in the order of the rows. "auto"
            uses labels if given, then the estimator's clusters, then the order of the rows.
        n_clusters : int or "eigengap"
            Number of clusters, if they must be found.
        max_rows : int
            Of more rows, so many are drawn at random.
        random_state : int
            Seed of that.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        KernelMatrixDisplay
            The display.
        """
        estimator = fitted(cls.__name__, estimator)
        machine = inner_machine(estimator)
        kernel = getattr(machine, "kernel_", None)
        if not isinstance(kernel, Kernel):
            raise wrong_machine(cls.__name__, "an estimator with a kernel", machine)
        rows = inner_rows(estimator, X)
        known = getattr(machine, "labels_", None)
        if known is not None and len(known) != count_rows(rows):
            known = None
        how = _Ordering(order, y, known, n_clusters, max_rows, random_state)
        return cls._made(kernel, rows, how, described(estimator), ax, kwargs)

    @classmethod
    def from_kernel(
        cls,
        kernel: Any,
        X: Any,
        y: Any = None,
        *,
        order: str = "auto",
        n_clusters: int | str = "eigengap",
        max_rows: int = _MOST_ROWS,
        random_state: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the matrix of a kernel; no estimator is needed.

        Parameters
        ----------
        kernel : Kernel or str
            Kernel function; with `Precomputed()`, X is the matrix.
        X, y, order, n_clusters, max_rows, random_state, ax, **kwargs
            As in `from_estimator`.

        Returns
        -------
        KernelMatrixDisplay
            The display.
        """
        kernel = resolve_kernel(kernel, X)
        how = _Ordering(order, y, None, n_clusters, max_rows, random_state)
        return cls._made(kernel, X, how, repr(kernel), ax, kwargs)

    @classmethod
    def _made(
        cls, kernel: Kernel, X: Any, how: _Ordering, text: str, ax: Any, kwargs: dict[str, Any]
    ) -> Self:
        n = count_rows(X)
        rows = how.sample(n, cls.__name__)
        if isinstance(kernel, Precomputed):
            matrix = np.asarray(X, dtype=np.float64)[np.ix_(rows, rows)]
        else:
            matrix = np.asarray(kernel(take_rows(X, rows)), dtype=np.float64)
        labels, what = how.labels(rows, matrix)
        if labels is None:
            place, groups, sizes = np.arange(len(rows)), np.array([]), np.array([], dtype=int)
        else:
            place = np.argsort(labels, kind="stable")
            groups, sizes = np.unique(labels, return_counts=True)
        said = f"{n} rows" if len(rows) == n else f"{len(rows)} of {n} rows, drawn at random"
        text = f"{text}\n{said}{what}"
        shown = cls(matrix[np.ix_(place, place)], rows[place], groups, sizes, text)
        return shown.plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, colorbar: bool = True, cmap: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        colorbar : bool
            Whether to draw a color bar.
        cmap : color map, optional
            None takes one that has its middle at zero where entries have both signs.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        with self._drawing(ax) as axes:
            low, high = float(self.matrix.min()), float(self.matrix.max())
            both = low < -_NEGATIVE * max(abs(low), abs(high))
            limit = max(abs(low), abs(high)) or 1.0
            scale = (-limit, limit) if both else (min(low, 0.0), high)
            self.image_ = axes.imshow(
                self.matrix, cmap=cmap or (DIVERGING if both else SEQUENTIAL),
                vmin=scale[0], vmax=scale[1], interpolation="nearest",
            )  # fmt: skip
            self._mark_groups(axes, both)
            title(axes, self.text)
            self.colorbar_ = None
            if colorbar:
                self.colorbar_ = axes.figure.colorbar(self.image_, ax=axes, label="k(x, x')")
        return self

    def _mark_groups(self, ax: Any, both: bool) -> None:
        if not len(self.groups):
            axis_labels(ax, "row", "row")
            return
        ends = np.cumsum(self.sizes)
        for end in ends[:-1]:
            for line in (ax.axhline, ax.axvline):
                line(end - 0.5, color="#262626" if both else "#FFFFFF", linewidth=0.9)
        middle = ends - self.sizes / 2 - 0.5
        names = [plain(group) for group in self.groups]
        turned = 90 if max(map(len, names)) * len(names) > 40 else 0
        ax.set_xticks(middle, names, rotation=turned)
        ax.set_yticks(middle, names)
        ax.tick_params(length=0)


@dataclass(frozen=True, eq=False)
class _Ordering:
    """How rows of the picture are chosen and ordered."""

    order: str
    y: Any
    known: Any
    n_clusters: int | str
    max_rows: int
    random_state: int

    def sample(self, n: int, display: str) -> Array:
        """Return the rows of the picture."""
        if self.order not in ("auto", "class", "cluster", "rows"):
            raise ValueError(
                f"{display}: order={self.order!r} must be 'auto', 'class', 'cluster' or 'rows'"
            )
        if self.order == "class" and self.y is None:
            raise ValueError(f"{display}: order='class' needs labels, y=")
        if self.y is not None and len(np.asarray(self.y)) != n:
            raise ValueError(f"{display}: {n} rows, but {len(np.asarray(self.y))} labels in y")
        if n <= self.max_rows:
            return np.arange(n)
        rng = np.random.default_rng(self.random_state)
        return np.sort(rng.choice(n, int(self.max_rows), replace=False))

    def labels(self, rows: Array, matrix: Array) -> tuple[Array | None, str]:
        """Return the label of each row and a note on the labels."""
        if self.order in ("auto", "class") and self.y is not None:
            return np.asarray(self.y)[rows], ", ordered by class"
        if self.order in ("auto", "cluster") and self.known is not None:
            return np.asarray(self.known)[rows], ", ordered by cluster"
        if self.order == "cluster":
            # "plain" takes similarities of either sign
            way = "plain" if matrix.min() < 0 else "normalized"
            found = SpectralClustering(self.n_clusters, Precomputed(), normalization=way)
            return found.fit(matrix).labels_, ", ordered by spectral cluster"
        return None, ""


@dataclass(eq=False)
class SpectrumDisplay(Display):
    """Eigenvalues, largest first, or the explained fraction of the variance.

    Parameters
    ----------
    values : array of shape (n_values,)
        Eigenvalues (or ratios, correlations), largest first.
    total : float
        Sum of all values, including missing ones; NaN if fractions have no meaning.
    name : str
        Name of the values.
    text : str
        The title.

    Attributes
    ----------
    bars_ : BarContainer or Line2D
        Values or fractions; a line for very many.
    line_ : Line2D or None
        The shares summed up.
    ax_, figure_ : Axes, Figure
        Axes and figure of the drawing.

    See Also
    --------
    KernelMatrixDisplay : The matrix itself.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import PCA
    >>> from mercer.plots import SpectrumDisplay
    >>> X, _ = load_iris(return_X_y=True)
    >>> shown = SpectrumDisplay.from_estimator(PCA().fit(X))
    >>> shown.shares.round(2).tolist()
    [0.92, 0.05, 0.02, 0.01]
    """

    values: Array
    total: float
    name: str
    text: str = ""

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the spectrum of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted `PCA` or another with `explained_variance_ratio_`, `Whiten`,
            `SpectralClustering`, `FisherDiscriminant` (its ratios) or `CCA` (its correlations);
            inside a pipeline as well.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        SpectrumDisplay
            The display.
        """
        estimator = fitted(cls.__name__, estimator)
        machine = inner_machine(estimator)
        values, total, name = _spectrum(cls.__name__, machine)
        return cls(values, total, name, described(estimator)).plot(ax, **kwargs)

    @classmethod
    def from_kernel(
        cls, kernel: Any, X: Any, *, centred: bool = True, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the eigenvalues of a kernel's matrix.

        Parameters
        ----------
        kernel : Kernel or str
            Kernel function; with `Precomputed()`, X is the matrix.
        X : array-like or table
            Rows.
        centred : bool
            Whether the mean in feature space is subtracted, as principal components do.
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        SpectrumDisplay
            The display.
        """
        kernel = resolve_kernel(kernel, X)
        pre = isinstance(kernel, Precomputed)
        K = np.asarray(X if pre else kernel(X), dtype=np.float64)
        if centred:
            means = K.mean(axis=0)
            K = K - means - means[:, None] + means.mean()
        values = np.linalg.eigvalsh(K)[::-1]
        text = f"{kernel!r}\n{len(K)} rows{', centred' if centred else ''}"
        return cls(values, float(np.trace(K)), "eigenvalue", text).plot(ax, **kwargs)

    @property
    def shares(self) -> Array:
        """The fraction of the total of each value."""
        return np.asarray(self.values / (self.total or 1.0))

    def plot(self, ax: Any = None, *, kind: str = "auto", most: int | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None makes a figure.
        kind : {"auto", "share", "values"}
            Fractions of the total, each and cumulative; or the values themselves without rounding
            errors, on a logarithmic axis if all others are positive and their range is large.
            "auto" uses fractions if they have a meaning.
        most : int, optional
            Number of values shown; None for all.

        Returns
        -------
        self
            With `ax_`, `figure_` and the artists.
        """
        if kind not in ("auto", "share", "values"):
            raise ValueError(f"{type(self).__name__}: kind={kind!r} must be 'share' or 'values'")
        share = kind == "share" or (kind == "auto" and bool(np.isfinite(self.total)))
        if share and not np.isfinite(self.total):
            raise ValueError(
                f"{type(self).__name__}: a {self.name} has no fractions; use kind='values'"
            )
        drawn = (self.shares if share else self.values)[:most]
        if not share:
            drawn = np.where(np.abs(drawn) >= _ROUNDING * self.values[0], drawn, np.nan)
        number = np.arange(1, len(drawn) + 1)
        with self._drawing(ax) as axes:
            if len(drawn) <= _MOST_BARS and share:
                self.bars_ = axes.bar(number, drawn, color=colour_of(0), label="each")
            else:
                look = {"marker": "o", "markersize": 4} if len(drawn) <= _MOST_BARS else {}
                (self.bars_,) = axes.plot(number, drawn, color=colour_of(0), label="each", **look)
            self.line_ = self._draw_sum(axes, number, drawn) if share else None
            if not share and (self.values < -_ROUNDING * self.values[0]).any():
                axes.axhline(0.0, color=ink_of(axes), linewidth=0.8)
            elif not share and np.nanmax(drawn) > 20 * np.nanmin(drawn):
                axes.set_yscale("log")
            elif not share:
                axes.set_ylim(bottom=0.0)
            ylabel = "fraction of the variance" if share else self.name
            axis_labels(axes, "component", ylabel)
            axes.xaxis.get_major_locator().set_params(integer=True)
            title(axes, self.text)
            if share:
                legend_inside(axes)
        return self

    def _draw_sum(self, ax: Any, number: Array, drawn: Array) -> Any:
        (line,) = ax.plot(
            number, np.cumsum(drawn), color=colour_of(1), label="summed up",
            marker="o" if len(drawn) <= _MOST_BARS else None, markersize=4,
        )  # fmt: skip
        ax.set_ylim(min(0.0, float(drawn.min())), 1.04)
        return line


def _spectrum(display: str, machine: Any) -> tuple[Array, float, str]:
    """Return the values of an estimator, their total, and their name."""
    if hasattr(machine, "explained_variance_ratio_"):
        shares = np.asarray(machine.explained_variance_ratio_)
        values = np.asarray(getattr(machine, "eigenvalues_", machine.explained_variance_))
        place = int(np.argmax(shares))
        total = float(values[place] / shares[place]) if shares[place] > 0 else 1.0
        return values, total, "eigenvalue"
    if hasattr(machine, "variances_"):
        return machine.variances_, float(np.sum(machine.variances_)), "variance"
    for attribute, name in (
        ("ratios_", "scatter between classes / within"),
        ("correlations_", "canonical correlation"),
        ("eigenvalues_", "eigenvalue"),
    ):
        if hasattr(machine, attribute):
            return np.asarray(getattr(machine, attribute)), float("nan"), name
    raise wrong_machine(display, "an estimator with eigenvalues, such as PCA", machine)
