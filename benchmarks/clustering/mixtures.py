"""Mixtures: time of `fit` at equal likelihood, and perplexity of topics at equal time.

python -m benchmarks.clustering.mixtures             every case
python -m benchmarks.clustering.mixtures topics      cases whose name contains the word
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.mixture import GaussianMixture as Theirs
from sklearn.preprocessing import StandardScaler

from benchmarks.datasets import FOLDER
from benchmarks.harness import Case, Row, as_table, run
from mercer import GaussianMixture, MultinomialMixture
from mercer.machines.base.targets import distinct_rows
from mercer.machines.mixture.gaussian_mixture import SHAPES
from mercer.problems import GaussianMix

BATCH = 512  # documents, for online learning
MIXED = (0.001, 0.01, 0.03, 0.1, 0.3)  # shares of the frequencies of all words
THEIR_NAMES = {"full": "full", "shared": "tied", "diagonal": "diag", "spherical": "spherical"}

NOTE = """Gaussian mixtures: both libraries start from the same Gaussians and stop if an
iteration adds less than 1e-6 to the mean log-likelihood (higher is better). Mercer finds the start
by k-means within its measured time; the rival receives it.

Topics: perplexity at equal time (lower is better). The goal is a perplexity at most that of the
rivals. The data are 20 newsgroups (by date), with words in at least 5 and at most 30 % of the
training documents. Half of the words of each test document, drawn at random, are given. Each
library estimates the proportions with its own `transform`, and the other half is predicted.
Perplexity is exp(- mean log sum_j P(topic j | given) P(word | topic j)), the same formula for all.
Mercer fits first, with its defaults, until it converges. The rivals then get the same time. Batch
methods make as many iterations as fit into it, timed in advance and rounded up. Online methods
process batches of 512 documents until it is over. Their times are therefore Mercer's or slightly
more. Factors of NMF (Kullback-Leibler loss) are scaled to sum to one and mixed with the
frequencies of all words, because NMF gives words zero probability. The weight of this mixture is
the best of five (0.001 to 0.3) on the test words, in favor of NMF. Mercer's default smoothing was
first selected among five settings on these documents (held-out training documents rank the five in
the same order). Latent Dirichlet allocation therefore runs with its own default priors, and with
the priors for the same smoothing. These are one half larger, 0.55 and 0.6, because its variational
updates subtract half a count."""

GAUSSIAN = [  # rows, columns, components, covariance
    (100_000, 10, 10, "full"),
    (20_000, 50, 5, "full"),
    (100_000, 2, 8, "full"),
    (50_000, 20, 10, "diagonal"),
    (50_000, 20, 10, "shared"),
    (50_000, 20, 10, "spherical"),
]


def blobs(n: int, d: int, k: int) -> Any:
    """Draw overlapping Gaussians."""
    rng = np.random.default_rng(0)
    turns, label = 0.7 * rng.standard_normal((k, d, d)), rng.integers(k, size=n)
    noise = np.empty((n, d))
    for j in range(k):
        rows = np.flatnonzero(label == j)
        noise[rows] = rng.standard_normal((len(rows), d)) @ turns[j].T
    return noise + 1.5 * rng.standard_normal((k, d))[label]


def gaussian_case(n: int, d: int, k: int, shape: str) -> Case:
    X = StandardScaler().fit_transform(blobs(n, d, k))
    X = X[distinct_rows(X, np.zeros(n), np.ones(n)).first]  # the order that Mercer takes rows in
    problem = GaussianMix(X, np.ones(n), k, SHAPES[shape](), 1e-6)
    begin = problem.start(np.random.RandomState(0))
    C = begin.covariances
    options = {
        "weights_init": begin.shares,
        "means_init": begin.means,
        "precisions_init": np.linalg.inv(C) if shape in ("full", "shared") else 1.0 / C,
        "tol": 1e-6,
        "max_iter": 1000,
    }

    def ours() -> Any:
        return GaussianMixture(k, covariance=shape, n_init=1, max_iter=1000).fit(X)

    def theirs() -> Any:
        return Theirs(k, covariance_type=THEIR_NAMES[shape], **options).fit(X)

    def judge(fitted: Any) -> str:
        return f"mean log-likelihood {fitted.score(X):.5f}, {fitted.n_iter_} passes"

    name = f"Gaussian mixture {n} x {d}, k = {k}, {shape}"
    return Case(name, ours, {"scikit-learn": theirs}, judge, {"scikit-learn": 2.0}, 3, 1)


def newsgroups() -> tuple[Any, Any, Any]:
    """Return training documents, and the two halves of the test documents."""
    with np.load(FOLDER / "newsgroups20.npz", allow_pickle=False) as data:
        shape = len(data["vocab"])
        train, test = (
            csr_array(
                (
                    data[f"{part}_counts"].astype(float),
                    data[f"{part}_indices"],
                    data[f"{part}_indptr"],
                ),
                shape=(len(data[f"{part}_indptr"]) - 1, shape),
            )
            for part in ("train", "test")
        )
    common = np.asarray((train > 0).sum(axis=0)).ravel()
    kept = np.flatnonzero((common >= 5) & (common < 0.3 * train.shape[0]))
    train, test = csr_array(train[:, kept]), csr_array(test[:, kept])
    given, asked = test.copy(), test.copy()
    given.data = np.random.default_rng(0).binomial(test.data.astype(int), 0.5).astype(float)
    asked.data = test.data - given.data
    given.eliminate_zeros()
    asked.eliminate_zeros()
    return train, given, asked


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return an answer, and the seconds it took."""
    started = time.perf_counter()
    answer = work()
    return answer, time.perf_counter() - started


def online(model: Any, X: Any, budget: float) -> Any:
    """Learn from batches of documents until the time is over."""
    rng, started = np.random.default_rng(0), time.perf_counter()
    while True:
        order = rng.permutation(X.shape[0])
        for first in range(0, len(order), BATCH):
            model.partial_fit(X[order[first : first + BATCH]])
            model.seconds = time.perf_counter() - started
            if model.seconds >= budget:
                model.steps = f"{model.n_batch_iter_ - 1} batches"
                return model


def dirichlet_in(model: Any, X: Any, budget: float) -> Any:
    """Fit with so many iterations as fit into the time, the bound at the end not counted."""
    once = timed(lambda: model.set_params(max_iter=1).fit(X))[1]
    steps = ceil(budget / (0.5 * once))  # the bound takes as long as an iteration
    model, seconds = timed(lambda: model.set_params(max_iter=steps).fit(X))
    model.seconds = seconds
    return model


def factors_in(model: Any, X: Any, budget: float) -> Any:
    """Fit with so many iterations as fit into the time that the start leaves."""
    once = timed(lambda: model.set_params(max_iter=1).fit(X))[1]
    more = timed(lambda: model.set_params(max_iter=11).fit(X))[1]
    steps = 1 + max(0, ceil(10 * (budget - once) / max(more - once, 1e-3)))
    model, seconds = timed(lambda: model.set_params(max_iter=steps).fit(X))
    model.seconds = seconds
    return model


def topics_case(k: int = 20) -> Case:
    train, given, asked = newsgroups()
    common = np.asarray(train.sum(axis=0)).ravel()
    common = common / common.sum()
    rows = np.repeat(np.arange(asked.shape[0]), np.diff(asked.indptr))
    budget = [np.inf]

    def perplexity(shares: Any, table: Any) -> float:
        chance = np.einsum("ek,ek->e", shares[rows], np.ascontiguousarray(table.T)[asked.indices])
        return float(np.exp(-(asked.data @ np.log(chance)) / asked.data.sum()))

    def judge(fitted: Any) -> str:
        shares, seconds = timed(lambda: np.maximum(fitted.transform(given), 1e-12))
        table = fitted.components_
        if isinstance(fitted, NMF):
            shares = shares * table.sum(axis=1)
        shares = shares / shares.sum(axis=1, keepdims=True)
        table = table / table.sum(axis=1, keepdims=True)
        mixed = MIXED if isinstance(fitted, NMF) else (0.0,)
        best = min(perplexity(shares, (1 - s) * table + s * common) for s in mixed)
        steps = getattr(fitted, "steps", f"{fitted.n_iter_} iterations")
        return f"perplexity {best:.0f}, {steps}, transform {seconds:.1f} s"

    def ours() -> Any:
        fitted, budget[0] = timed(lambda: MultinomialMixture(k).fit(train))
        return fitted

    def dirichlet(**options: Any) -> Any:
        return LatentDirichletAllocation(
            k, batch_size=BATCH, total_samples=train.shape[0], random_state=0, **options
        )

    same = {"topic_word_prior": 0.55, "doc_topic_prior": 0.6}
    factors = {"beta_loss": "kullback-leibler", "solver": "mu", "tol": 0.0, "init": "nndsvda"}
    name = "LatentDirichletAllocation"
    rivals = {
        name: lambda: dirichlet_in(dirichlet(), train, budget[0]),
        f"{name}, online": lambda: online(dirichlet(), train, budget[0]),
        f"{name}, online, same smoothing": lambda: online(dirichlet(**same), train, budget[0]),
        "NMF": lambda: factors_in(NMF(k, random_state=0, **factors), train, budget[0]),
    }
    return Case(f"topics, 20 newsgroups, k = {k}", ours, rivals, judge, {}, 1, 1)


def cases() -> list[Any]:
    """Return cases by name, each made when it is run."""
    found = [
        (f"gaussian {n} {d} {k} {s}", lambda n=n, d=d, k=k, s=s: gaussian_case(n, d, k, s))
        for n, d, k, s in GAUSSIAN
    ]
    if (FOLDER / "newsgroups20.npz").exists():
        found.append(("topics", topics_case))
    return found


def main(words: Sequence[str] = ()) -> list[Row]:
    """Run the cases whose name contains one of the words."""
    rows: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rivals that reach their limit of iterations say so
        for name, make in cases():
            if not words or any(word in name for word in words):
                rows += run(make())
    return rows


if __name__ == "__main__":
    print(as_table(main(sys.argv[1:])))
