"""Advice names parameters that are there: those of the machine that speaks, or of its solver."""

import ast
import functools
import inspect
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import (
    compat,
    data,
    files,
    fitting,
    gram,
    kernels,
    plots,
    problems,
    report,
    selection,
    serve,
    solvers,
    theory,
)
from mercer.compat import sklearn as drop_in
from mercer.theory import growth, is_shattered, vc_dimension

SOURCE = Path(mercer.__file__).parent
NAMED = re.compile(r"\b([a-z][a-z_0-9]*)=(?=['\w\[(-])")  # C=inf, preimage='learned', rank=(...)
ROOMS = (mercer, compat, drop_in, data, files, fitting, gram, kernels, plots, problems, report,
         selection, serve, solvers, theory)  # fmt: skip
# arguments of functions that are no part of the list above, and fields of what they print
ELSEWHERE = {
    "shape", "classes", "sample_weight", "n_samples", "dtype", "method", "threads", "backend",
    "memory", "return_inverse", "f", "c", "key", "n", "m", "b", "d", "k", "p", "o",
}  # fmt: skip


def parameters(thing):
    try:
        return set(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return set()


@functools.cache
def everything_with_a_name():
    """Collect the parameters of all that is public, and of its methods."""
    found = set(ELSEWHERE)
    for room in ROOMS:
        for name in getattr(room, "__all__", dir(room)):
            thing = getattr(room, name)
            found |= parameters(thing) if callable(thing) else set()
            if inspect.isclass(thing):
                for method in vars(thing).values():
                    found |= parameters(method) if callable(method) else set()
    return found


def spoken(tree):
    """Return (line, text) of all that is raised or warned."""
    for node in ast.walk(tree):
        says = isinstance(node, ast.Raise) or (
            isinstance(node, ast.Call)
            and getattr(node.func, "attr", getattr(node.func, "id", ""))
            in ("warn", "refuse", "SolverError")
        )
        if not says:
            continue
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.lineno, part.value


@pytest.mark.parametrize(
    "file", sorted(SOURCE.rglob("*.py")), ids=lambda f: f.relative_to(SOURCE).as_posix()
)
def test_parameters_named_in_errors_and_warnings_exist(file):
    known = everything_with_a_name()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    own = {arg.arg for node in ast.walk(tree) if isinstance(node, ast.arguments) for arg in
           (*node.args, *node.kwonlyargs)}  # fmt: skip
    wrong = [
        f"line {line}: {name}= in {text!r}"
        for line, text in spoken(tree)
        for name in NAMED.findall(text)
        if name not in known | own
    ]
    assert not wrong


TRAINED_BY_TORCH = {"Autoencoder", "VariationalAutoencoder"}


def limited():
    """Return every machine that has a limit of iterations, with a limit of one."""
    for module in (mercer, drop_in):
        for name in module.__all__:
            kind = getattr(module, name)
            if not (inspect.isclass(kind) and hasattr(kind, "fit")):
                continue
            for limit in ("max_iter", "max_epochs"):
                # (the warnings of networks are looked at where there is torch: make test-torch)
                if limit in parameters(kind) and name not in {"MaximumEntropy", *TRAINED_BY_TORCH}:
                    yield kind, limit


@pytest.mark.parametrize(("kind", "limit"), list(limited()), ids=str)
def test_a_limit_that_was_reached_is_named_as_the_machine_names_it(kind, limit):
    rng = np.random.default_rng(0)
    X, y = np.abs(rng.standard_normal((60, 4))), rng.integers(0, 2, 60)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kind(**{limit: 1}).fit(X, X[:, :2] if kind is drop_in.CCA else y)
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            text = str(warning.message)
            for name in ("max_iter", "max_epochs", "tol"):
                assert name in parameters(kind) or not re.search(rf"\b{name}\b", text), text


def test_a_class_of_hypotheses_is_asked_for():
    functions = [lambda x: x > 0, lambda x: x < 0]
    for call in (
        lambda: is_shattered(functions, [[0.0], [1.0]]),
        lambda: growth(functions, 2),
        lambda: vc_dimension(theory.HalfSpaces),
    ):
        with pytest.raises(TypeError, match=r"hypotheses=.*HalfSpaces\(2\).*derive a class from"):
            call()
