"""Files that are not what they should be are refused, with the reason, and nothing is run."""

from __future__ import annotations

import io
import json
import pickle
import sys
import tracemalloc
import zipfile
from hashlib import sha256
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
import safetensors.numpy
from files.fitted import TINY, fit
from files.mutations import Model, run, the_watch

import mercer
from mercer.approximation import Nystrom, RandomFeatures
from mercer.files.container import MOST_HEADER
from mercer.files.schema import RECORDS
from mercer.files.schema.records import check_fields
from mercer.kernels import Gaussian, Polynomial

DATA = TINY


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.mercer"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A file of a few kilobytes."""
    path = tmp_path_factory.mktemp("files") / "small.mercer"
    mercer.save(fit("SVC", DATA), path)
    return path.read_bytes()


def refused(path, data, reason):
    path.write_bytes(data)
    with pytest.raises(mercer.ModelFormatError, match=reason) as refusal:
        mercer.load(path)
    assert str(refusal.value).startswith(str(path))


def test_every_truncation_is_refused(small, path):
    for length in range(0, len(small), 3):
        refused(path, small[:length], ".")


def test_a_flipped_bit_anywhere_is_refused(small, path):
    rng = np.random.default_rng(0)
    for place in range(0, len(small), 3):  # the script of the mutations looks at all
        data = bytearray(small)
        data[place] ^= 1 << int(rng.integers(8))
        refused(path, bytes(data), ".")


@pytest.mark.slow
def test_short_run_of_the_mutations(tmp_path):
    counts = run(700, seed=5, folder=str(tmp_path))
    assert not [said for said in counts if said.startswith("FOUND")]
    assert counts["refused"] > 400


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"abc", "cut short, or no model file: it has 3 bytes"),
        (pickle.dumps(DATA.X), "a pickle, which can run any code"),
        (pickle.dumps({"a": 1}, protocol=0), "no model file"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5"),
        (b"\x08\x09\x12\x07mercer1:" + bytes(50), "ONNX"),
        (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", "gzip"),
        (b"svm_type c_svc\nkernel_type rbf\n", "LIBSVM"),
        (b'{"machine": "SVC"}', "JSON"),
        (bytes(100), "it has no header"),
        (np.random.default_rng(0).bytes(4096), "no model file"),
    ],
)
def test_other_contents_are_refused_by_content(data, reason, path):
    refused(path, data, reason)


def test_archives_and_tensors_of_others_are_refused(path, tmp_path):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("schema.json", "{}")
    refused(path, held.getvalue(), "a zip archive")
    joblib.dump(fit("SVC", DATA), tmp_path / "model.joblib", compress=3)
    refused(path, (tmp_path / "model.joblib").read_bytes(), "zlib|pickle")
    refused(path, safetensors.numpy.save({"a": DATA.X}), "no metadata")
    refused(path, safetensors.numpy.save({"a": DATA.X}, {"format": "pt"}), "no model of Mercer")


def test_any_reader_of_safetensors_opens_ours(small, path):
    path.write_bytes(small)
    found = safetensors.numpy.load_file(path)
    machine = mercer.load(path)
    assert np.array_equal(found["SVC.support_vectors_"], machine.support_vectors_)


# --- headers that lie, all digests right ----------------------------------------------------------


def change(small, path, reason, how):
    model = Model(small)
    how(model, model.tree["machine"]["record"][1])
    refused(path, model.data(), reason)


def first(model, name):
    return next(held for tensor, held in model.tensors.items() if tensor.endswith(name))


LIES = {
    "counts": (
        "support vectors of classes",
        lambda m, f: first(m, "SVC.n_support_")[2].__setitem__(2, 15),
    ),
    "support beyond all rows": (
        "support_",
        lambda m, f: first(m, "SVC.support_")[2].__setitem__(slice(0, 8), b"\xff" * 8),
    ),
    "coefficients of another shape": (
        r"coef",
        lambda m, f: first(m, "_expansion.coef").__setitem__(
            1, [1, first(m, "_expansion.coef")[1][0]]
        ),
    ),
    "NaN": (
        "coef",
        lambda m, f: first(m, "_expansion.coef")[2].__setitem__(
            slice(0, 8), np.array(np.nan).tobytes()
        ),
    ),
    "unknown field": ("has no field", lambda m, f: f.update(__class__="os.system")),
    "missing field": ("lacks 'classes_'", lambda m, f: f.pop("classes_")),
    "wrong type": ("is expected", lambda m, f: f.update(n_iter_="many")),
    "unknown class": (
        "no class",
        lambda m, f: m.tree.update(machine={"record": ["os.system", {}]}),
    ),
    "module": ("one is expected", lambda m, f: f.update(kernel={"module": "os", "name": "system"})),
    "two keys": ("one is expected", lambda m, f: f.update(kernel={"kernel": "linear", "a": 1})),
    "function": ("no function", lambda m, f: f.update(callback={"function": "os.system"})),
    "kernel": ("there is no kernel", lambda m, f: f.update(kernel={"kernel": "__import__('os')"})),
    "path": ("there is no array", lambda m, f: f.update(C={"array": {"tensor": {"name": "../x"}}})),
    "no machine": (
        "holds no machine",
        lambda m, f: m.tree.update(machine={"enum": ["Status", "SOLVED"]}),
    ),
    "array of nothing": (
        "belongs to nothing",
        lambda m, f: m.tensors.update(more=["U8", [1], bytearray(1)]),
    ),
    "trusted types": ("must have the keys", lambda m, f: m.tree.update(trusted=["os.system"])),
    "newer": (r"it needs mercer >= 9.1", lambda m, f: m.tree.update(format=7, needs="9.1")),
    "newer, no version": ("a newer mercer", lambda m, f: m.tree.update(format=7, needs="rm -rf")),
    "format 0": ("no format 0", lambda m, f: m.tree.update(format=0)),
    "no format": ("does not say", lambda m, f: m.tree.pop("format")),
    "negative size": ("no list of sizes", lambda m, f: first(m, "coef").__setitem__(1, [-1, 3])),
    "overflow": (
        "takes",
        lambda m, f: first(m, "coef").__setitem__(1, [2**47, 2**47, 2**47]),
    ),
    "half a number": ("takes", lambda m, f: first(m, "coef").__setitem__(2, bytearray(9))),
    "dtype": ("is none of", lambda m, f: first(m, "coef").__setitem__(0, "BF16")),
    "long list": ("bytes", lambda m, f: f.update(kernel="x" * MOST_HEADER)),
    "deep": ("nested deeper", lambda m, f: f.update(kernel=json.loads("[" * 90 + "]" * 90))),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_header_that_lies_is_refused(lie, small, path):
    reason, how = LIES[lie]
    change(small, path, reason, how)


def header_of(small):
    length = int.from_bytes(small[:8], "little")
    return small[8 : 8 + length], small[8 + length :]


def with_header(header, rest):
    return len(header).to_bytes(8, "little") + header + rest


def test_keys_that_are_there_twice_are_refused(small, path):
    header, rest = header_of(small)
    double = b'{"__metadata__":{},' + header[1:]
    refused(path, with_header(double, rest), "'__metadata__' is there twice")
    model = Model(small)
    text = json.dumps(model.tree)
    text = text.replace('"format": 1', '"format": 1, "format": 1')
    data = json.loads(header)
    data["__metadata__"].update(mercer=text, sha256=sha256(text.encode()).hexdigest())
    refused(path, with_header(json.dumps(data).encode(), rest), "'format' is there twice")


def test_large_headers_are_not_even_read(path):
    refused(path, (10**7).to_bytes(8, "little") + b"{" * 1000, "at most 1000000 are allowed")
    refused(path, (2**63).to_bytes(8, "little") + b"{" * 1000, "no model file")
    keys = b"{" + b",".join(b'"%d":0' % i for i in range(100_000)) + b"}"
    refused(path, with_header(keys, b""), "no metadata")
    many = {"__metadata__": {"format": "mercer", "sha256": sha256(b"").hexdigest(), "mercer": ""}}
    many |= {str(i): {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for i in range(300)}
    refused(path, with_header(json.dumps(many).encode(), b""), "300 arrays; at most 256")
    refused(path, with_header(b'{"a":' + b"[" * 500_000, b""), "nested deeper than 64")
    # these two took minutes: each name against all others, each quote up to the end
    twice = b"{" + b",".join(b'"%d":0' % (i % 99_999) for i in range(100_000)) + b"}"
    refused(path, with_header(twice, b""), "'0' is there twice")
    refused(path, with_header(b'{"' + rb"\"" * 300_000, b""), "not valid JSON")
    refused(path, with_header(b'{"a": NaN}', b""), "NaN is no number")


def test_gaps_and_overlaps_are_refused(small, path):
    header, rest = header_of(small)
    data = json.loads(header)
    name = next(name for name in data if name != "__metadata__")
    start, end = data[name]["data_offsets"]
    data[name]["data_offsets"] = [start + 8, end + 8]
    refused(path, with_header(json.dumps(data).encode(), rest), "begins at byte|where the one")
    refused(path, small + b"\x00", "something was added")


def test_a_sparse_array_that_points_outside_is_refused(path):
    mercer.save(fit("SVC sparse", DATA), path)
    data = path.read_bytes()
    model = Model(data)
    name = next(name for name in model.tensors if name.endswith("indices"))
    model.tensors[name][2][:4] = (10**6).to_bytes(4, "little")
    refused(path, model.data(), "outside of 3 columns")
    model = Model(data)
    name = next(name for name in model.tensors if name.endswith("indptr"))
    model.tensors[name][2][4:8] = (10**6).to_bytes(4, "little")
    refused(path, model.data(), "go back")


# --- no code, no other file, little memory --------------------------------------------------------


def test_loading_opens_one_file_and_runs_nothing(path):
    watch = the_watch()
    for name in (
        "SVC three",
        "Pipeline words",
        "compat.KNeighborsClassifier",
        "Tuned",
        "SVC columns",
    ):
        mercer.save(fit(name, DATA), path)
        before = set(sys.modules)
        watch.path, watch.seen, watch.on = str(path), [], True
        try:
            mercer.load(str(path))
        finally:
            watch.on = False
        assert not watch.seen
        assert set(sys.modules) == before


def test_a_damaged_file_takes_little_memory(path):
    X = np.random.default_rng(0).normal(size=(20_000, 20))
    mercer.save(mercer.NearestNeighbors(3).fit(X, X[:, 0] > 0), path)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(bytes(data))
    tracemalloc.start()
    try:
        with pytest.raises(mercer.ModelFormatError, match="is damaged"):
            mercer.load(path)
        assert tracemalloc.get_traced_memory()[1] < 1.5 * len(data)
    finally:
        tracemalloc.stop()


def test_a_good_file_takes_at_most_twice_its_size(path):
    X = np.random.default_rng(0).normal(size=(20_000, 20))
    mercer.save(mercer.NearestNeighbors(3).fit(X, X[:, 0] > 0), path)
    tracemalloc.start()
    try:
        machine = mercer.load(path)
        assert tracemalloc.get_traced_memory()[1] < 2 * path.stat().st_size
    finally:
        tracemalloc.stop()
    assert machine.predict(X[:1]).shape == (1,)


def test_a_few_bytes_never_become_many(path):
    model = Model(saved(path, mercer.NearestMean().fit(DATA.X, DATA.three)))
    place = next(name for name in model.tensors if name.endswith("classes_.ends"))
    fields = model.tree["machine"]["record"][1]
    fields["classes_"]["words"]["dtype"] = "U999999999"
    assert place
    refused(path, model.data(), "no type of strings")


def saved(path, machine):
    mercer.save(machine, path)
    return path.read_bytes()


def test_features_that_belong_together_only_in_part_are_refused():
    """Landmarks of another kernel, sketches whose places lie outside."""
    X = np.random.default_rng(0).standard_normal((9, 3))
    kernel, other = Nystrom(4).of(Gaussian(1.0), X), Nystrom(4).of(Gaussian(2.0), X)
    fields = {"kernel": kernel.kernel, "approximation": kernel.approximation}
    assert RECORDS["ApproximateKernel"].build({**fields, "phi": kernel.phi}) is not None
    with pytest.raises(ValueError, match="another kernel"):
        RECORDS["ApproximateKernel"].build({**fields, "phi": other.phi})
    sketch = RandomFeatures(8).of(Polynomial(4, 1.0), X).phi
    found = {field: getattr(sketch, field) for field in RECORDS["TensorSketch"].types}
    for change in (
        {"size": 3},
        {"buckets": tuple(b - 1 for b in sketch.buckets)},
        {"signs": tuple(s[:-1] for s in sketch.signs)},
        {"factors": ()},
    ):
        with pytest.raises(ValueError, match="a sketch has"):
            RECORDS["TensorSketch"].build({**found, **change})


def test_a_record_in_the_place_of_an_array_is_named():
    """An object may have a `shape` that is no shape of an array: it is named by its type."""
    described = RECORDS["GaussianMixture"]
    fitted = mercer.GaussianMixture(1).fit(DATA.X)
    fields = {**described.fields_of(fitted), "weights_": SimpleNamespace(shape=object())}
    with pytest.raises(mercer.ModelFormatError, match="weights_ is of type SimpleNamespace"):
        check_fields(described, fields, {})
