"""Tables that are odd end in an answer or in a sentence, at every machine and every plane."""

import io
import json
import re

import numpy as np
import pytest

from mercer.studio import StudioLimits
from mercer.studio.catalog import MACHINES
from mercer.studio.frames import text_of
from mercer.studio.jobs import __main__ as process
from mercer.studio.jobs import job_of
from mercer.studio.jobs.bench import Bench, read_table
from mercer.studio.tables import Tables, described

LIMITS = StudioLimits()
pytestmark = pytest.mark.filterwarnings("ignore")  # as the process behind a page does
PLANES = ("columns", "components", "discriminant", "correlation")


def csv(names, rows):
    lines = [names.replace(" ", ","), *(",".join(map(str, row)) for row in rows)]
    return "\n".join(lines).encode() + b"\n"


def drawn(count, width=2):
    return np.random.default_rng(0).normal(size=(count, width)).round(3).tolist()


def labelled(row_of):
    """Return twenty rows of two numbers and a class, the numbers changed by a function."""
    return csv("a b y", [(*row_of(k, *row), "uv"[k % 2]) for k, row in enumerate(drawn(20))])


def gaps(rows):
    """Leave a third of all fields out."""
    kept = np.random.default_rng(1).random((len(rows), len(rows[0]))) > 1 / 3
    return [
        [value if there else "" for value, there in zip(row, known, strict=True)]
        for row, known in zip(rows, kept, strict=True)
    ]


ODD = {
    "one row": csv("a b y", [(1.5, 2.5, "u")]),
    "one row of numbers": csv("a b y", [(1.5, 2.5, 3.5)]),
    "two rows": csv("a b y", [(1.5, 2.5, "u"), (0.5, 1.0, "v")]),
    "all the same": csv("a b y", [(1.5, 2.5, "u")] * 20),
    "all the same, two classes": csv("a b y", [(1.5, 2.5, "u"), (1.5, 2.5, "v")] * 10),
    "one class": csv("a b y", [(*row, "u") for row in drawn(20)]),
    "no number": csv("a b y", [("pqr"[k % 3], "st"[k // 2 % 2], "uv"[k % 2]) for k in range(24)]),
    "gaps": csv(
        "a b c y", gaps([(*row, "pq"[k % 2], "uvw"[k % 3]) for k, row in enumerate(drawn(40))])
    ),
    "a column of gaps": labelled(lambda k, a, b: ("", b)),
    "different strings": csv(
        "a b y", [(*row, f"name {k} x{7 * k}") for k, row in enumerate(drawn(20))]
    ),
    "words alone": csv("note", [(f"some words {k} and more {3 * k}",) for k in range(20)]),
    "one column": csv("a", [row[:1] for row in drawn(20)]),
    "a constant target": csv("a b y", [(*row, 2.0) for row in drawn(20)]),
    "an infinite entry": labelled(lambda k, a, b: (a if k else "inf", b)),
    "huge": labelled(lambda k, a, b: (1e200 * a, b)),
    "tiny": labelled(lambda k, a, b: (1e-200 * a, b)),
    "far away": labelled(lambda k, a, b: (1e8 + a, b)),
}
WIDE = csv(
    " ".join([*(f"c{k}" for k in range(300)), "y"]),
    [(*row, "uv"[k % 2]) for k, row in enumerate(drawn(30, 300))],
)


def opened(content):
    """Return what the page is told of a table, and a bench that has it."""
    found = described(read_table(content, LIMITS))
    table, bench = Tables(LIMITS).add("odd.csv", content, found), Bench()
    bench.keep(table["id"], "odd.csv", content)
    return table, bench


def scene_of(table, name, task, target, kind=None):
    choice = {"id": table["id"], "target": target, "columns": None}
    plane = {"kind": kind} if kind else table["scene"]["view"]["plane"]
    view = {"bounds": None, "nx": 3, "ny": 3, "plane": plane}
    return {"task": task, "machine": name, "table": choice, "kernel": None, "view": view}


def ended(bench, do, scene, **fields):
    """Do what is asked; return the words of a refusal, or none."""
    try:
        found = job_of(do)(bench, {"do": do, "scene": scene, **fields}, lambda told: None)
    except process.REFUSED as error:
        words = process.words_of(error)
        assert len(words) > 20 and " " in words, words
        assert not re.search(r"math domain|index \d|out of bounds|shapes? |NoneType|Error", words)
        return words
    json.loads(text_of(found))
    if do == "fit" and found["status"] is not None:
        assert found["status"]["words"] and found["certificate"]["words"]
    return None


@pytest.mark.parametrize("content", ODD.values(), ids=ODD)
def test_every_machine_answers_or_says_why_not(content):
    table, bench = opened(content)
    last = table["columns"][-1]["name"]
    for name, entry in MACHINES.items():
        for task in set(entry.tasks) - {"regression"}:
            scene = scene_of(table, name, task, None if task == "unlabelled" else last)
            if ended(bench, "fit", scene) is None:
                ended(bench, "why", scene, row=0)


@pytest.mark.parametrize("content", ODD.values(), ids=ODD)
@pytest.mark.parametrize("kind", PLANES)
def test_every_plane_is_shown_or_refused_in_words(content, kind):
    table, bench = opened(content)
    first, last = table["columns"][0]["name"], table["columns"][-1]["name"]
    for name, task, target in (
        ("NearestMean", "classes", last),
        ("KernelRidge", "targets", first),
        ("PCA", "unlabelled", None),
    ):
        ended(bench, "fit", scene_of(table, name, task, target, kind))


@pytest.mark.parametrize(
    ("name", "task"), [("SVC", "classes"), ("KernelRidge", "targets"), ("PCA", "unlabelled")]
)
@pytest.mark.parametrize("kind", PLANES)
def test_three_hundred_columns(name, task, kind):
    table, bench = opened(WIDE)
    target = {"classes": "y", "targets": "c0", "unlabelled": None}[task]
    words = ended(bench, "fit", scene_of(table, name, task, target, kind))
    suits = task == "classes" or kind in ("columns", "components")
    assert words is None or not suits, words


@pytest.mark.parametrize("do", ["curve", "tune", "report", "kernel", "export"])
def test_long_work_on_odd_tables_says_why_not(do):
    for what in ("one row", "all the same, two classes", "one class", "different strings"):
        table, bench = opened(ODD[what])
        scene = scene_of(table, "SVC", "classes", "y")
        ended(bench, do, scene, parameter="C", what="model", count=[2, 2])


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("one class", "'y' is 'u' in every row; two classes are needed"),
        ("different strings", "20 different values; at most 8"),
        ("a constant target", "two classes are needed"),
    ],
)
def test_a_target_that_has_no_classes_is_named(what, words):
    table, bench = opened(ODD[what])
    assert words in ended(bench, "fit", scene_of(table, "SVC", "classes", "y"))


def test_a_column_alone_is_drawn_along_one_axis():
    table, bench = opened(ODD["one column"])
    found = job_of("fit")(bench, {"scene": {**table["scene"], "machine": "OneClassSVM"}}, print)
    assert found["layers"]["axes"] == ("a", "") and "one column" in found["layers"]["note"]


@pytest.mark.parametrize("content", [b"", b"a,b\n", b"a,a\n1,2\n", b'a,b\n1,"2\n', b"\x00\xff\x00"])
def test_what_is_no_table_is_refused_in_words(content):
    with pytest.raises(ValueError) as caught:
        described(read_table(content, LIMITS))
    assert len(str(caught.value)) > 10


def test_a_mistake_of_the_studio_is_told_and_the_next_request_answered(monkeypatch, capsys):
    def wrong(bench, request, tell):
        return {}["nothing"]

    told = io.StringIO()
    monkeypatch.setattr(process, "job_of", lambda do: wrong)
    works = process.Process(io.StringIO(), told)
    for number in (1, 2):
        works._answer({"id": number, "do": "fit"})
    lines = [line.split(" ", 2) for line in told.getvalue().splitlines()]
    assert [line[:2] for line in lines] == [["1", "refused"], ["2", "refused"]]
    assert "mistake of the studio" in json.loads(lines[0][2])["words"]
    assert "KeyError" in capsys.readouterr().err
