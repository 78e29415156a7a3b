import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from mercer import PCA, SVC, MultinomialMixture
from mercer.plots import TopicsDisplay

WORDS = ["cat", "dog", "bond", "stock", "internationalisation"]
COUNTS = np.random.default_rng(0).poisson([[6, 5, 1, 0, 2], [0, 1, 5, 7, 1]] * 10)


def axes():
    return Figure(layout="constrained").subplots()


def test_words_are_the_most_frequent_of_each_topic():
    machine = MultinomialMixture(2).fit(COUNTS)
    shown = TopicsDisplay.from_estimator(machine, WORDS, n_words=3, ax=axes())
    order = np.argsort(-machine.weights_)
    expected = [machine.top_words(3, np.array(WORDS))[topic] for topic in order]
    assert shown.words.tolist() == [list(line) for line in expected]
    for line, topic in enumerate(order):
        chances = np.sort(machine.components_[topic])[::-1][:3]
        assert np.allclose(shown.chances[line], chances)
        drawn = [text.get_text() for text in shown.texts_[line]]
        assert [word.rstrip("…") for word in drawn] == [w[: len(d.rstrip("…"))] for w, d in zip(
            shown.words[line], drawn, strict=True)]  # fmt: skip
        assert max(map(len, drawn)) <= 13
    ticks = [text.get_text() for text in shown.ax_.get_yticklabels()]
    assert ticks == [f"{100 * machine.weights_[topic]:.0f} %" for topic in order]


def test_names_come_from_the_steps_before():
    texts = ["cat dog cat", "dog cat", "bond stock", "stock stock bond"] * 3
    machine = make_pipeline(CountVectorizer(), MultinomialMixture(2)).fit(texts)
    shown = TopicsDisplay.from_estimator(machine, n_words=2, ax=axes())
    assert {frozenset(line) for line in shown.words.tolist()} == {
        frozenset({"cat", "dog"}),
        frozenset({"bond", "stock"}),
    }
    other = LatentDirichletAllocation(2, random_state=0).fit(COUNTS)
    drawn = TopicsDisplay.from_estimator(other, WORDS, ax=axes())
    assert drawn.weights is None and np.allclose(drawn.chances.sum(axis=1), 1.0)


def test_topics_that_are_refused():
    machine = MultinomialMixture(2).fit(COUNTS)
    with pytest.raises(ValueError, match="needs the words, feature_names="):
        TopicsDisplay.from_estimator(machine)
    with pytest.raises(ValueError, match="2 words in feature_names, but 5 columns"):
        TopicsDisplay.from_estimator(machine, ["a", "b"])
    with pytest.raises(ValueError, match="n_words=0 must be"):
        TopicsDisplay.from_estimator(machine, WORDS, n_words=0)
    labels = np.arange(20) % 2
    with pytest.raises(TypeError, match="got SVC; MarginDisplay draws SVC"):
        TopicsDisplay.from_estimator(SVC().fit(COUNTS, labels), WORDS)
    with pytest.raises(TypeError, match="got PCA"):
        TopicsDisplay.from_estimator(PCA(2).fit(COUNTS), WORDS)
