"""Draw docs/images/eigenfaces.png, where olivetti.npz is.

`python -m benchmarks.projection.eigenfaces`
The pictures are those of AT&T Laboratories Cambridge.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import FOLDER, available
from mercer import PCA

_PICTURE = Path(__file__).parents[2] / "docs" / "images" / "eigenfaces.png"
_COUNTS = (2, 5, 10, 20, 40, 80, 240)


def faces() -> Any:
    """Read 400 pictures of 64 x 64 grey values in [0, 1]."""
    with np.load(FOLDER / "olivetti.npz", allow_pickle=False) as data:
        X = data["X"].reshape(len(data["X"]), -1).astype(np.float64)
    return X / X.max()


def main() -> None:
    """Fit by the small side, and show the mean, components and reconstructions."""
    import matplotlib.pyplot as plt

    if not available("olivetti"):
        raise SystemExit(f"no olivetti.npz in {FOLDER}")
    X = faces()
    start = time.perf_counter()
    machine = PCA(n_components=max(_COUNTS)).fit(np.delete(X, _shown(len(X)), axis=0))
    print(f"{X.shape}: {time.perf_counter() - start:.2f} s; {machine.certificate_.statement}")
    figure, axes = plt.subplots(4, 8, figsize=(11, 6.4), layout="constrained")
    _panel(axes[0, 0], machine.mean_, "mean")
    for j, ax in enumerate(axes[:2].flat[1:]):
        share = 100 * machine.explained_variance_ratio_[j]
        _panel(ax, machine.components_[j], f"{j + 1}: {share:.1f} %")
    for row, i in zip(axes[2:], _shown(len(X)), strict=True):
        scores = machine.transform(X[[i]])
        _panel(row[0], X[i], "new face")
        for ax, k in zip(row[1:], _COUNTS, strict=True):
            kept = np.where(np.arange(max(_COUNTS)) < k, scores, 0.0)
            _panel(ax, machine.inverse_transform(kept)[0], f"{k} components")
    figure.savefig(_PICTURE, dpi=110)
    print(_PICTURE)


def _shown(n: int) -> list[int]:
    return [n // 8 + 3, n - n // 5 + 1]


def _panel(ax: Any, picture: Any, title: str) -> None:
    ax.imshow(picture.reshape(64, 64), cmap="gray")
    ax.set_title(title, size=8)
    ax.set(xticks=[], yticks=[])


if __name__ == "__main__":
    main()
