"""From a table to a model and back, through every command that reads or writes one."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import mercer as library
from mercer.data import Table

ROWS = 120


def people(rows, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.normal(40, 10, rows).round(1)
    town = rng.choice(["Ulm", "Bern", "Riga"], rows)
    income = (100 * age + 900 * (town == "Ulm") + rng.normal(0, 100, rows)).round(1)
    rich = np.where(income > 4300, "yes", "no")
    return {"age": age, "town": town, "income": income, "rich": rich}


def write_csv(path, columns):
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def table(tmp_path):
    write_csv(tmp_path / "people.csv", people(ROWS))
    new = people(30, seed=1)
    write_csv(tmp_path / "labelled.csv", new)
    del new["rich"]
    write_csv(tmp_path / "new.csv", new)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Fit once; tests copy the files."""
    from click.testing import CliRunner

    from mercer.command.application import application

    folder = tmp_path_factory.mktemp("fitted")
    write_csv(folder / "people.csv", people(ROWS))
    model, report = folder / "rich.mercer", folder / "rich.html"
    args = ["fit", folder / "people.csv", "-t", "rich", "--drop", "income", "--kernel", "linear"]
    args += ["-o", model, "--report", report, "--json"]
    done = CliRunner().invoke(application, [str(arg) for arg in args])
    assert done.exit_code == 0, done.stderr
    return folder, json.loads(done.stdout)


@pytest.fixture
def model(fitted, tmp_path):
    folder, _ = fitted
    target = tmp_path / "rich.mercer"
    target.write_bytes((folder / "rich.mercer").read_bytes())
    return target


# --- fit -------------------------------------------------------------------------------------


def test_fit_says_everything_as_json(fitted):
    folder, found = fitted
    assert found["certificate"]["ok"]
    assert found["classes"] == ["no", "yes"]
    assert found["evaluation"]["metrics"]["accuracy"]["value"] > 0.6
    assert found["chosen"]["name"]
    assert os.path.getsize(found["report"]) > 1000
    assert sorted(os.listdir(folder)) == ["people.csv", "rich.html", "rich.mercer"]


def test_features_in_place_of_the_kernel(mercer, table, tmp_path):
    options = ["-t", "rich", "--drop", "income", "--kernel", "gaussian", "--no-report"]
    ended = mercer("fit", "people.csv", *options, "--approximation", "nystrom:9", "--json")
    assert "9 features (Nystrom(n_components=9" in ended.json["certificate"]["statement"]
    answers = mercer("predict", "people.mercer", "people.csv").out.splitlines()
    assert len(answers) == ROWS + 1
    program = mercer("fit", "people.csv", *options, "--approximation", "none", "--python").out
    assert "approximation='none'" in program


def test_fit_writes_where_nothing_is_said(mercer, table, tmp_path):
    ended = mercer("fit", "people.csv", "--target", "rich", "--kernel", "linear")
    assert "certified" in ended.out
    assert "people.html" in ended.out
    assert {"people.mercer", "people.html"} <= set(os.listdir(tmp_path))
    assert not list(tmp_path.glob("*.journal"))


def test_fit_refuses_what_makes_no_sense(mercer, table):
    assert "did you mean 'rich'?" in mercer("fit", "people.csv", "-t", "rihc", code=2).err
    assert "No such file" in mercer("fit", "none.csv", "-t", "rich", code=1).err
    assert (
        "is an input" in mercer("fit", "people.csv", "-t", "rich", "-o", "people.csv", code=2).err
    )
    both = ("--report", "a.html", "--no-report")
    assert "exclude" in mercer("fit", "people.csv", "-t", "rich", *both, code=2).err
    assert "does not exist" in mercer("fit", "people.csv", "-t", "rich", "-o", "x/y", code=2).err
    assert "Missing option" in mercer("fit", "people.csv", code=2).err


def test_fit_prints_the_same_as_python(mercer, table, tmp_path):
    args = ("fit", "people.csv", "-t", "rich", "--kernel", "linear", "--machine", "svc")
    program = mercer(*args, "--drop", "income", "--held-out", "0.3", "--python").out
    exec(compile(program, "program", "exec"), {})
    assert (tmp_path / "people.mercer").exists()
    assert library.load(tmp_path / "people.mercer").settings.held_out_rows == 35


def test_fit_judges_by_another_table(mercer, table):
    args = ("fit", "people.csv", "-t", "rich", "--kernel", "linear", "--no-report", "--json")
    found = mercer(*args, "--test", "labelled.csv").json
    assert (found["held_out_rows"], found["evaluation"]["kind"]) == (30, "test table")


def test_options_of_fit_from_a_file(mercer, table, tmp_path):
    (tmp_path / "fit.toml").write_text(
        'seed = 5\n[fit]\ntarget = "income"\nkernel = ["linear"]\ndrop = ["rich"]\n'
        'kind = { town = "category" }\nno-report = true\n'
    )
    found = mercer("fit", "people.csv", "--config", "fit.toml", "--json").json
    assert (found["task"], found["seed"], found["report"]) == ("regression", 5, None)


def test_strict_ends_with_3(mercer, table, monkeypatch):
    from mercer import fitting

    def doubtful(*args, **options):
        model = fit(*args, **options)
        return replace(model, certificate=replace(model.certificate, ok=False))

    fit = fitting.fit
    monkeypatch.setattr(fitting, "fit", doubtful)
    args = ("fit", "people.csv", "-t", "rich", "--kernel", "linear", "--no-report")
    ended = mercer(*args, "--strict", code=3)
    assert "not certified" in ended.err
    assert "NOT certified" in ended.out


@pytest.mark.parametrize(
    "name", ["with blank.csv", "line\nbreak.csv", "\u00fc\u4e2d.csv", "-x.csv"]
)
def test_odd_names(mercer, tmp_path, name):
    write_csv(tmp_path / name, people(ROWS))
    args = ("fit", "-t", "rich", "--kernel", "linear", "--no-report", "--json")
    found = mercer(*args, "--", name).json
    assert os.path.exists(found["model"])
    program = mercer("predict", "--quiet", "--", found["model"], name)
    assert program.out.count("\n") == ROWS + 1


# --- interruptions ---------------------------------------------------------------------------


def _size(folder):
    return sum(f.stat().st_size for f in folder.iterdir()) if folder.exists() else 0


@pytest.mark.slow
def test_interrupted_and_taken_up_again(tmp_path, mercer):
    write_csv(tmp_path / "people.csv", people(200))
    (tmp_path / "people.mercer").write_bytes(b"earlier")
    args = ["fit", "people.csv", "-t", "rich", "--drop", "income", "--no-report"]
    process = subprocess.Popen(
        [sys.executable, "-m", "mercer", *args], cwd=tmp_path, stderr=subprocess.DEVNULL
    )
    journal = tmp_path / "people.mercer.journal"
    while _size(journal) < 2000 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 143
    assert (tmp_path / "people.mercer").read_bytes() == b"earlier"
    left = {"people.csv", "people.mercer", "people.mercer.journal"}
    assert set(os.listdir(tmp_path)) == left
    other = mercer(*args, "--seed", "7", code=1)  # another question than that of the journal
    assert "--no-resume" in other.err
    again = mercer(*args, "--json")
    assert "resuming from" in again.err
    assert not journal.exists()
    fresh = mercer(*args, "-o", "fresh.mercer", "--json")
    assert again.json["evaluation"] == fresh.json["evaluation"]


# --- predict ---------------------------------------------------------------------------------


def test_predict_agrees_with_python(mercer, table, model):
    ended = mercer("predict", model, "new.csv")
    head, *lines = ended.out.splitlines()
    data = Table.of({k: v for k, v in people(30, seed=1).items() if k != "rich"})
    assert head == "rich"
    assert lines == library.load(model).predict(data).tolist()
    found = mercer("predict", model, "labelled.csv", "--proba", "--json").json
    assert found["rows"] == 30
    names = list(found["predictions"])
    assert names == ["rich", "probability no", "probability yes"]
    sums = np.add(found["predictions"][names[1]], found["predictions"][names[2]])
    assert np.allclose(sums, 1)


def test_predict_from_a_pipe_into_a_file(mercer, table, model, tmp_path):
    text = (tmp_path / "new.csv").read_text()
    mercer("predict", model, "-", "-o", "out.csv", "--proba", input=text)
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "rich,probability no,probability yes"
    assert len(lines) == 31


def test_predict_leaves_no_half_file(mercer, table, model, tmp_path):
    (tmp_path / "out.csv").write_text("earlier")
    text = (tmp_path / "new.csv").read_text()
    (tmp_path / "broken.csv").write_text(text + "1,2,3,4,5,6\n")
    before = set(os.listdir(tmp_path))
    assert "line 32" in mercer("predict", model, "broken.csv", "-o", "out.csv", code=1).err
    assert (tmp_path / "out.csv").read_text() == "earlier"
    assert set(os.listdir(tmp_path)) == before


def test_predict_names_the_column_that_is_missing(mercer, table, model, tmp_path):
    (tmp_path / "less.csv").write_text("age\n1\n")
    assert "town" in mercer("predict", model, "less.csv", code=1).err


def test_columns_that_no_model_learns_from_may_be_missing(mercer, tmp_path):
    rows = [f"P{i:03},{i % 7 - 3 + 0.1 * (i % 3):.1f},{'ab'[i % 7 > 3]}" for i in range(120)]
    (tmp_path / "ids.csv").write_text("\n".join(["id,x,y", *rows]))
    mercer("fit", "ids.csv", "-t", "y", "--kernel", "linear", "--no-report", "--quiet")
    (tmp_path / "new.csv").write_text("x\n3.1\n-3\n")
    assert mercer("predict", "ids.mercer", "new.csv").out.split() == ["y", "b", "a"]
    (tmp_path / "new.csv").write_text("X\n3.1\n-3\n")
    assert (
        "rename 'X' if it is that column" in mercer("predict", "ids.mercer", "new.csv", code=1).err
    )
    assert "training table" in mercer("evaluate", "ids.mercer", "ids.csv").err


def test_a_model_like_a_constant_is_said_to_be_one(mercer, tmp_path):
    rows = [f"{i * i % 17},{'ab'[i % 2]}" for i in range(30)]
    (tmp_path / "noise.csv").write_text("\n".join(["x,y", *rows]))
    said = mercer("fit", "noise.csv", "-t", "y", "--kernel", "linear", "--no-report").out
    assert "not significantly better than a constant's" in said


def printed(program):
    """Run what --python wrote, and look at what it says."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(program, {})
    assert said.getvalue().startswith("verified")


def test_certify_a_machine_of_numbers(mercer, tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 2))
    rows = [f"{a!r},{b!r},7,{int(a > b)}" for a, b in X.tolist()]
    (tmp_path / "n.csv").write_text("\n".join(["a,b,other,y", *rows]))
    machine = library.SVC("gaussian(1)").fit(X, (X[:, 0] > X[:, 1]).astype(float))
    library.save(machine, tmp_path / "n.mercer")
    asked = ("certify", "n.mercer", "n.csv", "--drop", "other", "--target", "y")
    assert mercer(*asked, "--json").json["ok"]
    printed(mercer(*asked, "--python").out)


def test_certify_models_without_a_target(mercer, tmp_path):
    rows = [f"{i % 2 * 9 + i % 5},{'uv'[i % 2]},a" for i in range(40)]
    (tmp_path / "rows.csv").write_text("\n".join(["x,word,other", *rows]))
    for name in ("cluster", "project"):
        mercer(name, "rows.csv", "--drop", "other", "--model", "m.mercer", "--quiet")
        found = mercer("certify", "m.mercer", "rows.csv", "--json").json
        assert found["ok"] and not found["notes"]
        printed(mercer("certify", "m.mercer", "rows.csv", "--python").out)
        refused = mercer("certify", "m.mercer", "rows.csv", "--drop", "x", code=2)
        assert "contains its columns" in refused.err
    texts = ["text,n", *(f"the red wine number {i % 7} is good and dry,{i}" for i in range(30))]
    (tmp_path / "texts.csv").write_text("\n".join(texts))
    topics = ("topics", "texts.csv", "--column", "text", "-k", "2", "--stop-words", "none")
    mercer(*topics, "--model", "t.mercer", "--quiet")
    found = mercer("certify", "t.mercer", "texts.csv", "--json").json
    assert found["ok"] and not found["notes"]
    printed(mercer("certify", "t.mercer", "texts.csv", "--python").out)
    (tmp_path / "texts.csv").write_text("\n".join([*texts, "another one,3"]))
    assert "digest differs" in mercer("certify", "t.mercer", "texts.csv", code=3).out


def test_remedies_are_options(mercer, tmp_path):
    (tmp_path / "comma.csv").write_text("x;y\n" + "1,5;a\n2,5;b\n" * 20)
    assert "pass --decimal ," in mercer("fit", "comma.csv", "-t", "y", code=1).err
    assert (
        "did you mean"
        in mercer("fit", "comma.csv", "-t", "y", "--decimal", ",", "--drop", "xx", code=2).err
    )


def test_models_cut_short_are_refused(mercer, table, model):
    content = model.read_bytes()
    for size in (0, 5, 100, len(content) // 2, len(content) - 1):
        model.write_bytes(content[:size])
        for command in ("predict", "evaluate", "certify"):
            assert mercer(command, model, "labelled.csv", code=1).err.startswith("mercer: ")


def test_a_refused_file_gives_no_output(mercer, table, model, tmp_path):
    (tmp_path / "bad.csv").write_text("age,town,income\n1,Ulm,2\noops,Ulm,3\n")
    ended = mercer("predict", model, "bad.csv", code=1)
    assert ended.out == "" and "line 3" in ended.err
    (tmp_path / "none.csv").write_text("age,town,income\n")
    assert mercer("predict", model, "none.csv").out == "rich\n"


def test_labels_that_spreadsheets_would_run(mercer, tmp_path):
    rows = "\n".join(f"{k},{'=cmd|x' if k > 20 else '-1'}" for k in range(40))
    (tmp_path / "train.csv").write_text(f"x,=y\n{rows}\n")
    mercer("fit", "train.csv", "-t", "=y", "-o", "y.mercer", "--kind", "=y=category")
    (tmp_path / "new.csv").write_text("x\n1\n39\n")
    assert mercer("predict", "y.mercer", "new.csv").out == "'=y\n-1\n'=cmd|x\n"
    plain = mercer("predict", "y.mercer", "new.csv", "--no-spreadsheet")
    assert plain.out == "=y\n-1\n=cmd|x\n"


def test_predict_into_a_closed_pipe(shell, table, model):
    ended = shell(f"mercer predict '{model}' new.csv | head -n 1; echo ${{PIPESTATUS[0]}}")
    assert ended.out.split() in (["rich", "0"], ["rich", "141"])
    assert ended.err == ""


def test_closed_streams(table, model, tmp_path, monkeypatch, capsys):
    from mercer.command.application import application
    from mercer.command.work import run

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", None)
    assert run(application, ["predict", str(model), "-"]) == 1
    assert "standard input is closed" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdout", None)
    assert run(application, ["predict", str(model), "new.csv"]) == 1
    assert "standard output is closed" in capsys.readouterr().err
    assert run(application, ["predict", str(model), "new.csv", "-o", "out.csv"]) == 0


# --- evaluate, certify, report ---------------------------------------------------------------


def test_evaluate(mercer, table, model):
    found = mercer("evaluate", model, "labelled.csv", "--json").json
    assert found["rows"] == 30
    assert 0.5 < found["metrics"]["accuracy"]["value"] <= 1
    text = mercer("evaluate", model, "labelled.csv").out
    assert "accuracy" in text
    assert "true \\ predicted" in text
    assert "no column 'rich'" in mercer("evaluate", model, "new.csv", code=1).err


def test_certify_our_model(mercer, table, model):
    assert mercer("certify", model, "people.csv", "--json").json["ok"]
    assert "--cost is for" in mercer("certify", model, "people.csv", "--cost", "1", code=2).err
    for wrong in (("--drop", "age"), ("--target", "age")):
        assert wrong[0] in mercer("certify", model, "people.csv", *wrong, code=2).err
    printed(mercer("certify", model, "people.csv", "--python").out)
    mercer("certify", model, "labelled.csv", code=3)


def test_report(mercer, table, model, tmp_path):
    mercer("report", model, "-o", "again.html")
    mercer("report", model, "-o", "whole.html", "--data", "people.csv")
    bare, whole = ((tmp_path / f"{name}.html").read_text("utf-8") for name in ("again", "whole"))
    assert "rich" in bare
    assert "mercer report" in bare
    assert len(whole) > len(bare)
    mercer("report", model, "--card")
    assert (tmp_path / "rich.md").read_text(encoding="utf-8").startswith("#")
    other = mercer("report", model, "-o", "x.html", "--data", "labelled.csv")
    assert "digest differs" in other.err


def test_report_with_the_table_again(mercer, table, model, tmp_path):
    mercer("report", model, "--data", "people.csv", "-o", "again.html")
    page = (tmp_path / "again.html").read_text(encoding="utf-8")
    assert "<h3>Columns</h3>" in page
    assert "Kernel matrix" in page


def test_card(mercer, table, model, tmp_path):
    found = mercer("report", model, "--card", "-o", "card.md", "--json").json
    assert found["report"] == "card.md"
    assert (tmp_path / "card.md").read_text(encoding="utf-8").startswith("# Classification of rich")
    program = mercer("report", model, "--card", "--data", "people.csv", "--python").out
    exec(compile(program, "program", "exec"), {})
    assert (tmp_path / "rich.md").read_text(encoding="utf-8").startswith("# Classification of rich")


# --- convert ---------------------------------------------------------------------------------


def test_models_of_libsvm_both_ways(mercer, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    library.save(library.SVC("linear", C=1.0).fit(X, y), tmp_path / "svc.mercer")
    write_csv(tmp_path / "data.csv", {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
    mercer("convert", "svc.mercer", "svc.model")
    mercer("convert", "data.csv", "data.libsvm", "--target", "y")
    assert mercer("certify", "svc.model", "data.libsvm", "--cost", "1", "--json").json["ok"]
    mercer("convert", "svc.model", "back.mercer")
    values = library.load(tmp_path / "back.mercer").decision_function(X)
    assert np.allclose(values, library.load(tmp_path / "svc.mercer").decision_function(X))
    mercer("convert", "data.libsvm", "back.csv", "--format", "libsvm")
    first = np.loadtxt(tmp_path / "back.csv", delimiter=",", skiprows=1)
    assert np.array_equal(np.sort(first, axis=1), np.sort(np.column_stack([X, y]), axis=1))


def test_onnx(mercer, model, tmp_path):
    pytest.importorskip("onnxruntime")
    library.save(library.SVC("linear").fit([[0.0], [1.0]], [0, 1]), tmp_path / "svc.mercer")
    mercer("convert", "svc.mercer", "svc.onnx")
    assert (tmp_path / "svc.onnx").stat().st_size > 100


def test_data_as_the_model_sees_them(mercer, table, model, tmp_path):
    ended = mercer("convert", "people.csv", "people.libsvm", "--prepare", model, "--json").json
    assert ended["labels"] == {"no": 0, "yes": 1}
    assert len((tmp_path / "people.libsvm").read_text().splitlines()) == ROWS


def test_conversions_that_make_no_sense(mercer, table, model):
    assert "is not a model" in mercer("convert", "people.csv", "x.onnx", code=2).err
    assert "cannot convert a model to csv" in mercer("convert", model, "x.csv", code=2).err
