"""
Multinomial mixture: topics of texts
====================================

The documentation strings of Python's standard library are short texts about many things. Eight
topics over their words are found, and texts that were not in the fit are folded in.
"""

import importlib
import inspect

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from mercer import MultinomialMixture
from mercer.plots import TopicsDisplay, style

MODULES = """argparse array ast asyncio base64 bisect calendar cmath codecs collections configparser
contextlib copy csv datetime decimal difflib email.message fileinput fractions ftplib functools glob
gzip hashlib heapq html http.client http.cookiejar imaplib inspect io itertools json locale logging
math mimetypes multiprocessing operator os os.path pathlib pickle platform poplib queue random re
sched select shutil signal smtplib socket socketserver sqlite3 ssl statistics string struct
subprocess tarfile tempfile textwrap threading time tokenize traceback unittest urllib.parse
urllib.request uuid wave weakref xml.dom.minidom zipfile""".split()


def texts_of(name):
    """Return the documentation strings of a module, its functions, classes and methods."""
    module, texts = importlib.import_module(name), []
    for _, thing in inspect.getmembers(module):
        if inspect.isclass(thing) or inspect.isroutine(thing):
            texts.append(inspect.getdoc(thing))
        if inspect.isclass(thing):
            texts += [inspect.getdoc(m) for _, m in inspect.getmembers(thing, inspect.isroutine)]
    return [text for text in texts if text and len(text) > 120]


texts = sorted({text for name in MODULES for text in texts_of(name)})
words = CountVectorizer(stop_words="english", min_df=8, max_df=0.15, token_pattern=r"[a-zA-Z]{3,}")
counts = words.fit_transform(texts)
names = words.get_feature_names_out()
topics = MultinomialMixture(8, n_init=5).fit(counts)
print(f"{counts.shape[0]} texts, {counts.shape[1]} words; {topics.certificate_}")
for share, top in zip(topics.weights_, topics.top_words(9, names), strict=True):
    print(f"{share:5.0%}  {' '.join(top)}")

# %%
# A text is a blend of topics: each of its words has its own.

new = [
    "Open the file in binary mode and return the path of the directory it was written to.",
    "Connect to the server at this host and port, and send the message over the socket.",
    "Return the date and time in the local timezone, or None when the year is out of range.",
]
blends = topics.transform(words.transform(new))

order = np.argsort(-topics.weights_)
with style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.6), width_ratios=[2.4, 1])
    TopicsDisplay.from_estimator(topics, names, ax=left)
    image = right.imshow(blends[:, order].T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    right.set_yticks(range(8), [f"topic {i + 1}" for i in range(8)], size=8)
    right.set_xticks(range(3), ["files", "network", "dates"])
    right.set_title("Three new texts, folded in", loc="left", size=10)
    for (line, column), value in np.ndenumerate(blends[:, order].T):
        if value > 0.05:
            colour = "white" if value > 0.5 else "black"
            right.text(column, line, f"{value:.0%}", ha="center", va="center", color=colour, size=8)
plt.show()
