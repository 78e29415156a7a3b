"""Kernels from text: what is read, where errors point, and that nothing else ever happens."""

import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mercer.kernels import (
    AllSubsets,
    Bilinear,
    ChiSquared,
    Constant,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    ParseError,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    Subsequence,
    exp,
    parse,
    polynomial,
)


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("linear", Linear()),
        ("  Linear ( ) ", Linear()),
        ("LINEAR", Linear()),
        ("gaussian(2)", Gaussian(2)),
        ("gaussian(scale=.5)", Gaussian(0.5)),
        ("gaussian([1, 2.5, 1e-3])", Gaussian([1, 2.5, 1e-3])),
        ("rational_quadratic(alpha=2, scale=3)", RationalQuadratic(2, 3)),
        ("RationalQuadratic(2, scale=3)", RationalQuadratic(2, 3)),
        ("all_subsets + chi_squared(2)", AllSubsets() + ChiSquared(2)),
        ("matern(nu=inf)", Matern(np.inf)),
        ("matern(float('inf'))", Matern(np.inf)),
        ("sigmoid(1, -0.5)", Sigmoid(1, -0.5)),
        ("subsequence(3, decay=0.9)", Subsequence(3, 0.9)),
        ("bilinear([[2, 1], [1, 2]])", Bilinear([[2, 1], [1, 2]])),
        (
            "gaussian(2) + 0.5 * polynomial(2)[age, income]",
            Gaussian(2) + 0.5 * Polynomial(2).on(["age", "income"]),
        ),
        ("linear[0:3]", Linear().on([0, 1, 2])),
        ("linear[0, 2:4, -1, name]", Linear().on([0, 2, 3, -1, "name"])),
        ("linear['a b', \"c\"]", Linear().on(["a b", "c"])),
        ("linear.on([0, 1]).normalized()", Linear().on([0, 1]).normalized()),
        ("linear.on('age')", Linear().on("age")),
        ("exp(0.1 * linear)", exp(0.1 * Linear())),
        ("normalized(polynomial(3, offset=2))", Polynomial(3, 2).normalized()),
        ("polynomial(linear, [1, 0, 2])", polynomial(Linear(), [1, 0, 2])),
        ("polynomial(linear, coefficients=[1, 2])", polynomial(Linear(), [1, 2])),
        ("(linear + 1) ** 3", (Linear() + 1) ** 3),
        ("linear ** 2 * laplacian", Linear() ** 2 * Laplacian()),
        ("2 * linear ** 2", 2 * Linear() ** 2),
        ("2 * 3 * linear", 6 * Linear()),
        ("1 + 2 + linear", 3 + Linear()),
        ("linear * (laplacian + gaussian)", Linear() * (Laplacian() + Gaussian())),
        ("constant(2) + 1", Constant(2) + 1),
        ("linear\n+ gaussian", Linear() + Gaussian()),
        ("gaussian(2,)", Gaussian(2)),
        ("gaussian(2 * 3)", Gaussian(6)),
    ],
)
def test_texts(text, kernel):
    assert parse(text) == kernel


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("", 0, "a kernel or a number is expected"),
        ("gausian(2)", 0, "did you mean 'gaussian'"),
        ("linear + polinomial(2)", 9, "did you mean 'polynomial'"),
        ("xyzzy", 0, "there are .*linear"),
        ("gaussian(-2)", 0, "scale=-2 must be"),
        ("gaussian(2", 10, "',' is expected"),
        ("gaussian(2))", 11, "not expected"),
        ("linear linear", 7, "'linear' is not expected"),
        ("linear - gaussian", 7, "subtracted"),
        ("-1 * linear", 3, "negative"),
        ("linear + -2", 7, "negative"),
        ("linear ** 0.5", 7, "root"),
        ("linear ** gaussian", 10, "a number is expected"),
        ("2 ** 3", 0, "a kernel is expected"),
        ("2", 0, "constant\\(c\\)"),
        ("gaussian(width=2)", 0, "width"),
        ("gaussian(scale=2, 3)", 18, "without a name come first"),
        ("linear(3)", 0, "argument"),
        ("linear[]", 7, "a number is expected"),
        ("linear[1.5]", 7, "an integer"),
        ("linear[3:1]", 7, "3:1 is not a range"),
        ("linear[0:99999999999]", 7, "not a range"),
        ("linear[0", 8, "']' is expected"),
        ("linear.scaled_by(2)", 7, "only .on"),
        ("linear ? 2", 7, "'\\?' is unexpected"),
        ("linear @ linear", 7, "is unexpected"),
        ("__import__('os')", 0, "no kernel"),
        ("exp(2)", 0, "a kernel is needed"),
        ("normalized(2)", 0, "takes a kernel"),
        ("float('nan') * linear", 13, "nan"),
        ("linear['a]", 7, "is unexpected"),
        ("2[0]", 0, "a kernel is expected"),
        ("gaussian([1, 'a'])", 0, "numbers only"),
        ("gaussian([[1], [2, 3]])", 0, "numbers only"),
        ("(" * 500 + "linear" + ")" * 500, 40, "nested deeper"),
        ("linear" + "[0]" * 500, 6 + 39 * 3, "nested deeper"),
        ("bilinear(" + "[" * 500, 9 + 39, "nested deeper"),
        ("linear" + ".normalized()" * 30, 6 + 10 * 13 + 1, "more than 300000 terms"),
        ("polynomial(" * 9 + "linear" + ", [1, 1, 1, 1, 1, 1, 1, 1])" * 9, 33, "more than 300000"),
        ("linear + " * 9000 + "linear", 20000, "longer than"),
        ("9" * 5000 + " * linear", 0, "digits"),
    ],
)
def test_errors_point_at_the_place(text, position, words):
    with pytest.raises(ParseError, match=words) as caught:
        parse(text)
    assert caught.value.position == position
    assert caught.value.text == text


def test_the_mark_stands_under_the_character():
    with pytest.raises(ParseError) as caught:
        parse("gaussian(2) + 0.5 * polynomal(2)[age, income]")
    lines = str(caught.value).splitlines()
    assert lines[0] == "there is no kernel 'polynomal'; did you mean 'polynomial'?"
    assert lines[1][lines[2].index("^") :].startswith("polynomal")
    with pytest.raises(ParseError) as caught:
        parse("linear + " * 50 + "nope" + " + linear" * 50)
    lines = str(caught.value).splitlines()
    assert lines[1][lines[2].index("^") :].startswith("nope")
    assert len(lines[1]) < 100


def test_errors_pickle():
    with pytest.raises(ParseError) as caught:
        parse("nope")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.position) == (str(caught.value), 0)


WORDS = [
    *("linear", "gaussian", "polynomial", "matern", "bilinear", "exp", "normalized", "constant"),
    *("anova", "all_subsets", "spectrum", "precomputed", "inf", "float", "scale", "degree", "nope"),
    *"()[],.:=+-*",
    *("**", " ", "0", "1", "2", "0.5", "1e400", "1e-400", "-3", "9" * 30, "'a'", '"b"', "on", "\\"),
    *("scale=", "[0]", "(2)", "([1, 2])", ".on([0])", ".normalized()", "é", "²", "\x00", "'\\x'"),
]


@settings(max_examples=500, deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=25).map("".join)))
@example("polynomial(1e400)")
@example("bilinear([[1e308, 1e308], [1e308, 1e308]])")
@example("matern(1e-400)")
@example("linear['\\N{x}']")
@example("linear * 1e300 * 1e300")
@example("linear(scale=1, scale=2)")
@example("exp()")
@example("float('x') * linear")
@example("linear*2" * 2000)
@example("linear" + "*2*linear" * 2000)
def test_any_text_is_a_kernel_or_a_parse_error(text):
    try:
        kernel = parse(text)
    except ParseError as error:
        assert 0 <= error.position <= len(text)
        assert str(error).splitlines()[-1].endswith("^")
    else:
        assert isinstance(kernel, Kernel)
        assert parse(repr(kernel)) == kernel
        hash(kernel)


@pytest.mark.parametrize("text", [None, 3, b"linear"])
def test_only_text_is_read(text):
    with pytest.raises(TypeError):
        parse(text)
