"""Find the translation of a caption: CCA on Multi30k, English and German words as two views.

python examples/real/retrieval.py [--pairs 29000]

Needs the Multi30k captions (multi30k.jsonl.gz with fields split, en, de) in the folder given by
--data. Two ways to compare captions: the linear kernel of their words, and a string kernel, which
compares all pieces of two to five letters (many more pieces than captions, so that only the kernel
form of CCA can use them). Fits on training pairs, then ranks the 1000 German test captions for
every English one by the cosine between canonical variates (each multiplied by its correlation).
The penalty is chosen on the validation captions. Recall at 1 and 10; chance is 0.001 and 0.01.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.feature_extraction.text import TfidfVectorizer

from mercer import CCA

HERE = Path(__file__).resolve().parent
RANKS = np.arange(1, 21)
PIECES: dict[str, dict[str, Any]] = {
    "linear kernel of words": {},
    "string kernel": {"analyzer": "char_wb", "ngram_range": (2, 5)},
}
PENALTIES = (1e-3, 3e-4, 1e-4)


def captions(folder: Path) -> dict[str, dict[str, list[str]]]:
    """Read captions by split and language."""
    found: dict[str, dict[str, list[str]]] = {}
    with gzip.open(folder / "multi30k.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            split = found.setdefault(row["split"].split("_")[0], {"en": [], "de": []})
            split["en"].append(row["en"])
            split["de"].append(row["de"])
    return found


def ranks(machine: CCA, X: Any, Y: Any) -> Any:
    """Return the place of the true translation among all, from 0."""
    u, v = (z * machine.correlations_ for z in machine.transform(X, Y))
    u, v = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (u, v))
    similarity = u @ v.T
    return (similarity > similarity.diagonal()[:, None]).sum(axis=1)


def chosen(components: int, views: list[Any], check: list[Any]) -> CCA:
    """Fit with the penalty that finds most translations of the validation captions."""
    machines = [CCA(penalty=p, n_components=components).fit(*views) for p in PENALTIES]
    return max(machines, key=lambda machine: (ranks(machine, *check) < 10).mean())


def rows(texts: Any, pairs: int, options: dict[str, Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Return both views of training, validation and test captions."""
    views: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for language in ("en", "de"):
        weights = TfidfVectorizer(min_df=2, sublinear_tf=True, **options)
        views[0].append(weights.fit_transform(texts["train"][language][:pairs]))
        views[1].append(weights.transform(texts["val"][language]))
        views[2].append(weights.transform(texts["test"][language]))
    return views


def main() -> None:
    """Fit both, print recalls, draw the curve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE.parents[2] / "shared" / "data")
    parser.add_argument("--pairs", type=int, default=4000, help="training pairs")
    parser.add_argument("--components", type=int, default=200)
    parser.add_argument("--picture", type=Path, default=HERE.parents[1] / "docs" / "images")
    asked = parser.parse_args()
    texts, places = captions(asked.data), {}
    for name, options in PIECES.items():
        train, check, new = rows(texts, asked.pairs, options)
        started = time.perf_counter()
        machine = chosen(asked.components, train, check)
        seconds = time.perf_counter() - started
        places[name] = ranks(machine, *new)
        at = {k: (places[name] < k).mean() for k in (1, 10)}
        print(f"{name}: {train[0].shape[1]} and {train[1].shape[1]} columns", flush=True)
        print(f"  penalty {machine.penalty_[0]:g}, {len(PENALTIES)} fits in {seconds:.0f} s")
        print(f"  recall at 1 {at[1]:.3f}, at 10 {at[10]:.3f}")
        print(f"  {machine.certificate_.statement}", flush=True)
    draw(places, asked.picture / "cca-retrieval.png", asked.pairs)


def draw(places: dict[str, Any], file: Path, pairs: int) -> None:
    """Draw recall by how many captions are looked at."""
    figure = Figure(figsize=(6.5, 4), layout="constrained")
    ax = figure.subplots()
    for (name, place), colour in zip(places.items(), ("#999999", "#0072B2"), strict=True):
        recall = [(place < k).mean() for k in RANKS]
        label = f"{name}: {recall[0]:.1%} at 1, {recall[9]:.1%} at 10"
        ax.plot(RANKS, recall, color=colour, linewidth=2, label=label)
    title = f"Translation found among 1000 captions ({pairs} training pairs; chance: 0.1% at 1)"
    ax.set_title(title, size=10, loc="left")
    ax.set(xlabel="captions looked at", ylabel="recall", ylim=(0.85, 1), xlim=(1, 20))
    ax.legend(loc="center right", frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=120)
    print(f"wrote {file}")


if __name__ == "__main__":
    main()
