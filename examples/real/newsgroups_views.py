"""Two halves of a document: CCA on 20 newsgroups, the words of each document divided at random.

python examples/real/newsgroups_views.py [--documents 4000]

Needs the 20 newsgroups word counts (newsgroups20.npz) in the folder given by --data. Words of each
document are dealt to two views. What both halves agree on is what the document is about: fitted on
training documents, canonical variates find the other half of a new document, and show its group,
which was not told. Beside them, principal components of the same rows.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from mercer import CCA, PCA, NearestNeighbors

HERE = Path(__file__).resolve().parent
GROUPS = {"comp.": "#0072B2", "rec.": "#D55E00", "sci.": "#009E73", "talk.": "#CC79A7"}


def counts(data: Any, part: str, rows: Any) -> Any:
    """Read documents as sparse rows of word counts."""
    values = data[f"{part}_counts"], data[f"{part}_indices"], data[f"{part}_indptr"]
    shape = (len(values[2]) - 1, len(data["vocab"]))
    return sparse.csr_array(tuple(v.astype(np.int64) for v in values), shape=shape)[rows]


def halves(X: Any, seed: int) -> tuple[Any, Any]:
    """Deal the occurrences of each word to two views."""
    first = X.copy()
    first.data = np.random.default_rng(seed).binomial(X.data.astype(int), 0.5)
    second = X - first
    for half in (first, second):
        half.eliminate_zeros()
    return sparse.csr_array(first, dtype=float), sparse.csr_array(second, dtype=float)


def found(u: Any, v: Any) -> Any:
    """Return the place of the right half among all, from 0."""
    u, v = (z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12) for z in (u, v))
    similarity = u @ v.T
    return (similarity > similarity.diagonal()[:, None]).sum(axis=1)


def main() -> None:
    """Fit, print what is found, draw both spaces."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE.parents[2] / "shared" / "data")
    parser.add_argument("--documents", type=int, default=4000)
    parser.add_argument("--components", type=int, default=60)
    parser.add_argument("--picture", type=Path, default=HERE.parents[1] / "docs" / "images")
    asked = parser.parse_args()
    data = np.load(asked.data / "newsgroups20.npz", allow_pickle=False)
    rng = np.random.default_rng(0)
    train = rng.permutation(len(data["y_train"]))[: asked.documents]
    new = rng.permutation(len(data["y_test"]))[:1000]
    weights = TfidfTransformer(sublinear_tf=True)
    known = [weights.fit_transform(half) for half in halves(counts(data, "train", train), 1)]
    fresh = [weights.transform(half) for half in halves(counts(data, "test", new), 2)]
    y, z = data["y_train"][train], data["y_test"][new]
    machine = CCA(n_components=asked.components, penalty=1e-3).fit(*known)
    spaces = {"canonical variates": [u * machine.correlations_ for u in machine.transform(*fresh)]}
    plain = PCA(n_components=asked.components).fit(known[0])
    spaces["principal components"] = [plain.transform(half) for half in fresh]
    training = {
        "canonical variates": machine.transform(known[0]) * machine.correlations_,
        "principal components": plain.transform(known[0]),
    }
    shown = {}
    for name, (u, v) in spaces.items():
        place = found(u, v)
        label = NearestNeighbors(n_neighbors=15).fit(training[name], y).score(u, z)
        shown[name] = (u, (place < 1).mean(), (place < 10).mean(), label)
        print(
            f"{name}: other half first {shown[name][1]:.3f}, in ten {shown[name][2]:.3f}; ", end=""
        )
        print(f"group by 15 neighbours {label:.3f}", flush=True)
    print(machine.certificate_.statement)
    draw(shown, z, data["class_names"], asked.picture / "newsgroups-views.png")


def draw(shown: Any, z: Any, names: Any, file: Path) -> None:
    """Draw new documents in the second and third direction of each space."""
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    for ax, (title, (u, first, ten, label)) in zip(
        figure.subplots(1, 2), shown.items(), strict=True
    ):
        # by direction, not length: long documents lie far out
        plane = (u / np.linalg.norm(u, axis=1, keepdims=True))[:, 1:3]
        for prefix, colour in GROUPS.items():
            rows = np.array([str(names[c]).startswith(prefix) for c in z])
            ax.scatter(*plane[rows].T, s=9, color=colour, label=f"{prefix}*", alpha=0.7)
        text = f"other half found first {first:.0%}, in ten {ten:.0%}; group right {label:.0%}"
        ax.set_title(f"{title}\n{text}", size=10, loc="left")
        ax.set(xlabel="second", ylabel="third", xticks=[], yticks=[])
        ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    figure.savefig(file, dpi=110)
    print(f"wrote {file.name}")


if __name__ == "__main__":
    main()
