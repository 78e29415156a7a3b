"""Every machine of the catalogue fits, is drawn, and says how it ended."""

import base64
import inspect
import json

import numpy as np
import pytest

import mercer
from mercer.studio.catalog import (
    MACHINES,
    OFFERS,
    TASKS,
    Integer,
    Number,
    Switch,
    WordChoice,
    numbers_of,
    tree_of,
)
from mercer.studio.frames import plain, text_of
from mercer.studio.jobs import LONG, QUICK, job_of
from mercer.studio.jobs.bench import Bench
from mercer.studio.limits import RefusalError
from mercer.studio.presets import PRESETS

VIEW = {"bounds": [-1.5, 1.5, -1.5, 1.5], "nx": 12, "ny": 10}
OF_TASK = {"classes": "moons", "regression": "sinc", "targets": "hills", "unlabelled": "clusters"}
CASES = [(name, task) for name, entry in MACHINES.items() for task in entry.tasks]


def scene_of(name, task, n=40, **changes):
    points = PRESETS[OF_TASK[task]].scene(n)["points"]
    return {"task": task, "points": points, "machine": name, "view": VIEW, **changes}


def asked(do, bench=None, **fields):
    told = []
    found = job_of(do)(bench or Bench(), {"id": 1, "do": do, **fields}, told.append)
    return json.loads(text_of(found)), told


def array(packed, dtype="float32"):
    return np.frombuffer(base64.b64decode(packed[dtype]), dtype).reshape(packed["shape"])


@pytest.mark.parametrize(("name", "task"), CASES)
def test_each_machine_is_fitted_and_drawn(name, task):
    found, _ = asked("fit", scene=scene_of(name, task))
    entry = MACHINES[name]
    if name == "AxisAlignedRectangle":
        assert found["status"] is None and found["certificate"] is None
    else:
        assert found["status"]["words"] and found["certificate"]["words"]
        assert found["certificate"]["ok"] or not found["status"]["ok"]
    if task == "regression":
        assert len(found["curve"]["x"]) == len(found["curve"]["y"]) == VIEW["nx"]
        return
    assert found["surface"] or found["regions"]
    shape = [min(VIEW["ny"], entry.finest), min(VIEW["nx"], entry.finest)]
    for picture in (found["surface"], found["regions"]):
        assert picture is None or picture["shape"] == shape


@pytest.mark.parametrize("name", MACHINES)
def test_controls_are_those_of_the_machine(name):
    entry = MACHINES[name]
    known = inspect.signature(getattr(mercer, name)).parameters
    assert {one.name for one in entry.parameters} <= set(known)
    for one in entry.parameters:
        assert one.read(one.default) == one.default
    if entry.kernel is not None:
        assert entry.kernel_name in known
    assert set(entry.tasks) <= set(TASKS)


CHOICES = [
    (name, one.name, choice)
    for name, entry in MACHINES.items()
    for one in entry.parameters
    for choice in (getattr(one, "choices", ()) or ((True, False) if one.kind == "switch" else ()))
]


@pytest.mark.parametrize(("name", "parameter", "choice"), CHOICES)
def test_each_choice_is_one(name, parameter, choice):
    scene = scene_of(name, MACHINES[name].tasks[0], 24, parameters={parameter: choice})
    found, _ = asked("fit", scene={**scene, "view": {**VIEW, "nx": 3, "ny": 3}})
    assert found["machine"] == name


def test_surfaces_are_what_the_machine_says():
    scene = scene_of("SVC", "classes", kernel="gaussian(0.5)", parameters={"C": 3.0})
    found, _ = asked("fit", scene=scene)
    points = np.array(scene["points"])
    machine = mercer.SVC("gaussian(0.5)", C=3.0).fit(points[:, :2], points[:, 2].astype(int))
    x, y = np.linspace(-1.5, 1.5, 12), np.linspace(-1.5, 1.5, 10)
    grid = np.array([[a, b] for b in y for a in x])
    truth = machine.decision_function(grid).reshape(10, 12)
    np.testing.assert_allclose(array(found["surface"]), truth, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(array(found["regions"], "int8"), truth > 0)
    support = found["layers"]["support"]
    assert support["index"] == machine.support_.tolist()
    zones = machine.zones(points[:, :2], points[:, 2].astype(int))
    assert found["layers"]["points"]["zone"] == zones.zone.tolist()
    np.testing.assert_allclose(found["layers"]["points"]["slack"], zones.slack)
    words = dict(found["certificate"]["numbers"])
    assert words["gap"] == pytest.approx(words["primal"] - words["dual"])


def test_no_margin_is_refused_in_words_at_infinite_cost():
    points = PRESETS["overlap"].scene(40)["points"]
    scene = {**scene_of("SVC", "classes"), "points": points, "kernel": "linear"}
    found, _ = asked("fit", scene={**scene, "parameters": {"C": "inf"}})
    assert found["status"]["name"] == "INFEASIBLE" and not found["certificate"]["ok"]
    assert "finite C" in found["status"]["words"]
    assert dict(found["certificate"]["numbers"])["primal"] == "inf"


def test_points_without_a_label_help_only_machines_that_learn_from_them():
    scene = PRESETS["partly"].scene(40, 0.1)
    few, _ = asked("fit", scene={**scene, "machine": "SVC", "view": VIEW})
    assert len(few["layers"]["points"]["index"]) == 10
    all_of_them, _ = asked("fit", scene={**scene, "view": VIEW})
    assert len(all_of_them["layers"]["points"]["index"]) == 40


@pytest.mark.parametrize("name", PRESETS)
def test_presets_fit(name):
    scene, _ = asked("preset", name=name, n=30)
    assert np.abs(np.array(scene["scene"]["points"])[:, :2]).max() < 2.5
    found, _ = asked("fit", scene={**scene["scene"], "view": VIEW})
    assert found["machine"] == PRESETS[name].machine


def test_kernels_offered_are_read_and_numbers_in_them_set():
    from mercer.kernels import parse

    for offer in OFFERS:
        kernel = parse(offer.text)
        assert tree_of(kernel)["name"] == offer.name
        for one in numbers_of(kernel):
            assert one["low"] <= one["value"] <= one["high"]
    scene = scene_of("SVC", "classes", kernel="2 * gaussian(1) + linear")
    found, _ = asked("fit", scene={**scene, "parameters": {"kernel__k1__k1__scale": 5.0}})
    assert found["kernel"] == "2.0 * Gaussian(scale=5.0) + Linear()"


HOSTILE = [
    ({"task": "nothing"}, "task"),
    ({"points": [[0, 0]]}, "3 numbers"),
    ({"points": [[0, 0, 99], [1, 1, 0]]}, "labels"),
    ({"points": [[0, 0, 0.5], [1, 1, 0]]}, "labels"),
    ({"points": [[1e300, 0, 0], [1, 1, 1]]}, "within"),
    ({"points": [["a", 0, 0]]}, "3 numbers"),
    ({"points": [[0, 0, 0]] * 3000}, "at most 2000"),
    ({"points": []}, "paint some"),
    ({"points": [[0, 0, 0], [1, 1, 0]]}, "class"),
    ({"machine": "KMeans"}, "not for"),
    ({"machine": "__import__"}, "no estimator"),
    ({"machine": ["SVC"]}, "no estimator"),
    ({"parameters": {"callback": "print"}}, "no parameter"),
    ({"parameters": {"C": "1"}}, "number"),
    ({"parameters": {"C": -1}}, "C=-1"),
    ({"parameters": {"C": "nan"}}, "C=nan"),
    ({"parameters": {"slack": "l3"}}, "one of l1, l2"),
    ({"kernel": "open('/etc/passwd')"}, ""),
    ({"kernel": "gaussian(2"}, ""),
    ({"kernel": "x" * 3000}, "2000 characters"),
    ({"kernel": "precomputed"}, ""),
    ({"kernel": "spectrum(3)"}, ""),
    ({"kernel": "linear[7]"}, ""),
    ({"parameters": {"kernel__scale": "a"}}, "number"),
    ({"parameters": {"kernel__nothing": 1}}, ""),
    ({"view": {"nx": 10_000}}, "400"),
    ({"view": {"bounds": [1, 0, 0, 1]}}, "x0 < x1"),
    ({"view": {"bounds": [0, 1, 0]}}, "four numbers"),
    ({"view": 7}, "object"),
    ({"table": {"id": "../etc/passwd"}}, "not here"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "words"), HOSTILE)
def test_what_a_scene_cannot_have_is_refused_in_words(change, words):
    with pytest.raises((ValueError, TypeError, IndexError)) as caught:
        asked("fit", scene={**scene_of("SVC", "classes"), **change})
    assert words in str(caught.value) and len(str(caught.value)) > 3


def test_where_a_text_is_no_kernel_is_told():
    with pytest.raises(RefusalError) as caught:
        asked("kernel", scene=scene_of("SVC", "classes", kernel="gaussian(0.5) + matrn(1)"))
    assert caught.value.position == 16 and caught.value.parameter == "kernel"


@pytest.mark.parametrize("do", [*QUICK, *LONG])
def test_requests_without_anything_are_refused(do):
    with pytest.raises(RefusalError):
        asked(do)


@pytest.mark.parametrize("scale", [1e-150, 1e-9, 1e8])
def test_hostile_scales_end_in_an_answer_or_in_words(scale):
    points = np.array(PRESETS["moons"].scene(30)["points"])
    points[:, :2] *= scale
    scene = {**scene_of("SVC", "classes"), "points": points.tolist(), "kernel": "gaussian"}
    try:
        found, _ = asked("fit", scene=scene)
        assert found["status"]["words"]
    except (ValueError, TypeError) as error:
        assert str(error)


def test_numbers_that_json_has_not_have_names():
    assert plain({"a": [np.inf, -np.inf, np.nan, np.float32(1), np.bool_(True)]}) == {
        "a": ["inf", "-inf", "nan", 1.0, True]
    }
    assert Number("x", 1.0, "").read("-inf") == -np.inf
    for kind, value in ((Number, True), (Integer, 1.5), (Switch, 1)):
        with pytest.raises(RefusalError, match="must be"):
            kind("x", 1, "").read(value)
    with pytest.raises(RefusalError, match="one of"):
        WordChoice("x", "a", "", ("a", "b")).read("c")
