"""Make the files in `golden/` anew: models written by LIBSVM, and what it decides with them.

    MERCER_LIBSVM=/path/to/libsvm.so PYTHONPATH=tests python tests/files/libsvm/make_golden.py

The library was built from the source archive of LIBSVM 3.37 (`libsvm_official-3.37.0`) by
`g++ -O2 -fPIC -shared -o libsvm.so cpp-source/svm.cpp`. Each model is trained on the rows of
`libsvm_oracle.sample` with n=24 (80 for one class with rbf), tolerance 1e-3 and -b 1, and written
by `svm_save_model`; the decision values, predictions and probabilities beside it are those of
`svm_predict_values` and `svm_predict_probability` after `svm_load_model`, as Python writes floats.
"""

import json
from pathlib import Path

from helpers.libsvm_oracle import found, options, sample

FOLDER = Path(__file__).parent / "golden"
MODELS = [
    ("c_svc", "linear", 2),
    ("c_svc", "polynomial", 3),
    ("c_svc", "rbf", 4),
    ("c_svc", "precomputed", 3),
    ("nu_svc", "sigmoid", 2),
    ("nu_svc", "rbf", 3),
    ("one_class", "rbf", 2),
    ("one_class", "precomputed", 2),
    ("epsilon_svr", "polynomial", 2),
    ("epsilon_svr", "rbf", 2),
    ("nu_svr", "linear", 2),
    ("nu_svr", "sigmoid", 2),
]


def main():
    libsvm = found()
    assert libsvm is not None, "MERCER_LIBSVM names no LIBSVM of version 3.37 or later"
    FOLDER.mkdir(exist_ok=True)
    for svm_type, kernel, classes in MODELS:
        rbf_class = (svm_type, kernel) == ("one_class", "rbf")  # density marks need rows
        X, y = sample(svm_type, kernel, classes, n=80 if rbf_class else 24)
        path = FOLDER / f"{svm_type}-{kernel}-{classes}.model"
        libsvm.train(X, y, svm_type, kernel, path, probability=1, **options(kernel))
        probability = not svm_type.endswith("svr")
        given = {"classes": classes, "precomputed": kernel == "precomputed"}
        answers = libsvm.predict(path, X, probability=probability, **given)
        names = ("decision_values", "predictions", "probabilities")
        told = {"X": X.tolist(), "y": y.tolist()}
        told |= {name: answer.tolist() for name, answer in zip(names, answers, strict=True)}
        path.with_suffix(".json").write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main()
