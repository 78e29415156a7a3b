"""Draw docs/images/card.png: seconds on a card beside seconds of others, at the same work.

python -m benchmarks.card.picture

Figures are those of docs/guide/gpu-measured.md, where it says how and when each was found.
Nothing is measured here.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "card.png"
OURS, HOST, THEIRS = "#1f6fb2", "#8bb8dc", "#b9bec6"


class Bar(NamedTuple):
    """Who, and how many seconds it took."""

    who: str
    seconds: float
    color: str


# what is compared, the slowest first
WORKS: dict[str, list[Bar]] = {
    "SVC, MNIST\n60000 x 784, 45 pairs": [
        Bar("scikit-learn, 2 cores", 266.0, THEIRS),
        Bar("scikit-learn-intelex, 2 cores", 29.0, THEIRS),
        Bar("Mercer, 2 cores", 5.5, HOST),
        Bar("Mercer, H200", 0.098, OURS),
    ],
    "SVC, covertype\n92962 x 54, C = 10": [
        Bar("Mercer, 16 cores", 22.0, HOST),
        Bar("Mercer, H200", 0.65, OURS),
    ],
    "Laplacian K\n30000 x 30000, d = 1024": [
        Bar("torch.cdist, H200", 2.389, THEIRS),
        Bar("Mercer, H200", 0.078, OURS),
    ],
    "10 nearest of $10^5$\n$10^6$ rows of 64": [
        Bar("torch, float32, H200", 1.78, THEIRS),
        Bar("Mercer, H200", 0.139, OURS),
    ],
    "K v, Gaussian\n$10^6$ x $10^4$, d = 90": [
        Bar("torch, blocks, H200", 0.194, THEIRS),
        Bar("Mercer, H200", 0.0111, OURS),
    ],
    "nearest of 1024 means\n$8 \\cdot 10^6$ rows of 128": [
        Bar("torch, float32, H200", 0.085, THEIRS),
        Bar("Mercer, H200", 0.0056, OURS),
    ],
}


def spoken(seconds: float) -> str:
    """Return seconds as people say them.

    >>> spoken(266.0), spoken(0.078)
    ('266 s', '78 ms')
    """
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def draw() -> None:
    """Draw a group of bars for each work, on one axis of seconds."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8.2, 6.4), layout="constrained")
    place = 0.0
    for work, bars in WORKS.items():
        middle = place + (len(bars) - 1) / 2
        axes.text(
            -0.02, middle, work, ha="right", va="center", transform=axes.get_yaxis_transform()
        )
        for bar in bars:
            axes.barh(place, bar.seconds, left=0, color=bar.color, height=0.82)
            axes.text(
                1.12 * bar.seconds,
                place,
                f"{spoken(bar.seconds)}  {bar.who}",
                va="center",
                fontsize=9,
            )
            place += 1
        place += 0.7
    axes.set_xscale("log")
    axes.set(xlim=(2e-3, 2e4), yticks=[], xlabel="seconds, the same work, a scale of powers of ten")
    axes.invert_yaxis()
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    draw()
