"""Commands without a target, checks, and the filter that learns."""

import numpy as np
import pytest


@pytest.fixture
def groups(tmp_path):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 1, 30), rng.normal(9, 1, 20)])
    lines = ["x,y,constant", *(f"{a:.3f},{a + rng.normal():.3f},1" for a in x)]
    (tmp_path / "groups.csv").write_text("\n".join(lines) + "\n")


def test_check(mercer, groups):
    ended = mercer("check", "groups.csv")
    assert "50 rows, 3 columns" in ended.out
    assert "constant" in ended.out
    found = mercer("check", "groups.csv", "--json").json
    assert found["columns"]["x"] == "number"
    assert any("constant" in one["columns"] for one in found["findings"])
    assert "choose from x, y, constant" in mercer("check", "groups.csv", "-t", "z", code=2).err


def test_check_looks_for_rows_in_both_tables(mercer, groups):
    found = mercer("check", "groups.csv", "--test", "groups.csv", "--json", code=1).json
    assert "both_splits" in {one["code"] for one in found["findings"]}


def test_check_as_python(mercer, groups, capsys):
    exec(compile(mercer("check", "groups.csv", "--python").out, "program", "exec"), {})
    assert "50 rows" in capsys.readouterr().out


def test_broken_tables_name_the_line(mercer, tmp_path):
    (tmp_path / "broken.csv").write_text("a,b\n1,2\n3,4,5\n")
    err = mercer("check", "broken.csv", code=1).err
    assert "broken.csv" in err
    assert "line 3" in err
    (tmp_path / "empty.csv").write_text("")
    assert mercer("check", "empty.csv", code=1).err
    assert mercer("check", tmp_path, code=1).err


def test_cluster(mercer, groups, tmp_path):
    args = ("cluster", "groups.csv", "--drop", "constant", "-o", "labels.csv")
    found = mercer(*args, "--model", "groups.mercer", "--report", "groups.html", "--json").json
    assert sorted(found["sizes"]) == [20, 30]
    assert found["certificate"]["ok"]
    labels = (tmp_path / "labels.csv").read_text().splitlines()
    assert (labels[0], len(labels)) == ("cluster", 51)
    assert "cluster 1" in mercer(*args).out
    assert "is an input" in mercer("cluster", "groups.csv", "-o", "groups.csv", code=2).err


def test_project(mercer, groups, tmp_path):
    found = mercer("project", "groups.csv", "-k", "2", "-o", "points.csv", "--json").json
    assert len(found["explained"]) == 2
    points = np.loadtxt(tmp_path / "points.csv", delimiter=",", skiprows=1)
    assert points.shape == (50, 2)
    assert "component 1" in mercer("project", "groups.csv", "--kernel", "gaussian").out


@pytest.mark.parametrize("name", ["cluster", "project"])
def test_as_python(mercer, groups, name, capsys):
    program = mercer(name, "groups.csv", "--seed", "3", "--drop", "constant", "--python").out
    exec(compile(program, "program", "exec"), {})
    assert capsys.readouterr().out


def test_topics(mercer, tmp_path):
    texts = ["salt pepper oil salt food", "rain wind snow rain sky"] * 20
    (tmp_path / "texts.csv").write_text("\n".join(["text", *texts]) + "\n")
    args = ("topics", "texts.csv", "-c", "text", "-k", "2", "--stop-words", "none")
    found = mercer(*args, "-o", "weights.csv", "--json").json
    assert len(found["topics"]) == 2
    weights = np.loadtxt(tmp_path / "weights.csv", delimiter=",", skiprows=1)
    assert np.allclose(weights.sum(axis=1), 1)
    assert "did you mean" in mercer(*args[:3], "txt", code=2).err


# --- kernels ---------------------------------------------------------------------------------


def test_kernels_on_a_sample(mercer, groups):
    found = mercer("kernels", "try", "gaussian[x] + linear", "groups.csv", "--json").json
    assert found["valid"]
    assert found["rows"] == 50
    args = ("kernels", "try", "gaussian", "groups.csv", "--target", "y")
    assert "alignment" in mercer(*args, "--rows", "20").out
    assert "no text column" in mercer("kernels", "try", "spectrum", "groups.csv", code=1).err
    assert "did you mean 'gaussian'?" in mercer("kernels", "show", "gausian", code=2).err
    assert mercer("kernels").out == mercer("kernels", "list").out


# --- stream ----------------------------------------------------------------------------------

LINES = "spam\twin money now\nham\tlunch at noon\n" * 3


def test_stream_answers_and_learns(mercer, tmp_path):
    args = ("stream", "--labels", "ham,spam")
    ended = mercer(*args, "--save", "mail.mercer", input=LINES + "money money\n\tlunch\tnoon\n")
    answers = [line.split("\t")[0] for line in ended.out.splitlines()]
    assert len(answers) == 8
    assert answers[-2:] == ["spam", "ham"]
    assert "mistakes in 6 texts" in ended.err
    again = mercer("stream", "--load", "mail.mercer", "--json", input="win now\n").json
    assert again["seen"] == 6


def test_stream_takes_corrections(mercer):
    args = ("stream", "--labels", "ham,spam", "--json")
    assert mercer(*args, input="win money\n!spam\n").json["mistakes_by_label"]["spam"] == 1
    assert "line 1" in mercer(*args, input="!spam\n", code=1).err


def test_stream_refuses_labels_that_nobody_named(mercer):
    args = ("stream", "--labels", "ham,spam")
    err = mercer(*args, input="ham\ta\nspma\tb\n", code=1).err
    assert "line 2" in err
    assert "did you mean 'spam'?" in err
    assert "either --labels" in mercer("stream", code=2).err
    assert "--labels" in mercer("stream", "--labels", "ham", code=2).err


def test_stream_as_python(mercer, tmp_path, capsys):
    (tmp_path / "mail.tsv").write_text(LINES)
    program = mercer("stream", "mail.tsv", "--labels", "ham,spam", "--python").out
    exec(compile(program, "program", "exec"), {})
    assert capsys.readouterr().out.splitlines()[-1].startswith("ham")
