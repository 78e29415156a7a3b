"""Texts: cross-validation of a string kernel against character k-grams and a linear machine."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import svm as theirs
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from benchmarks.harness import Case, Row, run
from mercer import SVC
from mercer.kernels import Spectrum, sequences

K = 4
COST = 10.0

NOTE = """Five folds of a support vector machine on normalized counts of four-letter substrings.
The rival counts once, before the folds, into a table of all substrings (`CountVectorizer`), and
trains `SVC(kernel="linear")` on it. Mercer receives the texts and deletes its counts
between runs."""


def texts(n: int, length: int, words: int = 3000) -> tuple[list[str], Any]:
    """Draw texts of two classes, which differ in how often they use words."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    weights = 1 / np.arange(1, 27)
    lexicon = [
        "".join(rng.choice(letters, size=rng.integers(2, 9), p=weights / weights.sum()))
        for _ in range(words)
    ]
    usual = 1 / np.arange(1, words + 1)
    usual /= usual.sum()
    others = 0.7 * usual + 0.3 * rng.permutation(usual)
    y = rng.integers(0, 2, size=n)
    rows = []
    for label in y:
        drawn = rng.choice(words, size=length // 3, p=others if label else usual)
        rows.append(" ".join(lexicon[i] for i in drawn)[:length])
    return rows, y


def case(n: int, length: int) -> Case:
    rows, y = texts(n, length)

    def ours() -> Any:
        sequences._TABLES.clear()
        return cross_val_score(SVC(Spectrum(K).normalized(), C=COST), rows, y, cv=5)

    def counted() -> Any:
        count = CountVectorizer(analyzer="char", ngram_range=(K, K), lowercase=False)
        features = make_pipeline(count, Normalizer()).fit_transform(rows)
        return cross_val_score(theirs.SVC(kernel="linear", C=COST), features, y, cv=5)

    name = f"5 folds, {n} texts of {length} letters"
    return Case(name, ours, {"counted, scikit-learn": counted}, lambda s: f"score {s.mean():.3f}")


def cases() -> list[Row]:
    """Run all comparisons."""
    return [row for n, length in ((500, 2000), (400, 5000)) for row in run(case(n, length))]


if __name__ == "__main__":
    cases()
