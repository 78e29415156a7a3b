"""The filter that learns from labels as they come."""

import numpy as np
import pytest

from mercer.fitting import TextFilter

SPAM = ["win money now", "cheap money offer", "win a prize now", "offer prize cheap"]
HAM = ["lunch at noon", "see you at lunch", "the meeting is at noon", "see the notes"]


def stream(n=60):
    rng = np.random.default_rng(0)
    for k in range(n):
        yield (str(rng.choice(SPAM)), "spam") if k % 2 else (str(rng.choice(HAM)), "ham")


@pytest.mark.parametrize("method", ["naive_bayes", "perceptron"])
@pytest.mark.parametrize("vocabulary", ["growing", "hashing"])
def test_mistakes_end(method, vocabulary):
    mail = TextFilter(["ham", "spam"], method=method, vocabulary=vocabulary)
    assert mail.answer("anything").label == "ham"
    wrong = [mail.learn(text, label).label != label for text, label in stream()]
    assert mail.mistakes == sum(wrong) == sum(mail.mistakes_by_label.values())
    assert mail.seen == 60
    assert not any(wrong[-20:])
    said = mail.answer("money prize")
    assert said.label == "spam"
    assert said.score > 0
    assert mail.mistake_rate == mail.mistakes / 60
    assert "mistakes in 60 texts" in str(mail)


def test_three_classes():
    mail = TextFilter(["b", "a", "c"])
    for _ in range(3):
        for label in "abc":
            mail.learn(f"word{label} other", label)
    assert [mail.answer(f"word{label}").label for label in "abc"] == ["a", "b", "c"]


def test_the_bound_of_novikoff():
    mail = TextFilter(["ham", "spam"], method="perceptron")
    for text, label in stream():
        mail.learn(text, label)
    assert mail.bound(0.5).value >= mail.mistakes
    with pytest.raises(ValueError, match="perceptron"):
        TextFilter(["a", "b"]).bound(1.0)
    with pytest.raises(ValueError, match="requires a learned text"):
        TextFilter(["a", "b"], method="perceptron").bound(1.0)


def test_what_is_refused():
    with pytest.raises(ValueError, match="at least two"):
        TextFilter(["ham"])
    with pytest.raises(ValueError, match="at least two"):
        TextFilter(["ham", "ham"])
    with pytest.raises(ValueError, match="method"):
        TextFilter(["a", "b"], method="oracle")
    mail = TextFilter(["a", "b"])
    with pytest.raises(ValueError, match="label='c'"):
        mail.learn("text", "c")
    with pytest.raises(TypeError, match="str"):
        mail.answer(3)
    assert mail.seen == 0


def test_a_label_not_seen_yet_is_not_impossible():
    learner = TextFilter(["ham", "spam"])
    learner.learn("cheap pills now", "spam")
    assert learner.answer("cheap pills now").label == "spam"
    assert learner.answer("cheap pills now").score < 10
