"""Draw the pictures of docs/guide/autoencoders.md: `python docs/images/draw_autoencoders.py`.

Needs torch, which the build of the pages does not have; in the environment of `make test-torch`.
"""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import PCA, Autoencoder, VariationalAutoencoder

FOLDER = Path(__file__).parent
BATCHES = {"batch_size": 50, "learning_rate": 3e-3, "early_stopping": True, "patience": 30}


def tiles(rows, columns):
    """Return digits as one picture, so many beside each other, with a margin around each."""
    cells = np.pad(rows.reshape(-1, columns, 8, 8), [(0, 0), (0, 0), (1, 1), (1, 1)])
    return np.vstack([np.hstack(list(line)) for line in cells])


def reconstructions(X, target):
    """Draw digits, and what principal components and an autoencoder of the same size keep."""
    rng = np.random.default_rng(0)
    shown = X[rng.choice(len(X), 14, replace=False)]
    pca = PCA(8).fit(X)
    linear = pca.inverse_transform(pca.transform(shown))
    deep = Autoencoder(8, encoder_sizes=(96, 48), max_iter=400, **BATCHES).fit(X)
    lost = deep.certificate_.quantities
    lines = {
        "rows": shown,
        f"8 principal components\n({100 * lost.linear_loss:.0f} % lost)": linear,
        f"autoencoder, 8 numbers\n({100 * lost.held_out_loss:.0f} % lost, held out)": (
            deep.reconstruct(shown)
        ),
    }
    figure, axes = plt.subplots(3, 1, figsize=(9.5, 2.7), layout="constrained")
    for axis, (name, rows) in zip(axes, lines.items(), strict=True):
        axis.imshow(tiles(rows, 14), cmap="gray_r", vmin=0, vmax=1)
        axis.set(xticks=[], yticks=[])
        axis.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
    figure.savefig(target, dpi=130)


def latent_plane(X, digits, target):
    """Draw where digits lie in two latent variables, what is decoded there, and samples."""
    model = VariationalAutoencoder(
        2, likelihood="bernoulli", encoder_sizes=(96,), max_iter=400, **BATCHES
    ).fit(X)
    figure, axes = plt.subplots(1, 3, figsize=(12.5, 4.2), layout="constrained")
    codes = model.transform(X)
    points = axes[0].scatter(*codes.T, c=digits, cmap="tab10", s=6)
    axes[0].legend(*points.legend_elements(), ncols=2, fontsize=7, markerscale=0.6, loc="best")
    axes[0].set(title="posterior means of the digits", xlabel="$z_1$", ylabel="$z_2$")
    side = np.linspace(-2.2, 2.2, 14)
    grid = np.array([[a, b] for b in side[::-1] for a in side])
    axes[1].imshow(tiles(model.decode(grid), 14), cmap="gray_r", extent=(-2.35, 2.35, -2.35, 2.35))
    axes[1].set(title="decoded, over the plane", xlabel="$z_1$", ylabel="$z_2$")
    drawn = model.sample(100, random_state=0, noise=False)
    axes[2].imshow(tiles(drawn, 10), cmap="gray_r")
    axes[2].set(title="samples: none of these was ever written", xticks=[], yticks=[])
    figure.savefig(target, dpi=130)
    print(model.certificate_)


def main():
    """Draw both."""
    digits = load_digits()
    X = digits.data / 16.0
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*iteration limit")
        reconstructions(X, FOLDER / "autoencoder-digits.png")
        latent_plane(X, digits.target, FOLDER / "autoencoder-plane.png")


if __name__ == "__main__":
    main()
