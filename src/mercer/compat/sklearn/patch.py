"""Put Mercer's classes in the place of scikit-learn's, and take them out again."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any

# the public module of scikit-learn that has the class, by the name of the class
MODULES = {
    "BernoulliNB": "sklearn.naive_bayes",
    "CCA": "sklearn.cross_decomposition",
    "CategoricalNB": "sklearn.naive_bayes",
    "ComplementNB": "sklearn.naive_bayes",
    "GaussianMixture": "sklearn.mixture",
    "GaussianNB": "sklearn.naive_bayes",
    "KMeans": "sklearn.cluster",
    "KNeighborsClassifier": "sklearn.neighbors",
    "KernelPCA": "sklearn.decomposition",
    "KernelRidge": "sklearn.kernel_ridge",
    "LinearDiscriminantAnalysis": "sklearn.discriminant_analysis",
    "LinearSVC": "sklearn.svm",
    "LinearSVR": "sklearn.svm",
    "LogisticRegression": "sklearn.linear_model",
    "MultinomialNB": "sklearn.naive_bayes",
    "NuSVC": "sklearn.svm",
    "NuSVR": "sklearn.svm",
    "OneClassSVM": "sklearn.svm",
    "QuadraticDiscriminantAnalysis": "sklearn.discriminant_analysis",
    "SVC": "sklearn.svm",
    "SVR": "sklearn.svm",
    "SpectralClustering": "sklearn.cluster",
}

_originals: dict[str, Any] = {}  # of the classes that are swapped now


def patch(names: Iterable[str] | str | None = None, *, verbose: bool = True) -> None:
    """Let scikit-learn's public modules give Mercer's classes from now on.

    Every ``from sklearn.svm import SVC`` and every ``sklearn.svm.SVC`` that runs after this call
    gets the class of `mercer.compat.sklearn`. A name that was imported before stays what it was:
    call this first. To call it twice is to call it once.

    Parameters
    ----------
    names : iterable of str or str, optional
        Which classes; all that there are, if left out.
    verbose : bool, default=True
        Whether to write one line for each class on the standard error stream.

    Examples
    --------
    >>> from mercer.compat.sklearn import patch, unpatch
    >>> patch(verbose=False)
    >>> from sklearn.svm import SVC
    >>> SVC.__module__.split(".")[0]
    'mercer'
    >>> unpatch()
    >>> from sklearn.svm import SVC
    >>> SVC.__module__.split(".")[0]
    'sklearn'
    """
    for name in _known(names):
        if name in _originals:
            continue
        home = import_module(MODULES[name])
        _originals[name] = getattr(home, name)
        setattr(home, name, _ours(name))
        if verbose:
            where = f"{MODULES[name]}.{name}"
            print(f"mercer: {where} runs on mercer.compat.sklearn.{name}", file=sys.stderr)


def unpatch(names: Iterable[str] | str | None = None) -> None:
    """Restore scikit-learn's own classes.

    Modules of scikit-learn that were imported meanwhile get them as well. What a program imported
    under its own names stays: import it again.

    Parameters
    ----------
    names : iterable of str or str, optional
        Which classes; all that are swapped, if left out.

    Examples
    --------
    >>> from mercer.compat.sklearn import unpatch
    >>> unpatch()  # nothing is swapped, nothing happens
    """
    theirs = [m for n, m in list(sys.modules.items()) if n.split(".")[0] == "sklearn"]
    for name in _known(names):
        if name not in _originals:
            continue
        original, ours = _originals.pop(name), _ours(name)
        for module in theirs:
            for key in [k for k, value in vars(module).items() if value is ours]:
                setattr(module, key, original)


def _known(names: Iterable[str] | str | None) -> list[str]:
    """Return the names that are asked for, and refuse others."""
    asked = list(MODULES) if names is None else [names] if isinstance(names, str) else list(names)
    wrong = [name for name in asked if name not in MODULES]
    if wrong:
        raise ValueError(f"patch: names has {wrong[0]!r}, must be among {', '.join(MODULES)}")
    return asked


def _ours(name: str) -> Any:
    return getattr(import_module("mercer.compat.sklearn"), name)
