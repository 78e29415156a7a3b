"""The reader's own table: opened, looked at from several sides, reported, exported."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris


@pytest.fixture(scope="module")
def flowers(tmp_path_factory):
    data = load_iris()
    lines = ["sepal length,sepal width,petal length,petal width,species"]
    for row, kind in zip(data.data, data.target, strict=True):
        lines.append(",".join(map(str, row)) + "," + data.target_names[kind])
    file = tmp_path_factory.mktemp("data") / "flowers.csv"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


@pytest.fixture
def opened(reader, flowers):
    reader.panel("data")
    before = reader.answers
    reader.page.set_input_files("#file", str(flowers))
    reader.page.wait_for_selector("#target")
    reader.answered(before)
    return reader


def saved(reader, button):
    with reader.page.expect_download() as waiting:
        reader.page.click(button)
    return waiting.value.suggested_filename, Path(waiting.value.path()).read_bytes()


def test_a_table_is_opened_and_fitted(opened):
    page = opened.page
    assert page.input_value("#target") == "species"
    assert "150 rows" in page.inner_text("#data-says")
    for view in page.eval_on_selector_all("#view option", "all => all.map((o) => o.value)"):
        if page.input_value("#view") != view:
            before = opened.answers
            page.select_option("#view", view)
            opened.answered(before)
        assert opened.plane("refused") == "false", (view, opened.verdict())


def test_another_target_is_another_task(opened):
    before = opened.answers
    opened.page.select_option("#target", "petal width")
    opened.answered(before)
    assert opened.page.input_value("#task") == "targets"


def test_a_file_that_is_no_table_is_refused_in_words(reader, tmp_path):
    file = tmp_path / "broken.csv"
    file.write_text('a,b\n1,"2\n', encoding="utf-8")
    reader.panel("data")
    reader.page.set_input_files("#file", str(file))
    reader.page.wait_for_function(
        "() => !/Reading|Nothing/.test(document.getElementById('data-says').innerText)"
    )
    assert len(reader.page.inner_text("#data-says")) > 10
    reader.errors[:] = [
        error for error in reader.errors if "422" not in error
    ]  # Chromium's own word


@pytest.mark.parametrize("what", ["python", "libsvm", "csv", "model"])
def test_exports(reader, what):
    reader.panel("data")
    name, content = saved(reader, f"#export-{what}")
    assert content
    if what == "python":
        compile(content, name, "exec")
        assert b"SVC(" in content
    elif what in {"libsvm", "csv"}:
        assert abs(len(content.splitlines()) - reader.points) <= 1


def test_pictures(reader):
    reader.panel("data")
    name, png = saved(reader, "#export-png")
    assert name.endswith(".png")
    assert png.startswith(b"\x89PNG")
    _, svg = saved(reader, "#export-svg")
    assert svg.startswith(b"<svg")
    assert svg.count(b"<path") > 5
    assert b"http" not in svg.replace(b"http://www.w3.org", b"")


def test_the_report_in_one_press(opened):
    name, content = saved(opened, "#export-report")
    assert name.endswith(".html")
    assert b"flowers" in content or b"species" in content


def test_json_of_the_page_is_not_needed(opened):
    """Nothing but the socket and the upload is asked after the page is there."""
    asked = opened.page.evaluate("performance.getEntriesByType('resource').map((e) => e.name)")
    base = opened.address.split("?")[0]
    outside = [name for name in asked if not name.startswith(base)]
    assert not outside, json.dumps(outside)
    assert np.isfinite(len(asked))


def test_rings_are_around_the_rows_that_are_meant(reader, tmp_path):
    """Rows without a target are left out: those after them keep their numbers in the file."""
    file = tmp_path / "gaps.csv"
    rows = np.random.default_rng(0).normal(size=(60, 2)).round(2).tolist()
    kinds = [""] * 20 + ["up" if a > b else "down" for a, b in rows[20:]]
    lines = [f"{a},{b},{kind}" for (a, b), kind in zip(rows, kinds, strict=True)]
    file.write_text("\n".join(["a,b,kind", *lines]), encoding="utf-8")
    reader.panel("data")
    before = reader.answers
    with reader.page.expect_response("**/table") as told:
        reader.page.set_input_files("#file", str(file))
    reader.page.wait_for_selector("#target")
    reader.answered(before)
    found = reader.page.evaluate(
        """async ([scene, token]) => {
            const from = (name) => import(new URL(`page/scripts/${name}.js`, document.baseURI));
            const { Link } = await from("link/socket");
            const { drawnRows } = await from("plane/answer_layers");
            const { placeOf } = await from("plane/points_layer");
            const link = new Link(token);
            const hello = new Promise((done) => link.addEventListener("hello", done));
            link.connect();
            await hello;
            const { layers } = await link.ask("fit", { scene }).done;
            const drawn = drawnRows(layers);
            return layers.support.index.map((row) => {
                const place = placeOf(drawn, row);
                return [row, drawn.x[place], drawn.y[place]];
            });
        }""",
        [told.value.json()["scene"], reader.address.partition("token=")[2]],
    )
    assert len(found) > 2 and max(row for row, *_ in found) > 40
    for row, *place in found:
        assert place == pytest.approx(rows[row], abs=1e-5)
