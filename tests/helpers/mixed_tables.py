"""Small tables of mixed columns with gaps, for the tests of this folder."""

import numpy as np

TOWNS = np.array(["Ulm", "Bern", "Riga", "Oslo"], dtype=object)


def mixed(n=240, seed=0):
    """Return columns by name, and a quantity that depends on some of them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    town, shade = rng.choice(TOWNS, n), rng.choice(np.array(["red", "blue", None]), n)
    quantity = x[:, 0] + 1.5 * (town == "Ulm") - (shade == "red") + 0.3 * rng.normal(size=n)
    gaps = x.copy()
    gaps[rng.random(x.shape) < 0.05] = np.nan
    columns = {"size": gaps[:, 0], "noise": gaps[:, 1], "town": town, "shade": shade}
    return columns, quantity


def labelled(n=240, seed=0):
    """Return such columns with a target of two classes, "sick"."""
    columns, quantity = mixed(n, seed)
    sick = np.where(quantity > 0.2, "yes", "no").astype(object)
    return columns | {"sick": sick}


def measured(n=240, seed=0):
    """Return such columns with a target that is a quantity, "cost"."""
    columns, quantity = mixed(n, seed)
    return columns | {"cost": quantity}
