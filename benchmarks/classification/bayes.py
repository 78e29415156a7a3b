"""Naive Bayes and Gaussian classes: time of `fit` and `predict` beside scikit-learn's.

python -m benchmarks.classification.bayes             every case
python -m benchmarks.classification.bayes mixed       cases whose name contains the word
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from sklearn.preprocessing import OrdinalEncoder

from benchmarks.harness import Case, Row, as_table, run
from mercer import GaussianClassifier, NaiveBayes

NOTE = """Times of fit and predict together, on the same samples. "right" is the fraction of
training samples classified correctly; it must be the same for both. For mixed tables, scikit-learn
needs a `ColumnTransformer`, an `OrdinalEncoder`, three classifiers, and the sum of their joint
log-probabilities. The priors that were counted twice too often are subtracted."""


def _labels(n: int, k: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, k, n)


def categories(n: int = 100_000, d: int = 50, k: int = 4) -> tuple[Any, Any]:
    """Return integer codes of ten values."""
    y = _labels(n, k)
    drawn = np.random.default_rng(1).integers(0, 8, (n, d))
    return (drawn + (np.arange(d) % 3 == 0) * y[:, None]) % 10, y


def words(n: int = 20_000, d: int = 30_000, k: int = 20) -> tuple[Any, Any]:
    """Return sparse counts, as of a text collection."""
    rng = np.random.default_rng(2)
    X = sparse.random_array((n, d), density=0.003, format="csr", rng=rng)
    X.data = np.ceil(3 * X.data)
    return X, _labels(n, k)


def bits(n: int = 50_000, d: int = 100, k: int = 3) -> tuple[Any, Any]:
    """Return zeros and ones."""
    y = _labels(n, k)
    return (np.random.default_rng(3).random((n, d)) < 0.3 + 0.05 * y[:, None]).astype(float), y


def measurements(n: int = 100_000, d: int = 40, k: int = 3) -> tuple[Any, Any]:
    """Return Gaussian columns."""
    y = _labels(n, k)
    return np.random.default_rng(4).standard_normal((n, d)) + 0.2 * y[:, None], y


def mixed(n: int = 50_000) -> tuple[Any, Any]:
    """Return a data frame of text, measurements and zeros and ones."""
    rng, y = np.random.default_rng(5), _labels(n, 3)
    colours = np.array(["red", "green", "blue", "black", "white", "cyan"], dtype=object)
    columns = {f"c{i}": colours[(rng.integers(0, 5, n) + y) % 6] for i in range(8)}
    columns |= {f"g{i}": rng.standard_normal(n) + 0.2 * y for i in range(8)}
    columns |= {f"b{i}": (rng.random(n) < 0.3 + 0.1 * y).astype(int) for i in range(4)}
    return pd.DataFrame(columns), y


def work_around(frame: Any, y: Any) -> Any:
    """Sort the columns, encode the text, fit three classifiers, add up what they say."""
    kinds = {start: [name for name in frame.columns if name[0] == start] for start in "cgb"}
    encoder = OrdinalEncoder(dtype=np.int64)
    parts = {"c": CategoricalNB(), "g": GaussianNB(), "b": BernoulliNB()}
    sorter = ColumnTransformer(
        [
            (start, encoder if start == "c" else "passthrough", names)
            for start, names in kinds.items()
        ]
    )
    sorted_columns, total, first = sorter.fit_transform(frame), 0.0, 0
    for start, names in kinds.items():
        block = sorted_columns[:, first : first + len(names)]
        first += len(names)
        block = block.astype(np.int64) if start == "c" else block
        total = total + parts[start].fit(block, y).predict_joint_log_proba(block)
    return parts["c"].classes_[np.argmax(total - 2 * parts["c"].class_log_prior_, axis=1)]


def _case(name: str, data: Any, ours: Any, rival: Any, goal: float) -> Case:
    X, y = data

    def fitted(machine: Any) -> Any:
        return lambda: machine.fit(X, y).predict(X)

    rivals = {type(rival).__name__: fitted(rival)}
    judge = _judge(y)
    return Case(name, fitted(ours), rivals, judge, {type(rival).__name__: goal}, repeats=5)


def _judge(y: Any) -> Any:
    return lambda found: f"right {100 * np.mean(found == y):.2f} %"


def cases() -> list[Case]:
    """Return all comparisons."""
    frame, y = mixed()
    return [
        _case(
            "categories 100000 x 50",
            categories(),
            NaiveBayes(kinds="categorical"),
            CategoricalNB(),
            1.0,
        ),
        _case("sparse counts 20000 x 30000", words(), NaiveBayes(), MultinomialNB(), 1.0),
        _case("zeros and ones 50000 x 100", bits(), NaiveBayes(), BernoulliNB(), 1.0),
        _case("measurements 100000 x 40", measurements(), NaiveBayes(), GaussianNB(), 1.0),
        Case(
            "mixed table 50000 x 20",
            lambda: NaiveBayes().fit(frame, y).predict(frame),
            {"ColumnTransformer": lambda: work_around(frame, y)},
            _judge(y),
            {"ColumnTransformer": 3.0},
            repeats=5,
        ),
        _case(
            "Gaussians, one covariance each, 100000 x 40",
            measurements(),
            GaussianClassifier(),
            QuadraticDiscriminantAnalysis(),
            1.0,
        ),
        _case(
            "Gaussians, one covariance, 100000 x 40",
            measurements(),
            GaussianClassifier(shared=True),
            LinearDiscriminantAnalysis("lsqr"),
            1.0,
        ),
    ]


def main(word: str = "") -> list[Row]:
    """Run the cases whose name contains a word."""
    return [row for case in cases() if word in case.name for row in run(case)]


if __name__ == "__main__":
    print(as_table(main(*sys.argv[1:2])))
