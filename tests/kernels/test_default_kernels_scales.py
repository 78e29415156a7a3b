"""Names without brackets take their scale from the data, within formulas too."""

import numpy as np
import pandas as pd
import pytest

from mercer import SVC
from mercer.kernels import Gaussian, Linear, ParseError, parse, resolve

X = np.random.default_rng(0).normal(size=(30, 3)) * [1.0, 10.0, 100.0]


def test_a_name_in_a_formula_is_scaled_as_it_is_alone():
    alone = resolve("gaussian", X)
    assert resolve("gaussian + linear", X) == alone + Linear()
    assert resolve("2 * exp(rbf * linear)", X) == resolve(f"2 * exp({alone!r} * linear)")


def test_brackets_keep_the_defaults_of_the_class():
    assert resolve("gaussian() + linear", X) == Gaussian() + Linear()
    assert parse("gaussian + linear") == Gaussian() + Linear()
    assert resolve("gaussian + linear") == Gaussian() + Linear()


def test_on_some_columns_their_variance_counts():
    assert resolve("gaussian[1] + linear", X) == resolve("gaussian", X[:, [1]]).on([1]) + Linear()
    both = resolve("(gaussian + linear)[0:2]", X)
    assert both == (resolve("gaussian", X[:, :2]) + Linear()).on([0, 1])


def test_names_of_columns_are_found():
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    expected = resolve("gaussian", X[:, [1]]).on(["b"])
    assert resolve("gaussian[b]", table) == expected
    y = X[:, 1] > 0
    assert SVC("gaussian[b]").fit(table, y).kernel_ == expected


def test_weights_count():
    w = np.arange(30)
    assert resolve("rbf + linear", X, w) == resolve("rbf", X, w) + Linear()


@pytest.mark.parametrize("text", ["rbf(0.5)", "rbf(0.5) + poly(3)", "rbf(gamma=2) * laplace(1)"])
def test_other_libraries_names_in_formulas(text):
    assert "Gaussian(scale=0.5)" in repr(resolve(text, X))


@pytest.mark.parametrize("text", ["rfb", "rfb + linear", "2 * rbff(1)"])
def test_misspelt_names_get_a_suggestion(text):
    with pytest.raises(ParseError, match="did you mean 'rbf'"):
        resolve(text, X)
