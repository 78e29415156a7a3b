"""Topics: the words that set each apart, and how much of the texts it has."""

from __future__ import annotations

import numpy as np

from mercer.report.page import Block, Figure, Figures, Section, Table
from mercer.report.sections.results.clusters import candidates_figure
from mercer.report.subject import Subject
from mercer.report.svg import bars
from mercer.report.text import clean, count, share

_TOPICS = 40
_WORDS = 10
_CRITERION = "the perplexity of words that were held out: the lower, the better they are foreseen"


def topics(subject: Subject) -> Section | None:
    """Write the section."""
    found = subject.result
    if found is None:
        return None
    shares = np.asarray(found.shares, dtype=np.float64)
    order = np.argsort(-shares, kind="stable")[:_TOPICS]
    sure = (
        float((np.asarray(found.weights).max(axis=1) > 0.9).mean()) if len(found.weights) else 0.0
    )
    lead = (
        f"{count(len(found.weights), 'text')} in {count(len(shares), 'topic')}; {share(sure)} of "
    )
    lead += "them belong to one topic with more than nine tenths."
    drawing = bars(
        "Shares of the topics",
        "; ".join(f"topic {k + 1}: {share(float(shares[k]))}" for k in order[:8]),
        [f"{k + 1}: {_words(found.topics[k], 2)}" for k in order],
        [100 * float(shares[k]) for k in order],
        label="% of the texts",
        said=[share(float(shares[k])) for k in order],
    )
    figures = [Figure("Shares of the topics", drawing, "Each topic with its first two words.")]
    if len(found.candidates) > 1:
        figures.append(candidates_figure(found.candidates, _CRITERION, len(shares), "topics"))
    rows = tuple(
        (f"topic {k + 1}", share(float(shares[k])), _words(found.topics[k], _WORDS)) for k in order
    )
    left = len(shares) - len(rows)
    note = f"And {count(left, 'more topic')}." if left > 0 else ""
    table = Table(("Topic", "Share", "Words"), rows, (1,), title="Words of the topics", note=note)
    blocks: list[Block] = [Figures(tuple(figures)), table]
    return Section("topics", "The topics", lead, tuple(blocks))


def _words(weights: tuple[tuple[str, float], ...], most: int) -> str:
    return ", ".join(clean(word, 24) for word, _ in weights[:most])
