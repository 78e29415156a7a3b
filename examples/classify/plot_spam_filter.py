"""
Naive Bayes: a spam filter that learns from corrections
=======================================================

Mail arrives a few messages at a time. The filter sorts each, and learns from the owner, who moves
what went to the wrong folder. `BagOfWords` gives every new word a column of its own, and
`NaiveBayes` counts: nothing is ever fitted again, and after each correction the filter is what a
fit to all mail so far would give.

The messages are those of the SMS Spam Collection where its file is at hand; otherwise the
measurements of Spambase, which come with the library, arrive as a stream.
"""

import gzip
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from mercer import BagOfWords, NaiveBayes

HERE = Path(__file__).resolve().parent if "__file__" in globals() else Path.cwd()
TEXTS = HERE.parents[2] / "shared" / "data" / "sms_spam.jsonl.gz"


def messages():
    """Return rows (texts or measurements), whether each is spam, and names of the columns."""
    if TEXTS.exists():
        with gzip.open(TEXTS, "rt", encoding="utf-8") as lines:
            read = [json.loads(line) for line in lines]
        return [one["text"] for one in read], np.array([one["label"] == "spam" for one in read])
    held = np.load(HERE.parent / "data" / "spambase.npz")
    order = np.random.default_rng(0).permutation(len(held["y"]))
    present = held["X"][order] > 0  # which words occur at all: 0/1 columns
    words = [
        name.replace("word_freq_", "").replace("char_freq_", "") for name in held["feature_names"]
    ]
    texts = [" ".join(w for w, there in zip(words, row, strict=True) if there) for row in present]
    return texts, held["y"][order] == 1


texts, spam = messages()

# %%
# Twenty-five messages at a time: sort them, count the errors, learn from the corrections.

BATCH, WINDOW = 25, 800
words, sorter = BagOfWords(token_pattern=r"\S*\w\S*|[!$]"), NaiveBayes(0.1)
wrong = []
for first in range(0, len(texts), BATCH):
    mail, truth = texts[first : first + BATCH], spam[first : first + BATCH]
    if first:
        wrong.append(sorter.predict(words.transform(mail)) != truth)
    counts = words.partial_fit(mail).transform(mail)
    sorter.partial_fit(counts, truth, classes=[False, True])
wrong = np.concatenate(wrong)
print(f"{len(texts)} messages, {words.n_words_} words, {100 * wrong.mean():.1f} % sorted wrongly")
print(f"of the last thousand: {100 * wrong[-1000:].mean():.1f} %")
print(sorter.certificate_)

# %%
# Which words tell, and what the threshold buys. Sliding it from minus to plus infinity draws the
# ROC curve: a careful filter blocks no honest message, and lets more spam through.

names = words.get_feature_names_out()
half = len(texts) // 2
fitted = NaiveBayes(0.1).fit(words.transform(texts[:half]), spam[:half])
odds, truth = fitted.decision_function(words.transform(texts[half:])), spam[half:]
thresholds = np.quantile(odds, np.linspace(0, 1, 400))
caught = np.array([(odds[truth] > theta).mean() for theta in thresholds])
blocked = np.array([(odds[~truth] > theta).mean() for theta in thresholds])

BLUE, ORANGE, INK = "#0072B2", "#D55E00", "#333333"
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
running = np.convolve(wrong, np.ones(WINDOW) / WINDOW, mode="valid")
left.plot(np.arange(len(running)) + WINDOW, 100 * running, color=BLUE)
left.set(xlabel="messages seen", ylabel=f"errors among the last {WINDOW}, %", ylim=(0, None))
left.set_title("It learns as mail arrives", loc="left")

lists = [(sorter.telling(8, True), ORANGE), (sorter.telling(8, False), BLUE)]
shown = [(names[one.attribute], one.log_ratio, colour) for part, colour in lists for one in part]
signs = [1] * len(lists[0][0]) + [-1] * len(lists[1][0])
place = np.arange(len(shown))[::-1]
bars = [sign * ratio for sign, (_, ratio, _) in zip(signs, shown, strict=True)]
middle.barh(place, bars, color=[colour for _, _, colour in shown])
middle.set_yticks(place, [name for name, _, _ in shown], fontsize=8)
middle.axvline(0, color=INK, linewidth=0.8)
middle.set_xlabel("log P(word | spam) - log P(word | rest)")
middle.set_title("The most telling words", loc="left")

right.plot(100 * blocked, 100 * caught, color=BLUE)
for theta, offset in ((0.0, (12, -4)), (5.0, (12, -26))):
    x, y = 100 * (odds[~truth] > theta).mean(), 100 * (odds[truth] > theta).mean()
    right.plot(x, y, "o", color=ORANGE)
    note = f"threshold {theta:g}: {x:.1f} % blocked"
    right.annotate(note, (x, y), textcoords="offset points", xytext=offset, color=INK, va="top")
right.set(xlabel="honest mail blocked, %", ylabel="spam caught, %", xlim=(-0.3, 15), ylim=(0, 101))
right.set_title("What the threshold buys", loc="left")
for ax in (left, middle, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
