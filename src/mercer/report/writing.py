"""`render`, `write_report` and `model_card`: a report as text, as a file, and in short."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mercer.files.atomic import write_file
from mercer.report.building import build
from mercer.report.card import to_markdown
from mercer.report.from_models import subject_of
from mercer.report.rendering import to_html


def render(model: Any, *, X: Any = None, y: Any = None, test: Any = None, command: str = "") -> str:
    """Return a report as one HTML page that loads nothing from elsewhere.

    Parameters
    ----------
    model : TableModel, ClusterModel, ProjectionModel, TopicModel, Choice or fitted machine
        What the report is about; models of tables know their rows.
    X : rows or table, optional
        The rows a machine was fitted to. Without them the page has neither data nor pictures. For a
        model that was loaded from a file, which leaves its table out: that table.
    y : array-like, optional
        Their labels or targets. The machine is judged by refitting it without each of five folds,
        of a sample where there are many rows.
    test : (rows, labels or targets), optional
        Other rows to judge a machine by instead.
    command : str
        The command that made the model, to be shown.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.report import render
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> page = render(SVC().fit(X, y), X=X, y=y)
    >>> page[:15], "Certified" in page
    ('<!DOCTYPE html>', True)
    """
    return to_html(build(subject_of(model, X, y, test, command)))


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    X: Any = None,
    y: Any = None,
    test: Any = None,
    command: str = "",
) -> Path:
    """Write a report to a file, whole or not at all.

    Parameters
    ----------
    model : TableModel, ClusterModel, ProjectionModel, TopicModel, Choice or fitted machine
        What the report is about.
    path : path
        The file; one that is there is replaced once the new one is complete.
    X, y, test, command
        As `render` takes them.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.report import write_report
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> machine = KernelRidge(0.1).fit(X, np.sin(X[:, 0]))
    >>> folder = tempfile.mkdtemp()
    >>> write_report(machine, f"{folder}/report.html", X=X, y=np.sin(X[:, 0])).name
    'report.html'
    """
    target = Path(path)
    page = render(model, X=X, y=y, test=test, command=command)
    write_file(target, [page.encode("utf-8")])
    return target


def model_card(
    model: Any, *, X: Any = None, y: Any = None, test: Any = None, command: str = ""
) -> str:
    """Return the report in short, as Markdown, to lie beside the model.

    Parameters
    ----------
    model : TableModel, ClusterModel, ProjectionModel, TopicModel, Choice or fitted machine
        What the card is about.
    X, y, test, command
        As `render` takes them.

    Returns
    -------
    str
        Markdown.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.report import model_card
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> print(model_card(SVC().fit(X, X[:, 0] > 0), X=X, y=X[:, 0] > 0).splitlines()[0])
    # Classifying by y
    """
    return to_markdown(subject_of(model, X, y, test, command))
