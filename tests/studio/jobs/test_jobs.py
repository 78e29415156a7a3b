"""Why, kernels, curves, grids, proofs, exports, reports, tours: each against another way."""

import base64
import io
import json
import math

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneOut, cross_val_score
from studio.test_catalog import VIEW, array, asked, scene_of

import mercer
from mercer.data import read
from mercer.studio.catalog import MACHINES
from mercer.studio.jobs import export
from mercer.studio.jobs.bench import Bench, read_table
from mercer.studio.limits import RefusalError, StudioLimits
from mercer.studio.presets import PRESETS
from mercer.studio.tables import described
from mercer.studio.tours import TOURS

RNG = np.random.default_rng(0)
COLUMNS = {name: RNG.normal(size=90) for name in ("width", "length", "height")}
TOWNS = RNG.choice(["Ulm", "Bern", "Köln"], 90)
KINDS = np.where(COLUMNS["width"] + (TOWNS == "Ulm") > 0.3, "large", "small")
LINES = ["width,length,height,town,kind"] + [
    ",".join([*(f"{COLUMNS[name][k]:.4f}" for name in COLUMNS), TOWNS[k], KINDS[k]])
    for k in range(90)
]
CSV = "\n".join(LINES).encode()


@pytest.fixture(scope="module")
def bench():
    found = Bench()
    found.keep("t1", "towns.csv", CSV)
    return found


@pytest.fixture(scope="module")
def table_scene(bench):
    scene = described(bench.table("t1"))["scene"]
    return {**scene, "table": {**scene["table"], "id": "t1"}, "view": {**scene["view"], **SMALL}}


SMALL = {"nx": 8, "ny": 8}


def fitted(name, X, y, **parameters):
    return getattr(mercer, name)(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("name", "task", "more"),
    [
        ("SVC", "classes", {}),
        ("LogisticRegression", "classes", {"kernel": "gaussian(1)"}),
        ("SVR", "targets", {}),
        ("KernelRidge", "targets", {}),
        ("GaussianProcess", "targets", {}),
        ("OneClassSVM", "unlabelled", {"kernel": "gaussian(1)"}),
    ],
)
def test_why_is_the_exact_sum(name, task, more):
    found, _ = asked("why", scene=scene_of(name, task, **more), at=[0.3, -0.2])
    parts = [one["coefficient"] * one["kernel"] for one in found["terms"]]
    assert [one["contribution"] for one in found["terms"]] == parts
    assert sorted(map(abs, parts), reverse=True) == list(map(abs, parts))
    total = math.fsum([*parts, found["rest"]["sum"], found["intercept"]])
    assert total == pytest.approx(found["sum"], rel=1e-12, abs=1e-12)
    assert found["sum"] == pytest.approx(found["value"], rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_why_of_several_classes_is_the_pair_that_decides(multiclass):
    scene = PRESETS["groups"].scene(60)
    points = np.array(scene["points"])
    X, y = points[:, :2], points[:, 2].astype(int)
    scene["parameters"] = {"multiclass": multiclass}
    for at in ([0.3, 0.2], [-0.7, 0.1], [0.1, -0.7]):
        found, _ = asked("why", scene=scene, at=at)
        a, b = found["against"]
        assert found["label"] in (a, b)
        assert (found["sum"] > 0) == (found["label"] == b)
        if multiclass == "ovo":
            chosen = (y == a) | (y == b)
            two = mercer.SVC("gaussian(0.5)").fit(X[chosen], y[chosen])
            assert found["sum"] == pytest.approx(two.decision_function([at])[0], abs=5e-3)


@pytest.mark.parametrize("classes", [2, 4])
def test_why_of_naive_bayes_is_a_sum_over_columns(classes):
    points = PRESETS["moons" if classes == 2 else "groups"].scene(60)["points"]
    scene = {**scene_of("NaiveBayes", "classes"), "points": points}
    found, _ = asked("why", scene=scene, at=[0.3, -0.2])
    assert {term["name"] for term in found["terms"]} == {"x1", "x2"}
    assert found["sum"] == pytest.approx(found["value"], rel=1e-9)
    rows = np.array(points)
    machine = mercer.NaiveBayes().fit(rows[:, :2], rows[:, 2].astype(int))
    logs = machine.predict_log_proba([[0.3, -0.2]])[0]
    assert found["value"] == pytest.approx(logs[found["against"][1]] - logs[found["against"][0]])


@pytest.mark.parametrize("classes", [2, 4])
def test_why_of_a_process_is_the_sum_of_its_latent_mean(classes):
    points = PRESETS["moons" if classes == 2 else "groups"].scene(40)["points"]
    scene = {**scene_of("GaussianProcessClassifier", "classes"), "points": points}
    found, _ = asked("why", scene=scene, at=[0.3, -0.2])
    assert found["sum"] == pytest.approx(found["value"], rel=1e-6)


def test_why_of_a_ball_is_the_sum_of_its_decision():
    found, _ = asked("why", scene=scene_of("EnclosingBall", "unlabelled"), at=[0.3, -0.2])
    assert found["sum"] == pytest.approx(found["value"], rel=1e-6, abs=1e-9)


def test_why_of_neighbours_is_who_votes():
    scene = scene_of("NearestNeighbors", "classes", parameters={"n_neighbors": 7})
    found, _ = asked("why", scene=scene, at=[0.3, -0.2])
    points = np.array(scene["points"])
    near = np.argsort(((points[:, :2] - [0.3, -0.2]) ** 2).sum(axis=1))[:7]
    assert {term["index"] for term in found["terms"]} == set(near.tolist())
    agree = [term for term in found["terms"] if term["contribution"] > 0]
    assert len(agree) / 7 == pytest.approx(found["probability"][found["label"]])


@pytest.mark.parametrize(
    ("name", "task", "count"),
    [
        ("GaussianClassifier", "classes", 2),
        ("GaussianMixture", "unlabelled", 3),
        ("LabelSpreading", "classes", 2),
    ],
)
def test_why_of_probabilities_is_all_of_them(name, task, count):
    found, _ = asked("why", scene=scene_of(name, task), at=[0.3, -0.2])
    shares = [term["contribution"] for term in found["terms"]]
    assert len(shares) == count and sum(shares) == pytest.approx(1.0)
    assert shares == sorted(shares, reverse=True) and found["title"] and found["words"]


def test_why_of_means_is_how_far_they_are():
    found, _ = asked("why", scene=scene_of("KMeans", "unlabelled"), at=[0.3, -0.2])
    far = [term["contribution"] for term in found["terms"]]
    assert far == sorted(far) and found["value"] == far[0] and len(far) == 3


def test_why_is_refused_where_there_is_nothing_to_take_apart():
    with pytest.raises(RefusalError, match="neither a sum over points"):
        asked("why", scene=scene_of("SpectralClustering", "unlabelled"), at=[0, 0])


def test_a_kernel_is_shown_with_matrix_spectrum_and_features():
    scene = scene_of("SVC", "classes", kernel="polynomial(2)")
    found, _ = asked("kernel", scene=scene)
    assert found["features"] == "x1^2, 1.414 x1 x2, 1.414 x1, x2^2, 1.414 x2, 1"
    assert found["dimension"] == found["rank"] == 6 and found["valid"]
    X = np.array(scene["points"])[:, :2]
    order = np.array(found["order"])
    kernel = mercer.kernels.parse("polynomial(2)")
    np.testing.assert_allclose(array(found["matrix"]), kernel(X[order]), rtol=1e-6)
    truth = np.linalg.eigvalsh(kernel(X))[::-1]
    np.testing.assert_allclose(found["eigenvalues"][:6], truth[:6])
    gaussian, _ = asked("kernel", scene=scene_of("SVC", "classes", kernel="gaussian(0.5)"))
    assert gaussian["dimension"] is None
    sigmoid, _ = asked("kernel", scene=scene_of("SVC", "classes", kernel="sigmoid(2, -1)"))
    assert not sigmoid["valid"] and min(sigmoid["eigenvalues"]) < 0
    empty, _ = asked("kernel", scene={**scene, "points": []})
    assert empty["matrix"] is None and empty["slice"]["y"]


def test_the_curve_is_that_of_leaving_out():
    scene = scene_of("KernelRidge", "targets", 30, kernel="gaussian(0.5)")
    found, told = asked("curve", scene=scene, parameter="penalty")
    points = np.array(scene["points"])
    assert found["how"] == "leave-one-out" and len(told) == len(found["x"]) == 15
    at = 9
    machine = mercer.KernelRidge(found["x"][at], "gaussian(0.5)")
    truth = cross_val_score(
        machine, points[:, :2], points[:, 2], cv=LeaveOneOut(), scoring="neg_mean_squared_error"
    )
    assert found["score"][at] == pytest.approx(truth.mean(), rel=1e-6)
    assert found["best"] == found["x"][int(np.argmax(found["score"]))]
    inner, _ = asked("curve", scene=scene_of("SVC", "classes", 70), parameter="kernel__scale")
    assert inner["how"] == "5-fold" and max(inner["score"]) > 0.8


def test_the_grid_comes_cell_by_cell():
    found, told = asked("tune", scene=scene_of("SVC", "classes", 70), count=[3, 4])
    cells = {tuple(one["cell"]): one["score"] for one in told[1:]}
    assert told[0]["rows"] == found["rows"] and len(cells) == 12
    assert np.array(found["score"]).shape == (3, 4)
    assert all(found["score"][i][j] == score for (i, j), score in cells.items())
    best = found["best"]
    assert best["score"] == max(cells.values()) and best["parameters"].keys() == {
        "C",
        "kernel__scale",
    }
    with pytest.raises(RefusalError, match="no cross-validation score"):
        asked("tune", scene=scene_of("KMeans", "unlabelled"))


def test_gap_and_violation_fall_to_what_the_certificate_says():
    found, told = asked("prove", scene=scene_of("SVC", "classes", 60, parameters={"C": 10.0}))
    steps = found["steps"]
    assert [one["step"]["gap"] for one in told] == [one["gap"] for one in steps]
    assert all(one["dual"] <= steps[-1]["primal"] * (1 + 1e-9) for one in steps)
    duals = [one["dual"] for one in steps]
    assert duals == sorted(duals) and steps[0]["gap"] > 100 * steps[-1]["gap"]
    assert found["certificate"]["ok"] and found["status"]["name"] == "SOLVED"
    with pytest.raises(RefusalError, match="no duality gap"):
        asked("prove", scene=scene_of("KernelRidge", "targets"))


def test_a_table_is_described_and_a_scene_suggested(bench):
    found = described(bench.table("t1"))
    kinds = {one["name"]: one["kind"] for one in found["columns"]}
    assert kinds["town"] == "category" and kinds["kind"] == "binary"
    assert found["target"] == "kind" and found["task"] == "classes" and found["rows"] == 90
    json.dumps(found)


@pytest.mark.parametrize("kind", ["columns", "components", "discriminant", "correlation"])
def test_a_table_is_seen_in_each_plane(bench, table_scene, kind):
    view = {"bounds": None, **SMALL, "plane": {"kind": kind}}
    found, _ = asked("fit", bench, scene={**table_scene, "view": view})
    layers = found["layers"]
    assert layers["rows"]["shape"] == [90, 2] and layers["names"] == ["large", "small"]
    assert found["status"]["name"] == "SOLVED" and len(layers["axes"]) == 2
    rows, bounds = array(layers["rows"]), found["surface"]["bounds"]
    assert (rows[:, 0] > bounds[0]).all() and (rows[:, 1] < bounds[3]).all()
    if kind == "columns":
        np.testing.assert_allclose(rows[:, 0], COLUMNS["width"], atol=1e-4)


def test_the_slice_is_at_the_values_that_are_asked_for(bench, table_scene):
    def surface(**others):
        plane = {"kind": "columns", "x": "width", "y": "length", "others": others}
        view = {"bounds": None, **SMALL, "plane": plane}
        return array(asked("fit", bench, scene={**table_scene, "view": view})[0]["surface"])

    assert not np.allclose(surface(town="Ulm"), surface(town="Bern"))
    middle = float(np.median(COLUMNS["height"]))
    np.testing.assert_allclose(surface(), surface(height=middle), atol=1e-3)


def test_wrong_choices_of_a_table_are_refused(bench, table_scene):
    for change, words in (
        ({"table": {"id": "t1", "target": "nothing"}}, "no column"),
        ({"table": {"id": "t1", "target": "kind", "columns": ["nothing"]}}, "not a usable column"),
        ({"table": {"id": "t1", "target": None}}, "choose the column"),
        ({"view": {"plane": {"kind": "nothing"}}}, "unknown plane"),
        ({"view": {"plane": {"kind": "columns", "x": "town"}}}, "columns of numbers"),
        ({"task": "targets", "machine": "SVR"}, "no numbers"),
    ):
        with pytest.raises(RefusalError, match=words):
            asked("fit", bench, scene={**table_scene, **change})


def test_exports_are_read_back(bench, table_scene, tmp_path):
    scene = scene_of("SVC", "classes", 20, kernel="gaussian(0.5)")
    points = np.array(scene["points"])

    def exported(what, scene):
        found, _ = asked("export", bench, scene=scene, what=what)
        return base64.b64decode(found["base64"])

    path = tmp_path / "studio.mercer"
    path.write_bytes(exported("model", scene))
    machine = mercer.load(path)
    truth = fitted("SVC", points[:, :2], points[:, 2].astype(int), kernel="gaussian(0.5)")
    np.testing.assert_allclose(
        machine.decision_function(points[:, :2]), truth.decision_function(points[:, :2])
    )
    names = {}
    exec(exported("python", scene).decode(), names)  # our own words
    np.testing.assert_allclose(names["machine"].dual_coef_, truth.dual_coef_)
    again = read(io.BytesIO(exported("libsvm", scene)), format="libsvm")
    assert len(again) == 20
    assert exported("csv", scene).startswith(b"x1,x2,y\n")
    path.write_bytes(exported("model", table_scene))
    model, table = mercer.load(path), bench.table("t1")
    assert set(model.predict(table.drop("kind"))) == {"large", "small"}
    assert b"read('towns.csv')" in exported("python", table_scene)
    with pytest.raises(RefusalError, match="one of"):
        exported("/etc/passwd", scene)


@pytest.mark.parametrize("task", ["unlabelled", "classes"])
def test_the_report_is_one_page(bench, table_scene, task):
    scene = {"unlabelled": scene_of("KMeans", "unlabelled", 40), "classes": table_scene}[task]
    found, _ = asked("report", bench, scene=scene)
    page = base64.b64decode(found["base64"]).decode()
    assert page.lower().startswith("<!doctype html>") and "http://" not in page.split("<body")[0]


@pytest.mark.parametrize("name", TOURS)
def test_tours_can_be_played(name):
    found, _ = asked("tour", name=name)
    frames = found["frames"]
    assert len(frames) >= 2 and found["source"]
    for frame in frames:
        assert len(frame["text"]) > 30
        if frame["answer"] is None:
            shown, _ = asked("fit", scene={**frame["scene"], "view": {**VIEW, "nx": 4, "ny": 4}})
            assert shown["machine"] == frame["scene"]["machine"]
        else:
            assert "layers" in frame["answer"]
    assert len(json.dumps(found)) < 2_000_000


def test_steps_of_the_tours_go_where_they_say():
    kmeans, _ = asked("tour", name="kmeans")
    sums = [float(one["text"].split("is ")[1].split(". ")[0]) for one in kmeans["frames"][1:-2]]
    assert len(sums) >= 3 and sums == sorted(sums, reverse=True)
    mixture, _ = asked("tour", name="mixture")
    said = [one["text"].split(":")[0] for one in mixture["frames"] if "likelihood" in one["text"]]
    likelihoods = [float(one.rpartition(" ")[2]) for one in said if one[-1].isdigit()]
    assert len(likelihoods) >= 3 and likelihoods == sorted(likelihoods)
    perceptron, _ = asked("tour", name="perceptron")
    mistakes = [one for one in perceptron["frames"] if one["mark"]]
    assert mistakes and perceptron["frames"][-2]["title"] == "A pass without a mistake"


def test_files_that_are_too_wide_are_refused():
    with pytest.raises(ValueError, match="columns"):
        read_table(b",".join(b"x%d" % k for k in range(2000)) + b"\n", StudioLimits())


ROWS = np.random.default_rng(8).normal(size=(70, 2))
OTHER = ["a,b,note,day,kind"] + [
    f"{a:.3f},{b:.3f},words about row {k} of many,2024-{1 + k % 12:02d}-{1 + k % 28:02d},"
    + ("" if k % 11 == 0 else "up" if a > b else "down")
    for k, (a, b) in enumerate(ROWS)
]


@pytest.mark.parametrize("machine", ["SVC", "CCA"])
@pytest.mark.parametrize("most", [5000, 40])
@pytest.mark.parametrize("labels", [("down", "up"), ("2", "10")])
def test_the_program_of_a_table_learns_from_the_same_rows_and_columns(
    machine, most, labels, tmp_path, monkeypatch
):
    """Without columns of words and dates, rows without a target, and those beyond the limit."""
    monkeypatch.chdir(tmp_path)
    text = "\n".join(OTHER).replace(",down", f",{labels[0]}").replace(",up", f",{labels[1]}")
    content = text.encode()
    (tmp_path / "other.csv").write_bytes(content)
    bench = Bench(StudioLimits(rows=most))
    bench.keep("t1", "other.csv", content)
    scene = described(bench.table("t1"))["scene"]
    scene["table"]["id"], scene["machine"] = "t1", machine
    scene["kernel"], scene["task"] = "gaussian(1)", "classes"
    found, names = asked("export", bench, scene=scene, what="python")[0], {}
    exec(base64.b64decode(found["base64"]).decode(), names)  # our own words
    _, known = bench.fitted({"scene": scene}, lambda told: None)
    ours, theirs = known.machine, names["model"]["machine"]
    if machine == "SVC":
        assert theirs.certificate_.statement == ours.certificate_.statement
        assert [str(label).removesuffix(".0") for label in theirs.classes_] == list(labels)
        np.testing.assert_array_equal(theirs.dual_coef_, ours.dual_coef_)
    else:
        np.testing.assert_array_equal(theirs.transform(known.rows.X), ours.transform(known.rows.X))


@pytest.mark.parametrize("name", [name for name, one in MACHINES.items() if "classes" in one.tasks])
def test_the_model_file_of_each_classifier_is_written(name, tmp_path):
    path, scene = tmp_path / "studio.mercer", scene_of(name, "classes", 30)
    found, _ = asked("export", scene=scene, what="model")
    path.write_bytes(base64.b64decode(found["base64"]))
    assert type(mercer.load(path)).__name__ == name


def test_a_file_that_is_too_large_for_the_page_is_refused(monkeypatch):
    monkeypatch.setattr(export, "_MOST", 100)
    with pytest.raises(RefusalError, match="fewer columns"):
        asked("export", scene=scene_of("SVC", "classes", 30), what="csv")


def test_classes_have_the_names_of_their_keys():
    scene = scene_of("GaussianClassifier", "classes", 30)
    found, _ = asked("why", scene=scene, at=[0.0, 0.0])
    assert {term["name"] for term in found["terms"]} == {"class 1", "class 2"}
    assert found["words"].startswith(f"class {found['label'] + 1} has")


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_the_value_of_several_classes_is_that_of_the_pair(multiclass):
    scene = {**PRESETS["groups"].scene(40), "parameters": {"multiclass": multiclass}}
    found, _ = asked("why", scene=scene, at=[0.2, 0.1])
    assert len(found["against"]) == 2 and found["value"] == found["sum"]
    assert found["label"] == found["against"][int(found["sum"] > 0)]


def test_eigenvalues_are_told_with_their_places():
    found, _ = asked("kernel", scene=scene_of("SVC", "classes", 100))
    assert found["places"] == [*range(1, 61), 97, 98, 99, 100] and len(found["eigenvalues"]) == 64


def test_terms_speak_for_the_classes_that_were_painted():
    scene = scene_of("SVC", "classes", 30)
    scene["points"] = [[x, y, 3 + label] for x, y, label in scene["points"]]
    found, _ = asked("why", scene=scene, at=[0.2, 0.1])
    assert found["pair"] == [3, 4] and found["label"] == found["pair"][int(found["sum"] > 0)]


def test_a_kernel_that_overflows_is_refused_in_words():
    with pytest.raises(RefusalError, match="smaller degree"):
        asked("kernel", scene=scene_of("SVC", "classes", kernel="polynomial(3) ** 1000"))
