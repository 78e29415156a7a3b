"""
Multidimensional scaling: places from distances
===============================================

Distances by road between Italian towns are all that is known; classical scaling draws the map, up
to a turn and a mirror. Roads are no straight lines, so some eigenvalues are negative: no places in
any number of dimensions have exactly these distances. The same for handwritten digits, with three
notions of how far apart two pictures are.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import MDS

TOWNS = ["Rome", "Milan", "Naples", "Turin", "Bari", "Bologna", "Venice", "Genoa"]
KM = np.array(
    [
        [0, 570, 225, 670, 450, 380, 530, 500],
        [570, 0, 770, 140, 880, 215, 270, 145],
        [225, 770, 0, 870, 260, 580, 730, 700],
        [670, 140, 870, 0, 1000, 330, 400, 170],
        [450, 880, 260, 1000, 0, 670, 800, 920],
        [380, 215, 580, 330, 670, 0, 155, 295],
        [530, 270, 730, 400, 800, 155, 0, 390],
        [500, 145, 700, 170, 920, 295, 390, 0],
    ]
)
machine = MDS(2, metric="precomputed").fit(KM)
print(machine.certificate_.statement)
florence = machine.transform([[275, 305, 475, 395, 680, 105, 260, 230]])[0]

# %%
# Turned so that north is up. Florence was not among the towns: it is placed by its distances.

X, digit = load_digits(return_X_y=True)
X, digit = X[:250], digit[:250]
metrics = ["euclidean", "cityblock", "cosine"]
figure, axes = plt.subplots(1, 4, figsize=(15, 3.9), layout="constrained")
north = machine.embedding_[TOWNS.index("Milan")] - machine.embedding_[TOWNS.index("Naples")]
angle = np.arctan2(north[0], north[1]) + np.radians(28)  # Milan is north-west of Naples
turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
places = machine.embedding_ @ turn.T
east = places[TOWNS.index("Bari"), 0] - places[TOWNS.index("Naples"), 0]
mirror = np.array([np.sign(east), 1.0])
places, florence = places * mirror, (turn @ florence) * mirror
axes[0].plot(*places.T, "o", color="#0072B2")
axes[0].plot(*florence, "*", color="#D55E00", markersize=12)
for name, place in zip([*TOWNS, "Florence"], [*places, florence], strict=True):
    axes[0].annotate(name, place, xytext=(4, 4), textcoords="offset points", size=9)
axes[0].set(aspect="equal", title=f"by road: stress {machine.stress_:.3f}", xticks=[], yticks=[])
axes[0].margins(0.2)
for ax, metric in zip(axes[1:], metrics, strict=True):
    scaled = MDS(2, metric=metric).fit(X)
    ax.scatter(*scaled.embedding_.T, c=digit, cmap="tab10", s=9)
    lost = 100 * scaled.negative_share_
    ax.set(
        title=f"{metric}: stress {scaled.stress_:.2f}, {lost:.0f} % negative", xticks=[], yticks=[]
    )
plt.show()
