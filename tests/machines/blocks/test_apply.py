"""Answers for blocks: to arrays and to files, the same as those for all rows at once."""

import csv

import numpy as np
import pytest

import mercer
from mercer import PCA, SVC, KernelRidge
from mercer.blocks import ArrayBlocks, blocks_of
from mercer.kernels import Gaussian
from mercer.streaming import decision_function, predict, predict_proba, transform

X = np.random.default_rng(0).standard_normal((120, 3))
WORDS = np.where(X[:, 0] > 0, "up", "down")


def test_every_answer_is_that_of_all_rows():
    blocks = ArrayBlocks(X, rows=50)
    machine = SVC(Gaussian(1.0), C=2.0).fit(X, WORDS)
    np.testing.assert_array_equal(predict(machine, blocks), machine.predict(X))
    np.testing.assert_allclose(decision_function(machine, X), machine.decision_function(X))
    pca = PCA(2, Gaussian(1.0)).fit(X)
    np.testing.assert_allclose(transform(pca, blocks_of(lambda: [X])), pca.transform(X))
    with pytest.raises(AttributeError, match="no predict_proba"):
        predict_proba(KernelRidge().fit(X, X[:, 0]), X)


def test_answers_go_where_they_are_asked_to(tmp_path):
    machine, blocks = PCA(2).fit(X), ArrayBlocks(X, rows=50)
    out = np.empty((120, 2))
    assert transform(machine, blocks, out=out) is out
    np.testing.assert_array_equal(out, machine.transform(X))
    path = transform(machine, blocks_of(lambda: [X[:70], X[70:]]), out=tmp_path / "scores.npy")
    np.testing.assert_array_equal(np.load(path), machine.transform(X))
    machine = SVC("linear").fit(X, WORDS)
    labels = predict(machine, blocks, out=tmp_path / "labels.csv")
    with open(labels, newline="") as file:
        assert [row[0] for row in csv.reader(file)] == machine.predict(X).tolist()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["labels.csv", "scores.npy"]


def test_what_does_not_fit_is_refused(tmp_path):
    machine = PCA(2).fit(X)
    with pytest.raises(ValueError, match="shape"):
        transform(machine, X, out=np.empty((120, 3)))
    with pytest.raises(ValueError, match="121 rows"):
        transform(machine, X, out=np.empty((121, 2)))
    with pytest.raises(ValueError, match="end in"):
        transform(machine, X, out=tmp_path / "scores.xml")
    with mercer.config(memory=1000), pytest.raises(mercer.MemoryBudgetError, match="out="):
        transform(machine, ArrayBlocks(X, rows=10))
    with pytest.raises(KeyboardInterrupt):
        transform(machine, blocks_of(interrupted), out=tmp_path / "scores.npy")
    assert not list(tmp_path.iterdir())


passes = []


def interrupted():
    passes.append(1)
    yield X
    if len(passes) > 2:
        raise KeyboardInterrupt
    yield X
