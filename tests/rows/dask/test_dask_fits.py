"""Machines fitted to Dask collections: the answers and certificates of one machine."""

import numpy as np
import pytest
from helpers.cluster_machines import KERNEL, LABELS, MACHINES, X, Y, named

da = pytest.importorskip("dask.array", reason="Dask is not installed")
pytest.importorskip("distributed", reason="Dask is not installed")

from mercer import PCA, SVC, KernelRidge  # noqa: E402
from mercer.blocks import ArrayBlocks  # noqa: E402
from mercer.distributed import decision_function, on_cluster, predict, transform  # noqa: E402

CHUNKS = da.from_array(X, chunks=(40, 2))


@pytest.mark.parametrize("case", MACHINES, ids=named)
def test_a_cluster_gives_what_one_machine_gives(client, case):
    from sklearn.base import clone

    machine, y = case
    here = clone(machine).fit(ArrayBlocks(X, y, rows=40))
    with client.as_current():
        there = clone(machine).fit(CHUNKS, None if y is None else da.from_array(y, chunks=40))
    assert there.solution_.status is here.solution_.status
    assert there.certificate_.ok and here.certificate_.ok
    method, ask = ("transform", transform) if isinstance(machine, PCA) else ("predict", predict)
    expected = getattr(here, method)(X)
    lazy = ask(there, CHUNKS)
    assert lazy.shape == expected.shape and lazy.dtype == expected.dtype
    found = lazy.compute(scheduler=client)
    if expected.dtype.kind == "f":
        assert np.allclose(found, expected, rtol=1e-6, atol=1e-8)
    else:
        assert np.array_equal(found, expected)


def test_a_fit_without_a_client_goes_chunk_by_chunk():
    machine = KernelRidge(0.1, KERNEL).fit(CHUNKS, Y)
    assert machine.certificate_.ok
    assert np.allclose(machine.predict(X), KernelRidge(0.1, KERNEL).fit(X, Y).predict(X))


def test_a_failed_fit_changes_nothing(client):
    bad = X.copy()
    bad[70, 0] = np.inf
    machine = KernelRidge(0.1)
    with client.as_current(), pytest.raises(ValueError, match="block 1 contains infinity"):
        machine.fit(da.from_array(bad, chunks=(40, 2)), Y)
    assert "solution_" not in vars(machine)


def test_data_frames_are_predicted_with_unknown_sizes(client):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    table = pd.DataFrame(X, columns=["a", "b"])
    frame = dd.from_pandas(table, npartitions=2)
    with client.as_current():
        machine = SVC(KERNEL).fit(frame, dd.from_pandas(pd.Series(LABELS), npartitions=2))
    assert machine.feature_names_in_.tolist() == ["a", "b"]
    values = decision_function(machine, frame).compute(scheduler=client)
    assert np.allclose(values, machine.decision_function(table))


def test_what_is_refused():
    machine = KernelRidge(0.1).fit(X, Y)
    with pytest.raises(TypeError, match=r"mercer\.distributed\.predict"):
        machine.predict(CHUNKS)
    with pytest.raises(TypeError, match="must be a Dask array"):
        predict(machine, X)
    with pytest.raises(AttributeError, match="has no transform"):
        transform(machine, CHUNKS)
    with pytest.raises(ValueError, match=r"rechunk\(\{1: -1\}\)"):
        predict(machine, CHUNKS.rechunk((40, 1)))


def test_searches_inside_a_block_are_spread(client):
    from mercer import tune

    with on_cluster(client):
        found = tune(KernelRidge(1.0), X, Y, grid={"penalty": [0.1, 1.0]})
    assert np.allclose(
        found.scores, tune(KernelRidge(1.0), X, Y, grid={"penalty": [0.1, 1.0]}).scores
    )


def test_the_command_takes_a_scheduler(client, tmp_path):
    click = pytest.importorskip("click.testing")
    from mercer.command.application import application

    rows = "\n".join(f"{a:.4f},{b:.4f},{t}" for (a, b), t in zip(X, LABELS, strict=True))
    (tmp_path / "rows.csv").write_text(f"a,b,t\n{rows}\n", encoding="utf-8")
    out = str(tmp_path / "rows.mercer")
    line = ["fit", str(tmp_path / "rows.csv"), "-t", "t", "-o", out, "--no-report"]
    line += ["--machine", "svc", "--kernel", "linear", "--scheduler", client.scheduler.address]
    found = click.CliRunner().invoke(application, line)
    assert found.exit_code == 0, found.output
    python = click.CliRunner().invoke(application, [*line, "--python"])
    assert "with on_cluster(" in python.output
