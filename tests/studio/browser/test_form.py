"""Light and dark, phone and screen, keyboard and screen reader."""

import gzip
import re
from pathlib import Path

import pytest
from studio.browser.conftest import SCREEN

AXE = Path(__file__).parent / "axe" / "axe.min.js.gz"
PANELS = ("machine", "kernel", "proof", "why", "data", "learn")


def findings(page):
    """Return what axe-core finds wrong, serious or worse."""
    return page.evaluate(
        """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
            .filter((v) => ["serious", "critical"].includes(v.impact))
            .map((v) => `${v.id}: ${v.nodes.map((n) => n.target).join(" ")}`)"""
    )


def test_no_serious_finding_of_axe_in_any_panel(new_reader):
    reader = new_reader(bypass_csp=True).open()  # axe is put in from outside
    page = reader.page
    page.evaluate(gzip.decompress(AXE.read_bytes()).decode())
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for panel in PANELS:
            reader.panel(panel)
            reader.settle()
            reader.drawn()
            assert findings(page) == [], (scheme, panel)


@pytest.fixture
def resized(reader):
    """Return a function that changes the size of the window, which is as before in the end."""
    yield lambda width: reader.page.set_viewport_size({"width": width, "height": 780})
    reader.page.set_viewport_size(SCREEN)


@pytest.mark.parametrize("width", [360, 768, 1920])
def test_nothing_sticks_out_at_any_width(reader, resized, width):
    resized(width)
    for panel in PANELS:
        reader.panel(panel)
        reader.drawn()
        wide = reader.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, panel
    box = reader.page.locator("#plane").bounding_box()
    assert box["width"] > 0.45 * width
    assert box["height"] > 250


def test_a_finger_paints(new_reader):
    reader = new_reader(viewport={"width": 390, "height": 780}, has_touch=True).open()
    before = reader.points
    reader.page.touchscreen.tap(*reader.place(0.1, 0.9))
    assert reader.points == before + 1


def test_the_switch_of_themes_is_kept(reader):
    page = reader.page
    ground = "getComputedStyle(document.body).backgroundColor"
    light, seen = page.evaluate(ground), reader.picture()
    page.click("#theme")
    assert page.evaluate(ground) != light
    assert reader.picture() != seen
    page.reload()
    page.wait_for_selector("#plane[data-answers]")
    assert page.evaluate(ground) != light
    page.click("#theme")
    assert page.evaluate(ground) == light


def test_points_by_keyboard_alone(reader):
    page = reader.page
    reader.clear()
    page.focus("#plane")
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    for _ in range(6):
        page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    assert reader.points == 2
    reader.settle()
    page.wait_for_function("() => document.querySelector('#voice').innerText.includes('right on')")
    before = reader.answers
    page.keyboard.press("n")
    page.keyboard.press("ArrowUp")
    reader.answered(before)
    assert "certified" in reader.verdict()
    page.keyboard.press("Delete")
    assert reader.points == 1


def test_a_cut_link_comes_back_and_nothing_is_lost(new_reader):
    reader, sockets = new_reader(), []
    reader.page.route_web_socket(
        re.compile("/socket"), lambda page: sockets.append((page, page.connect_to_server()))
    )
    reader.open()
    before = reader.points
    sockets[0][0].close()
    reader.press(0.9, 0.95)
    reader.page.wait_for_function("() => !document.querySelector('#verdict .warn')")
    reader.settle()
    assert len(sockets) == 2
    assert reader.points == before + 1
