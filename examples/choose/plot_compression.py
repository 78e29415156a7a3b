"""
The compression game
====================

Bob sends an image to Alice and pays for every bit. He may first agree with her on rules that guess
the next pixel, and then sends corrections only. Rules that look at more pixels guess better, but
there are more of them to settle: two pixels need no model, a billion images pay for a large one.
So the size of the best model depends on how much there is to tell, and what tells most briefly also
predicts best.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.special import gammaln

from mercer.plots import style
from mercer.selection import regression_description_length

rng = np.random.default_rng(3)
# pixels that Alice has already: the left neighbour, the upper one, and further ones
SEEN = [(0, 1), (1, 0), (1, 1), (1, -1), (0, 2), (2, 0), (1, 2), (1, -2), (2, 1), (2, -1)]


def image(side):
    """Draw dark and light regions, and flip one pixel in fifty."""
    picture = gaussian_filter(rng.standard_normal((side, side)), 3, mode="wrap") > 0
    return picture ^ (rng.uniform(size=picture.shape) < 0.02)


def bits(picture, pixels):
    """Code each pixel by what followed the same pixels seen so far: half a count to begin with."""
    framed = np.pad(picture, 2)  # what lies outside counts as light
    context = np.zeros(picture.shape, dtype=int)
    for place, (down, right) in enumerate(SEEN[:pixels]):
        there = np.roll(framed, (down, right), axis=(0, 1))[2:-2, 2:-2]
        context += there.astype(int) << place
    dark = np.bincount(context[picture], minlength=2**pixels)
    light = np.bincount(context[~picture], minlength=2**pixels)
    nats = gammaln(dark + light + 1) - gammaln(dark + 0.5) - gammaln(light + 0.5) + np.log(np.pi)
    return nats.sum() / np.log(2)


# %%
# A curve is told in the same way: its degree, its coefficients, and what they leave. Eight points
# pay for four coefficients at most; the more there are, the finer the model that is worth its bits.


def saved(n, degrees):
    """Return the bits a polynomial of each degree saves, a constant being the reference."""
    x = rng.uniform(-1, 1, n)
    y = np.sin(4 * x) + 0.3 * rng.standard_normal(n)
    fits = [np.polynomial.Polynomial.fit(x, y, d)(x) for d in degrees]
    lengths = [regression_description_length(y, f, d + 1) for d, f in enumerate(fits)]
    return lengths[0] - np.array(lengths)


with style():
    figure, axes = plt.subplots(1, 3, figsize=(13.0, 4.2), width_ratios=[0.8, 1.1, 1.1])
    axes[0].imshow(image(64), cmap="gray_r", interpolation="nearest")
    axes[0].set(xticks=[], yticks=[], title="64 times 64 pixels")
    for side in (16, 64, 512):
        picture, pixels = image(side), np.arange(len(SEEN) + 1)
        each = np.array([bits(picture, p) for p in pixels]) / picture.size
        (line,) = axes[1].plot(pixels, each, "o-", ms=4, label=f"{side} times {side} pixels")
        axes[1].plot(each.argmin(), each.min(), "o", ms=11, mfc="none", color=line.get_color())
    axes[1].set(ylim=(0, 1.2), xlabel="pixels that a rule looks at", ylabel="bits a pixel")
    axes[1].set_title("Rules that pay (circles)")
    axes[1].legend()
    for n in (8, 20, 100, 1000):
        degrees = np.arange(min(n - 1, 11))
        each = saved(n, degrees) / n
        (line,) = axes[2].plot(degrees, each, "o-", ms=4, label=f"{n} points")
        axes[2].plot(each.argmax(), each.max(), "o", ms=11, mfc="none", color=line.get_color())
    axes[2].axhline(0, color="#8C8C8C", lw=1)
    axes[2].set(xlabel="degree", ylabel="bits saved a point", ylim=(-0.6, None))
    axes[2].set_title("Polynomials for a noisy sine (circles: picked)")
    axes[2].legend()
plt.show()
