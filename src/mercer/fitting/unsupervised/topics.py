"""What texts are about."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline

from mercer.array_types import Array
from mercer.data import Kind, Table, check
from mercer.fitting.phases import Phases
from mercer.fitting.program import expression_of
from mercer.fitting.rows.sources import read_table
from mercer.fitting.steps import certificate_of
from mercer.fitting.unsupervised.common import settings_of
from mercer.fitting.unsupervised.models import TopicModel
from mercer.machines import BagOfWords, MultinomialMixture

_NUMBERS = (2, 3, 5, 8, 12, 20)
_COMMON = 0.5  # of the texts: words in more of them tell little
_FEW_TEXTS = 50  # below, a share of them is too few to judge by
_DEFAULT = 5  # topics where nothing can be judged
_ENOUGH = 0.01  # a number of topics is taken if more lower the perplexity by no more than this
_SHOWN = 10  # words of a topic


def topics(
    texts: Any,
    column: str | None = None,
    *,
    topics: int | None = None,
    stop_words: Any = "common",
    random_state: int = 0,
) -> TopicModel:
    """Find what texts are about: topics are lists of words that come together.

    Parameters
    ----------
    texts : list of str, or a table or path
        Texts, or a table with a column of them.
    column : str or None
        Which column; None takes the one of kind text.
    topics : int or None
        How many. None takes the fewest that are about as good as any at predicting half of the
        words of texts held out from the other half.
    stop_words : {"common", "english"}, list of str or None
        Words to leave out: those in more than half of the texts, scikit-learn's English ones,
        these, or none.
    random_state : int
        The seed.

    Returns
    -------
    TopicModel
        Words of each topic, and the topics of each text.

    Examples
    --------
    >>> import mercer
    >>> kitchen, sky = "salt pepper oil salt", "rain wind snow rain"
    >>> found = mercer.topics([kitchen, sky] * 20, topics=2, stop_words=None)
    >>> sorted(sorted(word for word, _ in topic[:3]) for topic in found.topics)
    [['oil', 'pepper', 'salt'], ['rain', 'snow', 'wind']]
    """
    phases = Phases(None, None)
    with phases.phase("check", "texts are read"):
        table, name, rows = _texts(texts, column)
        findings = check(table)
    with phases.phase("prepare", "words are counted"):
        words = _counter(rows, stop_words)
        counts = words.fit_transform(rows)
        notes = _said(rows, words, counts, stop_words)
    with phases.phase("choose", "numbers of topics are compared"):
        number, candidates, why = _number(counts, topics, random_state)
    with phases.phase("train", "topics are found"):
        machine = MultinomialMixture(number, random_state=random_state).fit(counts)
    with phases.phase("certify", "the answer is certified"):
        certificate = certificate_of(machine)
    names = words.get_feature_names_out()
    return TopicModel(
        Pipeline([("prepare", words), ("machine", machine)]), table[[name]].schema, findings,
        certificate, (*notes, why), _program(table.source, name, words, machine),
        settings_of(table[[name]], random_state, phases), table,
        topics=_top_words(machine, counts, names), shares=np.asarray(machine.weights_),
        weights=np.asarray(machine.transform(counts)), candidates=candidates,
    )  # fmt: skip


def _texts(texts: Any, column: str | None) -> tuple[Table, str, list[str]]:
    """Return the table, which column has the texts, and the texts; gaps are empty texts."""
    plain = isinstance(texts, list | tuple) or getattr(texts, "ndim", 2) == 1
    if plain:
        if not len(texts) or not all(isinstance(one, str) for one in texts):
            raise TypeError("topics: texts must be strings, at least one, or a table")
        column = column or "text"
        table = Table.of({column: list(texts)}, kinds={column: "text"})
    else:
        table = read_table(texts, {}, ())
    found = [name for name, kind in table.kinds.items() if kind is Kind.TEXT]
    if column is None and len(found) != 1:
        raise ValueError(
            f"topics: the table has {len(found)} columns of text ({', '.join(found[:5])}); name "
            "one by column="
        )
    name = found[0] if column is None else column
    if name not in table.columns or table[name].dtype != object:
        raise ValueError(f"topics: column={name!r} is no column of words of the table")
    return table, name, ["" if one is None else str(one) for one in table[name].tolist()]


def _counter(rows: list[str], asked: Any) -> BagOfWords:
    """Return what counts words: with as many columns as there are words to count."""
    left_out = asked
    if isinstance(asked, str) and asked == "common":
        found = BagOfWords(binary=True)
        share = np.asarray(found.fit_transform(rows).sum(axis=0)).ravel() / len(rows)
        left_out = sorted(w for w, j in found.vocabulary_.items() if share[j] > _COMMON) or None
    number = len(BagOfWords(stop_words=left_out).fit(rows).vocabulary_)
    if not number:
        raise ValueError("topics: no text has a word that counts; see stop_words")
    return BagOfWords(stop_words=left_out, n_features=number)


def _said(rows: list[str], words: BagOfWords, counts: Any, asked: Any) -> list[str]:
    empty = int((np.asarray(counts.sum(axis=1)).ravel() == 0).sum())
    notes = [f"{len(rows)} texts, {len(words.vocabulary_)} different words."]
    if asked == "common" and words.stop_words:
        shown = ", ".join(words.stop_words[:8])
        notes.append(
            f"{len(words.stop_words)} words in more than {_COMMON:.0%} of the texts were left out: "
            f"{shown}{', ...' if len(words.stop_words) > 8 else ''}."
        )
    if empty:
        notes.append(f"{empty} texts have no word that counts.")
    return notes


def _number(
    counts: Any, asked: int | None, seed: int
) -> tuple[int, tuple[tuple[int, float], ...], str]:
    """Choose the number of topics by how well half of the words of new texts are predicted."""
    if asked is not None:
        return int(asked), (), f"{asked} topics, as asked for."
    n = counts.shape[0]
    if n < _FEW_TEXTS:
        number = min(_DEFAULT, n)
        return number, (), f"{number} topics: {n} texts are too few to compare numbers."
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    test, train = np.sort(order[: n // 5]), np.sort(order[n // 5 :])
    given, rest = _halves(counts[test], rng)
    found = []
    for number in _NUMBERS:
        machine = MultinomialMixture(number, random_state=seed).fit(counts[train])
        found.append((number, float(machine.perplexity(rest, given=given))))
    least = min(value for _, value in found)
    best = next(number for number, value in found if value <= least * (1 + _ENOUGH))
    why = (
        f"{best} topics: the fewest whose perplexity on the other half of the words of "
        f"{len(test)} texts held out is within {_ENOUGH:.0%} of the least ({least:.4g})."
    )
    return best, tuple(found), why


def _halves(counts: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Divide the words of each text at random."""
    whole = sparse.csr_array(counts)
    part = rng.binomial(whole.data.astype(np.int64), 0.5).astype(np.float64)
    given = sparse.csr_array((part, whole.indices, whole.indptr), shape=whole.shape)
    rest = sparse.csr_array((whole.data - part, whole.indices, whole.indptr), shape=whole.shape)
    return given, rest


def _top_words(
    machine: Any, counts: Any, names: Array
) -> tuple[tuple[tuple[str, float], ...], ...]:
    """Return the words that are frequent in a topic and more so than in all texts."""
    overall = np.asarray(counts.sum(axis=0)).ravel() + 1e-9
    overall = overall / overall.sum()
    found = []
    for chances in np.asarray(machine.components_):
        weight = chances * np.log(np.maximum(chances / overall, 1e-300))
        order = np.argsort(-weight, kind="stable")[:_SHOWN]
        found.append(tuple((str(names[j]), float(chances[j])) for j in order if weight[j] > 0))
    return tuple(found)


def _program(source: str, name: str, words: BagOfWords, machine: Any) -> str:
    lines = [
        "from sklearn.pipeline import Pipeline",
        "from mercer import BagOfWords, MultinomialMixture",
        *(["from mercer.data import read"] if source else []),
        "",
        f"table = read({source!r})" if source else "# table: the Table that was given",
        f"texts = [text or '' for text in table[{name!r}].tolist()]",
        "model = Pipeline([",
        f'    ("prepare", {expression_of(words)}),',
        f'    ("machine", {expression_of(machine)}),',
        "])",
        "model.fit(texts)",
    ]
    return "\n".join(lines) + "\n"
