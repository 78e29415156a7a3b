"""Models that several tests look at; fitted once."""

import numpy as np
import pytest
from report.hostile_names import HOSTILE

import mercer


def rows(n=90, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 4)), rng


@pytest.fixture(scope="session")
def classifier():
    X, rng = rows()
    town = rng.choice(["Ulm", "Bern", "Riga"], len(X))
    sick = np.where(X[:, 0] + (town == "Ulm") + rng.normal(size=len(X)) / 3 > 0, "yes", "no")
    table = {"age": X[:, 0], "size": X[:, 1], "town": town, "flat": np.ones(len(X)), "sick": sick}
    return mercer.fit(table, "sick", kernels=["linear", "gaussian"], test=0.3)


@pytest.fixture(scope="session")
def regression():
    X, rng = rows()
    table = {"a": X[:, 0], "b": X[:, 1], "y": X[:, 0] ** 2 + rng.normal(size=len(X)) / 9}
    return mercer.fit(table, "y", kernels=["linear", "gaussian"], test=0.3)


@pytest.fixture(scope="session")
def hostile():
    X, rng = rows(80)
    labels = np.array([HOSTILE[0], HOSTILE[6], HOSTILE[8]], dtype=object)
    words = np.array(HOSTILE[:10], dtype=object)
    table = {name: rng.normal(size=len(X)) for name in HOSTILE}
    table["words"] = words[rng.integers(len(words), size=len(X))]
    table['t"><b>'] = labels[np.digitize(X[:, 0], [-0.4, 0.4])]
    return mercer.fit(table, 't"><b>', kernels=["linear"], test=0.3)
