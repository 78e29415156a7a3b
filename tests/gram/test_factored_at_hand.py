"""Features that are at hand are those that are written out: to ask for them writes nothing."""

import numpy as np

from mercer.approximation import Nystrom
from mercer.gram import FactoredGram, Need, make_gram
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
X = rng.standard_normal((400, 3))


def test_to_ask_writes_nothing(monkeypatch):
    monkeypatch.setattr("mercer.gram.build.WRITTEN_OUT", 1)
    kernel = Nystrom(20).of(Gaussian(1.0), X)
    gram = make_gram(kernel, X, Need.PASSES)
    assert gram.at_hand is None and "placed" not in vars(gram)
    F = gram.placed
    assert gram.at_hand is F


def test_features_that_are_given_are_at_hand():
    gram = FactoredGram(lambda Z: Z, X)
    assert gram.at_hand is gram.placed
