"""Files past the memory budget: chosen on a sample, fitted to all rows, judged by rows held out."""

from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import SVR, FisherDiscriminant
from mercer.fitting import rows as large

N = 900
RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((2, N))
TOWN = RNG.choice(["Ulm", "Bern"], N)
Y = A - 0.5 * B + (TOWN == "Ulm") + 0.05 * RNG.standard_normal(N)
LABEL = np.where(Y > 0.5, "yes", "no")


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A table that counts as larger than the budget, of which 300 rows are looked at first."""
    monkeypatch.setattr(large, "_GROWTH", 1e12)
    monkeypatch.setattr(large, "SAMPLED", 300)
    monkeypatch.setattr(large, "rows_of_block", lambda columns: 200)
    path = tmp_path / "rows.csv"
    rows = zip(A, B, TOWN, Y, LABEL, strict=True)
    lines = [f"{a:.6f},{b:.6f},{town},{y:.6f},{label}" for a, b, town, y, label in rows]
    lines[5] = lines[5].rpartition(",")[0] + ","  # no label
    path.write_text("\n".join(["a,b,town,y,label", *lines]) + "\n", encoding="utf-8")
    return path


def fitted(file, target, **options):
    with pytest.warns(UserWarning, match="read block by block"):
        return mercer.fit(file, target, kernels=["linear"], importance=False, **options)


def test_a_quantity_is_fitted_to_all_rows_but_those_held_out(file):
    model = fitted(file, "y", drop=["label"])
    assert type(model.machine).__name__ == "KernelRidge" and model.certificate.ok
    assert model.settings.trained_rows == N - 60 and model.settings.held_out_rows == 60
    assert model.evaluation["R^2"].value > 0.98
    said = model.predict(file)  # streams
    assert said.shape == (N,)
    np.testing.assert_allclose(said, model.predict(mercer.data.read(file)))
    assert model.settings.source == str(file) and len(model.settings.digest) == 64
    space = {}
    with pytest.warns(UserWarning, match="read block by block"):
        exec(model.python, space)
    np.testing.assert_allclose(space["model"].predict(file), said)


def test_rows_held_out_are_seen_by_nobody(file):
    model = fitted(file, "y", drop=["label"])
    table = mercer.data.read(file).drop("label")
    held = large.row_keys(model.table.drop("y").rows(model.evaluation.rows))
    rest = ~np.isin(large.row_keys(table.drop("y")), held)
    assert (~rest).sum() == 60
    X = model.preparation.transform(table.drop("y").rows(rest))
    again = mercer.KernelRidge(model.machine.penalty, "linear").fit(X, table["y"][rest])
    np.testing.assert_allclose(again.predict(X), model.machine.predict(X), rtol=1e-8)


def test_classes_have_probabilities_and_refits_see_all_rows(file):
    model = fitted(file, "label", drop=["y"], refit=True)
    assert type(model.machine).__name__ == "LogisticRegression" and model.certificate.ok
    assert model.settings.trained_rows == N - 1
    assert model.predict_proba(file).shape == (N, 2)
    assert model.decision_function(file).shape == (N,)
    assert (model.predict(file) == LABEL).mean() > 0.95


def test_machines_without_blocks_are_refused_at_once(file):
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="KernelRidge"):
        mercer.fit(file, "y", machine=SVR())
    model = fitted(file, "label", drop=["y"], machine=FisherDiscriminant())
    assert type(model.machine).__name__ == "FisherDiscriminant"


def test_classes_that_the_sample_lacks_are_left_out(file):
    text = file.read_text(encoding="utf-8")
    file.write_text(text + "0.1,0.2,Ulm,1.0,maybe\n", encoding="utf-8")
    model = fitted(file, "label", drop=["y"], random_state=1)
    assert model.classes == ("no", "yes")
    assert model.settings.trained_rows + model.settings.held_out_rows == N - 1
    assert any("1 rows were dropped because their class" in note for note in model.notes)


def test_without_room_on_the_disk_the_file_is_read_in_each_pass(file, monkeypatch):
    kept = fitted(file, "y", drop=["label"])
    monkeypatch.setattr(large, "_DISK", 0.0)
    assert np.array_equal(fitted(file, "y", drop=["label"]).predict(file), kept.predict(file))


def test_the_command_goes_to_blocks_by_itself(file, tmp_path):
    click = pytest.importorskip("click.testing")
    from mercer.command.application import application

    model, out = str(tmp_path / "y.mercer"), str(tmp_path / "said.csv")
    line = ["fit", str(file), "-t", "label", "--drop", "y", "--kernel", "linear", "-o", model]
    found = click.CliRunner().invoke(application, [*line, "--no-report"])
    assert found.exit_code == 0, found.output
    assert "read block by block" in found.output
    found = click.CliRunner().invoke(application, ["predict", model, str(file), "-o", out])
    assert found.exit_code == 0, found.output
    assert len(Path(out).read_text(encoding="utf-8").splitlines()) == N + 1


@pytest.mark.parametrize("end", [b"1.0,2", b'0.5,"Ul'])
def test_a_file_cut_short_is_refused_with_its_line(file, end):
    content = file.read_bytes()
    file.write_bytes(content[: content.rfind(b"\n", 0, len(content) // 2) + 1] + end)
    with pytest.raises(ValueError, match=r"rows\.csv, line \d+"):
        mercer.fit(file, "y", kernels=["linear"])
