"""Make the golden files: models kept for ever, which every later release must read.

From `tests/`: ``python -m files.golden``. It writes files that are not there yet, and never touches
one that is: what users have on their disks does not change either.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from files.fitted import Data, fit, rows_for
from files.same import answers
from scipy import sparse

import mercer

FOLDER = Path(__file__).with_name("golden")
NAMES = (
    "SVC",
    "SVC three",
    "SVC ovr",
    "SVC precomputed",
    "SVC sparse",
    "SVC words",
    "SVR",
    "OneClassSVM",
    "EnclosingBall",
    "KernelRidge loo",
    "KernelRidge linear",
    "GaussianProcess",
    "GaussianProcessClassifier",
    "MultiTaskGaussianProcess",
    "LogisticRegression",
    "LogisticRegression stream",
    "PCA",
    "PCA linear",
    "PCA whiten",
    "CCA",
    "FisherDiscriminant",
    "KMeans kernel",
    "SpectralClustering graph",
    "GaussianMixture",
    "MultinomialMixture",
    "ProbabilisticPCA",
    "NearestMean",
    "NearestNeighbors",
    "NaiveBayes",
    "NaiveBayes words",
    "GaussianClassifier",
    "BayesDecision",
    "AxisAlignedRectangle",
    "Perceptron",
    "Perceptron stream",
    "LogShift",
    "Whiten",
    "BagOfWords",
    "MaximumEntropy",
    "MultipleKernel",
    "Tuned",
    "Pipeline",
    "compat.SVC",
    "compat.KernelPCA",
    "compat.KMeans",
    "compat.KNeighborsClassifier",
    "compat.LinearSVC",
)
WITH_TORCH = ("Autoencoder", "VariationalAutoencoder")  # made by tests/with_torch/make_golden.py


def path_of(name: str, ending: str) -> Path:
    """Return where a file is."""
    return FOLDER / f"{name.replace(' ', '-')}.{ending}"


def told(machine: mercer.SVC, rows: object) -> dict[str, np.ndarray]:
    """Return what a machine says of rows, as arrays that need no pickle."""
    found = {}
    for question, values in answers(machine, rows).items():
        plain = values.toarray() if sparse.issparse(values) else np.asarray(values)
        found[question] = plain.astype(str) if plain.dtype == object else plain
    return found


def main() -> None:
    """Write what is missing."""
    FOLDER.mkdir(exist_ok=True)
    data = Data(12, 3, 3)
    for name in NAMES:
        if path_of(name, "mercer").exists():
            continue
        machine = fit(name, data)
        mercer.save(machine, path_of(name, "mercer"))
        np.savez_compressed(path_of(name, "npz"), **told(machine, rows_for(name, data)))


if __name__ == "__main__":
    main()
