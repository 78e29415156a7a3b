"""Write the source tree into `docs/design.md`: one line per folder, and per family of estimators.

    python docs/house_map.py

The tree stands between two markers. `tests/house/test_map.py` fails if it is out of date.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "mercer"
PAGE = ROOT / "docs" / "design.md"
FIRST = "<!-- made by docs/house_map.py: do not edit -->"
LAST = "<!-- end of the part made by docs/house_map.py -->"

# from the top to the bottom: imports only go down
PURPOSE = {
    "command": "command line",
    "studio": "interactive page in the browser",
    "report": "HTML report of a fit",
    "serve": "predictions over HTTP",
    "files": "model files, LIBSVM, ONNX",
    "plots": "displays in the style of scikit-learn",
    "fitting": "from a table to a model: prepare, select, tune, calibrate",
    "compat": "scikit-learn's names and signatures",
    "testing": "conformance checks for kernels, kernel matrices, solvers and backends",
    "selection": "cross-validation, tuning, kernel selection",
    "theory": "generalization bounds and duality",
    "machines": "estimators, one folder per family:",
    "solvers": "algorithms that several families share",
    "approximation": "Nyström method and random features",
    "gram": "storage of the kernel matrix",
    "kernels": "kernels as expressions",
    "backends": "arithmetic: NumPy, C++, torch",
    "data": "tables: readers, types of columns, preparation",
    "rows": "samples: arrays, sparse, GPU, blocks, Dask",
    "expression": "formulas over pairwise statistics",
    "resources": "settings, memory budget, threads",
    "deadline": "time limit of a fit",
    "progress": "progress bars",
    "arguments": "parameter names of other libraries",
    "array_types": "types of arrays",
    "html": "display in notebooks",
}
FAMILIES = {
    "base": "shared by all estimators: inputs, weights, lazy certificates",
    "blocks": "shared by fits over blocks",
    "bayes": "naive Bayes, Gaussian classifier, Bayes decisions",
    "clustering": "k-means, spectral clustering",
    "compression": "fewer support vectors",
    "correlation": "canonical correlation",
    "decomposition": "PCA, probabilistic PCA, ICA, MDS, whitening",
    "discriminant": "Fisher discriminant",
    "entropy": "maximum entropy",
    "gaussian_process": "Gaussian processes",
    "kernel_learning": "weights of a sum of kernels, one scale per feature",
    "logistic": "logistic regression",
    "mixture": "mixtures of Gaussian, Bernoulli and multinomial distributions",
    "multitask": "Gaussian processes for several targets",
    "neighbors": "nearest neighbors, nearest mean",
    "neural": "autoencoders",
    "perceptron": "perceptron",
    "reinforcement": "reinforcement learning",
    "ridge": "kernel ridge regression",
    "semi_supervised": "label propagation, Laplacian ridge and SVC",
    "svm": "support vector machines",
}
# public modules that only re-export names of the folders
PUBLIC = {"blocks", "certificates", "distributed", "problems", "reinforcement", "streaming"}


def tree() -> str:
    """Return the generated part of the page."""
    lines = ["mercer/"]
    for name, purpose in PURPOSE.items():
        shown = f"{name}/" if (SOURCE / name).is_dir() else f"{name}.py"
        lines.append(f"  {shown:<20} {purpose}")
        if name == "machines":
            lines += [f"    {f'{family}/':<18} {about}" for family, about in FAMILIES.items()]
    return "\n".join([FIRST, "", "```text", *lines, "```", "", LAST])


def replaced(page: str) -> str:
    """Return the page with an up-to-date tree."""
    before, rest = page.split(FIRST, 1)
    return before + tree() + rest.split(LAST, 1)[1]


if __name__ == "__main__":
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
