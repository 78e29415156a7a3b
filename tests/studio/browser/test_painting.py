"""Points painted, dragged, erased and taken back; each change is fitted and drawn."""

import pytest


def test_the_first_page_shows_a_fit(reader):
    assert reader.points > 20
    assert reader.plane("machine") == "SVC"
    assert "certified" in reader.verdict()


def test_a_stroke_paints_points_and_is_one_step_of_undo(reader):
    reader.clear()
    assert reader.points == 0
    assert reader.page.is_visible("#hint")
    reader.drag((0.2, 0.3), (0.2, 0.8))
    reader.page.click("[data-brush='1']")
    reader.drag((0.7, 0.3), (0.7, 0.8))
    painted = reader.points
    assert painted > 6
    reader.settle()
    assert "certified" in reader.verdict()
    reader.page.keyboard.press("Control+z")
    assert 0 < reader.points < painted
    reader.page.keyboard.press("Control+Shift+z")
    assert reader.points == painted
    reader.settle()


def test_a_point_is_dragged_and_the_surface_follows(reader):
    reader.clear()
    for place in [(0.2, 0.2), (0.3, 0.4)]:
        reader.press(*place)
    reader.page.click("[data-brush='1']")
    reader.press(0.7, 0.7)
    reader.settle()
    before, seen = reader.answers, reader.picture()
    reader.drag((0.7, 0.7), (0.5, 0.2))
    reader.answered(before)
    assert reader.points == 3
    assert reader.picture() != seen
    reader.page.click("#undo")
    reader.settle()
    reader.page.mouse.move(*reader.place(0.9, 0.1))
    assert reader.picture() == seen


def test_erasing_takes_points_away(reader):
    reader.clear()
    for place in [(0.2, 0.2), (0.5, 0.5), (0.8, 0.8)]:
        reader.press(*place)
    reader.tool("erase")
    reader.drag((0.45, 0.45), (0.55, 0.55), steps=20)
    assert reader.points == 2


def test_the_old_surface_stays_until_the_new_one_comes(reader):
    below = "() => document.getElementById('below').toDataURL().length"
    drawn = reader.page.evaluate(below)
    reader.page.mouse.move(*reader.place(0.5, 0.95))
    reader.page.mouse.down()
    assert reader.page.evaluate(below) > drawn / 2  # never blank
    reader.page.mouse.up()
    reader.settle()


@pytest.mark.parametrize("name", ["rings", "spirals", "groups"])
def test_presets_show_their_points(reader, name):
    reader.preset(name)
    assert reader.points > 20
    assert reader.plane("refused") == "false"


def test_every_task_and_machine_draws_an_answer(reader):
    """Each machine of each task, with its defaults, from the first example of the task."""
    page = reader.page
    tasks = page.eval_on_selector_all("#task option", "all => all.map((o) => o.value)")
    assert set(tasks) >= {"classes", "regression", "unlabelled"}
    for task in tasks:
        group = f"#preset optgroup:nth-of-type({tasks.index(task) + 1}) option"
        presets = page.eval_on_selector_all(group, "all => all.map((o) => o.value)")
        reader.preset(presets[0])
        machines = page.eval_on_selector_all("#machine option", "all => all.map((o) => o.value)")
        for machine in machines:
            if page.input_value("#machine") == machine:
                continue
            page.select_option("#machine", machine)
            page.wait_for_function(
                """(name) => {
                    const d = document.getElementById("plane").dataset;
                    return d.refused === "true" || (d.machine === name && d.working === "false");
                }""",
                arg=machine,
            )
            assert reader.plane("refused") == "false", (task, machine, reader.verdict())


def test_two_thousand_points_stay_under_the_finger(reader):
    """The pointer's work is the page's own: a frame with all points is drawn within the drag."""
    reader.preset("moons")
    frames = reader.page.evaluate(
        """async () => {
            const plane = document.getElementById("plane");
            const box = plane.getBoundingClientRect();
            const send = (kind, x, y) => plane.dispatchEvent(new PointerEvent(kind, {
                pointerId: 9, bubbles: true, button: 0,
                clientX: box.left + x, clientY: box.top + y }));
            const wide = box.width - 10;
            const count = () => Number(plane.dataset.points);
            send("pointerdown", 5, 5);
            for (let k = 0; count() < 1999 && k < 6000; k += 1) {
                const down = Math.floor((16 * k) / wide) % 40;
                send("pointermove", 5 + ((16 * k) % wide), 5 + 16 * down);
            }
            const start = performance.now();
            for (let k = 0; k < 10; k += 1) {
                send("pointermove", 20 + 16 * k, 300);
                await new Promise(requestAnimationFrame);
            }
            const each = (performance.now() - start) / 10;
            send("pointerup", 5, 5);
            return [count(), each];
        }"""
    )
    assert frames[0] >= 1999
