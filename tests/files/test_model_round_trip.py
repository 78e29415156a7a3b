"""Every machine comes back from its file the same, bit for bit; every machine has a record."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from files.fitted import MACHINES, OTHER, SMALL, fit, rows_for
from files.same import answers, differences

import mercer
from mercer.compat import sklearn as compat
from mercer.files.schema import RECORDS


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("data", [SMALL, OTHER], ids=["40x3", "37x5"])
def test_comes_back_the_same(name, data, tmp_path):
    machine = fit(name, data)
    mercer.save(machine, tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    copied = pickle.loads(pickle.dumps(machine))
    assert not differences(copied, loaded, name)
    rows = rows_for(name, data)
    assert not differences(answers(copied, rows), answers(loaded, rows), name)


def test_every_machine_has_a_record():
    public = {getattr(mercer, name) for name in mercer.machines.__all__}
    public |= {getattr(compat, name) for name in compat.__all__}
    public |= {mercer.Tuned, mercer.selection.MultipleKernel}
    machines = {kind for kind in public if isinstance(kind, type) and hasattr(kind, "fit")}
    known = {record.kind for record in RECORDS.values() if record.whole}
    assert not machines - known
    fitted = {type(fit(name, SMALL)) for name in MACHINES}
    # these are fitted where torch is, in tests/with_torch, and read in tests/machines/neural
    fitted |= {mercer.Autoencoder, mercer.VariationalAutoencoder}
    assert not machines - fitted, "fit it in tests/files/fitted.py"


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["a", "bb"]),
        np.array(["é\n", "\x00"], dtype=object),
        np.array([False, True]),
        np.array([-5, 10**17]),
        np.array([1.0, -2.0]),
        np.array([3, 200], dtype=np.uint8),
        np.array([-3, 100], dtype=np.int8),
        np.array([2**63, 2**64 - 1], dtype=np.uint64),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_come_back_exactly(labels, tmp_path):
    X = np.arange(8.0)[:, None]
    machine = mercer.NearestMean().fit(X, labels[[0, 0, 0, 0, 1, 1, 1, 1]])
    mercer.save(machine, tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    assert loaded.classes_.dtype == machine.classes_.dtype
    assert loaded.classes_.tobytes() == machine.classes_.tobytes() or labels.dtype == object
    assert loaded.predict(X).tolist() == machine.predict(X).tolist()


@pytest.mark.parametrize("name", mercer.solvers.RETIRED)
def test_solvers_of_the_last_version_become_what_takes_their_place(name):
    other, options, kept = mercer.solvers.RETIRED[name]
    read = RECORDS[name].build(dict.fromkeys(options.split()))
    assert type(read).__name__ == other
    assert all(getattr(read, option) is None for option in kept.split())
    first, *_ = options.split()
    with pytest.warns(FutureWarning, match=f"{name} is deprecated.*{other}"):
        made = getattr(mercer.solvers, name)(0.25)
    assert type(made) is type(read) and (first not in kept or getattr(made, first) == 0.25)
    with pytest.raises(TypeError, match="no option 'breadth'"):
        getattr(mercer.solvers, name)(breadth=3)


def test_options_without_effect_are_left_out_of_what_is_read():
    old = {"tol": 1e-3, "max_iter": 9, "rank": None, "block": 1500}
    assert RECORDS["ConjugateGradient"].build(old) == mercer.solvers.ConjugateGradient(1e-3, 9)


def test_unfitted_machines_have_their_parameters(tmp_path):
    mercer.save(mercer.SVC("gaussian(2) + linear", C=0.1), tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    assert loaded.get_params()["kernel"] == "gaussian(2) + linear"
    assert not hasattr(loaded, "classes_")
