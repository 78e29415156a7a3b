"""Spectral clustering against scikit-learn's: whole calls, and embeddings by one residual."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import SpectralClustering as Theirs
from sklearn.manifold import spectral_embedding

from benchmarks.datasets import FOLDER
from benchmarks.harness import Case, Row, as_table, run
from mercer import SpectralClustering
from mercer.gram import SparseGram, scaled
from mercer.kernels import Gaussian
from mercer.problems import cut_values

NOTE = """*Whole call*: kernel matrix, embedding and k-means for both libraries, with the values
of the cuts. *Embedding of a graph*: a graph of 15 neighbors of 50000 samples is given.
scikit-learn computes the embedding alone, Mercer also the clusters. The residual is computed by
the same code for both."""


def letter(n: int) -> Any:
    """Return rows of the letter data, standardised; random ones where it is missing."""
    try:
        X = np.load(FOLDER / "letter.npz")["X_train"][:n].astype(float)
    except OSError:
        X = np.random.default_rng(0).standard_normal((n, 16))
    return (X - X.mean(axis=0)) / X.std(axis=0)


def digits(n: int) -> Any:
    """Return the first 30 principal components of MNIST digits; random ones where it is missing."""
    try:
        X = np.load(FOLDER / "mnist.npz")["X_train"][:n].reshape(n, -1) / 255.0
    except OSError:
        X = np.random.default_rng(0).standard_normal((n, 100)) / np.arange(1, 101)
    X = X - X.mean(axis=0)
    _, V = np.linalg.eigh(X.T @ X)
    return np.ascontiguousarray(X @ V[:, ::-1][:, :30])


class Residual:
    """Judge places of rows by the eigenvector equation of the normalised cut.

    Their span is taken, so that signs, order and scale do not matter.
    """

    def __init__(self, gram: Any) -> None:
        n = gram.shape[0]
        self.degrees = np.asarray(gram @ np.ones(n), dtype=np.float64)
        self.matrix = scaled(gram, self.degrees**-0.5)

    def __call__(self, places: Any) -> str:
        """Return the largest residual of the Ritz vectors."""
        V = np.linalg.qr(places * np.sqrt(self.degrees)[:, None])[0]
        KV = np.asarray(self.matrix @ V)
        values, Y = np.linalg.eigh(V.T @ KV)
        return f"residual {np.linalg.norm(KV @ Y - V @ Y * values, axis=0).max():.1e}"


def _quietly(work: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work()


def whole_call(n: int = 5000, k: int = 5) -> Case:
    """Compare whole calls on a full Gaussian affinity, scikit-learn's degrees for both."""
    X, gamma = letter(n), 1 / 16
    kernel = Gaussian((0.5 / gamma) ** 0.5)
    K = kernel(X)

    def judge(labels: Any) -> str:
        return f"normalized cut {cut_values(K - np.eye(n), labels).normalized:.4f}"

    def ours() -> Any:
        machine = SpectralClustering(k, kernel, self_loops=False, random_state=0)
        return machine.fit(X).labels_

    def theirs() -> Any:
        return Theirs(k, gamma=gamma, random_state=0).fit(X).labels_

    return Case(
        f"SpectralClustering, letter {n}, k = {k}, normalized cut, whole call",
        ours,
        {"scikit-learn": theirs},
        judge,
        {"scikit-learn": 10.0},
        rival_repeats=2,
    )


def neighbour_graph(n: int = 50_000, k: int = 10, neighbors: int = 15) -> Case:
    """Compare embeddings of a graph of neighbours, and judge them by one residual."""
    graph = SpectralClustering(k, neighbors=neighbors, n_init=1, tol=1e-2).fit(digits(n)).graph_

    def ours() -> Any:
        return SpectralClustering(k, "precomputed", n_init=1, random_state=0).fit(graph).embedding_

    def theirs(solver: str, tol: Any) -> Any:
        return _quietly(
            lambda: spectral_embedding(
                graph,
                n_components=k,
                eigen_solver=solver,
                eigen_tol=tol,
                drop_first=False,
                random_state=0,
            )
        )

    rivals = {
        "scikit-learn lobpcg": lambda: theirs("lobpcg", "auto"),
        "scikit-learn lobpcg, tol 1e-5": lambda: theirs("lobpcg", 1e-5),
    }
    try:
        import pyamg  # noqa: F401
    except ImportError:
        pass
    else:
        rivals["scikit-learn amg"] = lambda: theirs("amg", 1e-5)
    return Case(
        f"embedding of a graph of {neighbors} neighbors, mnist {n}, k = {k}, with k-means",
        ours,
        rivals,
        Residual(SparseGram(graph)),
        dict.fromkeys(rivals, 3.0),
        rival_repeats=1,
    )


def with_search(n: int = 50_000, k: int = 10, neighbors: int = 15) -> Case:
    """Compare whole calls, the search for neighbours included."""
    X = digits(n)

    def theirs() -> Any:
        machine = Theirs(
            k,
            affinity="nearest_neighbors",
            n_neighbors=neighbors + 1,
            eigen_solver="lobpcg",
            random_state=0,
            n_jobs=-1,
        )
        return _quietly(lambda: machine.fit(X).labels_)

    return Case(
        f"SpectralClustering, mnist {n}, {neighbors} neighbors, whole call",
        lambda: SpectralClustering(k, neighbors=neighbors, random_state=0).fit(X).labels_,
        {"scikit-learn": theirs},
        goals={"scikit-learn": 3.0},
        repeats=2,
        rival_repeats=1,
    )


def cases() -> list[Case]:
    """Return all comparisons."""
    return [whole_call(), neighbour_graph(), with_search()]


def main() -> list[Row]:
    """Run everything."""
    return [row for case in cases() for row in run(case)]


if __name__ == "__main__":
    print(as_table(main()))
