"""Whatever is wrong with a model file is said with its place."""

from pathlib import Path

import numpy as np
import pytest
from files.libsvm.model_fuzz import GOLDEN, fuzz

from mercer.files.libsvm import LibsvmFormatError, read_libsvm_model
from mercer.files.libsvm.model import parse_model

TWO = b"""svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 2
rho 0.25
label 7 -3
nr_sv 1 1
SV
1 1:0.5 3:2 
-1 2:1e-3 
"""  # noqa: W291


def test_a_model_is_read():
    model = parse_model(TWO)
    assert model.labels.tolist() == [7, -3]
    assert model.support_vectors.tolist() == [[0.5, 0.0, 2.0], [0.0, 0.001, 0.0]]
    assert (model.gamma, model.rho.tolist(), model.n_features) == (0.5, [0.25], 3)
    x = np.array([[0.1, 0.2, 0.3]])
    direct = sum(
        c * np.exp(-0.5 * np.square(x[0] - v).sum())
        for c, v in zip((1, -1), model.support_vectors, strict=True)
    )
    np.testing.assert_allclose(model.decision_values(x), direct - 0.25, rtol=1e-14)
    assert parse_model(TWO.replace(b"\n", b"\r\n")).rho.tolist() == [0.25]


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "words"),
    [
        (b"c_svc", b"d_svc", 1, 10, "not one of c_svc"),
        (b"rbf", b"rbg", 2, 13, "not one of linear"),
        (b"gamma 0.5", b"gamma 0,5", 3, 7, "not a number"),
        (b"gamma 0.5", b"gamma nan", 3, 7, "not a number"),
        (b"gamma 0.5", b"gamma 1_0", 3, 7, "not a number"),
        (b"gamma 0.5", b"gamma 1e999", 3, 7, "out of range"),
        (b"gamma 0.5", b"gamma -1", 3, None, "negative"),
        (b"gamma 0.5", b"gamma 1 2", 3, None, "one value"),
        (b"gamma 0.5\n", b"", 8, None, "gamma is missing"),
        (b"gamma 0.5", b"gama 0.5", 3, 1, "unknown"),
        (b"gamma 0.5", b"svm_type c_svc", 3, 1, "twice"),
        (b"gamma 0.5", b"", 3, None, "empty line"),
        (b"nr_class 2", b"nr_class 3", 6, None, "rho has 1 values, not 3"),
        (b"nr_class 2", b"nr_class 1", 4, None, "is invalid for"),
        (b"nr_class 2", b"nr_class 99999999", 4, None, "is invalid for"),
        (b"nr_class 2", b"nr_class 2.5", 4, 10, "32-bit integer"),
        (b"total_sv 2", b"total_sv 3", 8, None, "adds up to 2"),
        (b"nr_sv 1 1", b"nr_sv 3 -1", 8, None, "adds up to 2"),
        (b"label 7 -3", b"label 7 7", 7, None, "twice"),
        (b"label 7 -3", b"label 7 4294967296", 7, 9, "32-bit"),
        (b"rho 0.25", b"rho 0.25\nprobA 1", 7, None, "without the other"),
        (b"rho 0.25", b"rho 0.25\nprob_density_marks 1", 7, None, "has 1 values, not 10"),
        (b"SV\n", b"SW\n", 9, 1, "unknown"),
        (b"-1 2:1e-3 \n", b"", 9, None, "1 lines follow"),
        (b"1 1:0.5 3:2", b"1 3:0.5 1:2", 10, 9, "column 1 comes after column 3"),
        (b"1 1:0.5 3:2", b"1 1:0.5 1:2", 10, 9, "column 1 comes after column 1"),
        (b"1 1:0.5 3:2", b"1 0:0.5 3:2", 10, 3, "counted from 1"),
        (b"1 1:0.5 3:2", b"1 1:0.5 3:x", 10, 11, "not a number"),
        (b"1 1:0.5 3:2", b"1 1:0.5 3", 10, 9, "not column:value"),
        (b"1 1:0.5 3:2", b"1 1:0.5 3:2:4", 10, 11, "not a number"),
        (b"1 1:0.5 3:2", b"1 1:0.5 99999999999:2", 10, 9, "32-bit"),
        (b"1 1:0.5 3:2", b"1 1:1e999", 10, 5, "out of range"),
        (b"1 1:0.5 3:2", b"inf 1:1", 10, 1, "not a number"),
        (b"1 1:0.5 3:2", b"", 10, None, "0 values"),
    ],
)
def test_errors_name_line_and_column(old, new, line, column, words):
    with pytest.raises(LibsvmFormatError, match=words) as caught:
        parse_model(TWO.replace(old, new, 1), "a.model")
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"a.model, line {line}")


def test_files_that_are_no_models(tmp_path):
    for text in (b"", b"\n", b"PK\x03\x04", b"\x00" * 100, TWO[:100]):
        with pytest.raises(LibsvmFormatError):
            parse_model(text)
    with pytest.raises(FileNotFoundError):
        read_libsvm_model(tmp_path / "none")


def test_precomputed_rows_are_numbers_from_one():
    given = TWO.replace(b"kernel_type rbf\ngamma 0.5", b"kernel_type precomputed")
    given = given.replace(b"1:0.5 3:2", b"0:4").replace(b"2:1e-3", b"0:2")
    model = parse_model(given)
    assert model.support_vectors.tolist() == [4, 2]
    assert model.n_features == 4
    K = np.arange(8.0).reshape(2, 4)
    np.testing.assert_allclose(model.decision_values(K), K[:, 3] - K[:, 1] - 0.25)
    for wrong in (b"0:0", b"1:4", b"0:1.5", b"0:1 1:2"):
        with pytest.raises(LibsvmFormatError):
            parse_model(given.replace(b"0:4", wrong))


def test_columns_that_no_support_vector_has():
    model = parse_model(TWO, n_features=5)
    assert model.support_vectors.shape == (2, 5)
    with pytest.raises(ValueError, match="n_features"):
        parse_model(TWO).decision_values(np.zeros((1, 5)))
    with pytest.raises(ValueError, match="reads column 3"):
        parse_model(TWO, n_features=2)


def test_a_large_column_number_takes_no_memory():
    model = parse_model(TWO.replace(b"3:2", b"2000000000:2"))
    assert model.n_features == 2_000_000_000
    assert model.support_vectors.nnz == 3


def test_mutated_files_are_read_or_refused():
    texts = [path.read_bytes() for path in GOLDEN]
    counts = fuzz(texts, count=1500, seed=17)
    assert counts["refused"] > 0.5 * 1500
    assert counts["read"] > 0
    assert Path(GOLDEN[0]).exists()
