"""Random actions on the studio's page for some minutes: memory stays flat, nothing is wrong.

    python tests/studio/soak.py --minutes 10 --seed 1

prints the heap of the page (after collection) as it goes, and ends with 1 if it grew or an error
was written to the console. Needs playwright and a browser, as `tests/studio/browser` does.
"""

import argparse
import random
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

MEASURED = 24  # times over the whole run
GROWTH = 1.25  # of the heap from the second quarter to the last, more is a leak
SLACK = 4e6  # bytes
KERNELS = (
    "gaussian(0.3)",
    "linear",
    "poly(3)",
    "gaussian(1) + linear",
    "gausian(",
    "laplacian(0.5)",
)


def place(draw):
    return draw.uniform(0.05, 0.9), draw.uniform(0.1, 0.95)


def stroke(reader, draw):
    reader.drag(place(draw), place(draw), steps=12)


def point(reader, draw):
    reader.press(*place(draw))


def press_one(selector):
    """Return an action: press one of these buttons."""

    def act(reader, draw):
        buttons = reader.page.locator(f"{selector}:visible:enabled")
        if count := buttons.count():
            buttons.nth(draw.randrange(count)).click()

    return act


def choose(selector):
    """Return an action: choose an entry."""

    def act(reader, draw):
        listed = "all => all.map((o) => o.value).filter((v) => v !== '')"
        options = reader.page.eval_on_selector_all(f"{selector} option", listed)
        if options and reader.page.is_visible(selector):
            reader.page.select_option(selector, draw.choice(options))

    return act


def slide(reader, draw):
    sliders = reader.page.locator(".panel:not([hidden]) input[type=range]:visible")
    if count := sliders.count():
        sliders.nth(draw.randrange(count)).focus()
        for _ in range(draw.randrange(1, 8)):
            reader.page.keyboard.press(draw.choice(["PageUp", "PageDown", "ArrowRight", "Home"]))


def undo(reader, draw):
    reader.page.keyboard.press(draw.choice(["Control+z", "Control+Shift+z"]))


def kernel(reader, draw):
    reader.panel("kernel")
    if reader.page.is_visible("#kernel-text"):
        reader.page.fill("#kernel-text", draw.choice(KERNELS))


def tour(reader, draw):
    reader.panel("learn")
    page, buttons = reader.page, reader.page.locator("[data-tour]")
    if not buttons.count():
        page.click("#tour-leave")
        return
    buttons.nth(draw.randrange(buttons.count())).click()
    page.locator("#tour-step").wait_for()  # a handle of an element would hold the whole tour
    for _ in range(4):
        if page.is_enabled("#tour-step"):
            page.click("#tour-step")
    page.click(draw.choice(["#tour-leave", "#tour-keep"]))


def tune(reader, draw):
    reader.panel("machine")
    if reader.page.is_visible("#tune") and reader.page.is_enabled("#tune"):
        reader.page.click("#tune")
        reader.page.wait_for_timeout(draw.randrange(50, 900))
        press_one("#tune-stop")(reader, draw)


def why(reader, draw):
    reader.panel("why")
    reader.page.mouse.move(*reader.place(*place(draw)), steps=3)


def wheel(reader, draw):
    reader.page.mouse.move(*reader.place(*place(draw)))
    reader.page.mouse.wheel(0, draw.choice([-240, 240]))
    reader.page.click("#fit-view")


# how often, what
ACTIONS = (
    (8, stroke),
    (6, point),
    (4, press_one(".brushes button")),
    (4, slide),
    (3, undo),
    (3, why),
    (3, press_one("[role=tab]")),
    (2, kernel),
    (2, choose("#machine")),
    (2, choose("#preset")),
    (1, choose("#task")),
    (1, tour),
    (1, tune),
    (1, wheel),
    (1, press_one("#theme")),
    (1, press_one("[aria-label='Clear all points']")),
    (1, press_one("[data-tool]")),
    (1, press_one(".legend button")),
)


def heap(session):
    """Return the bytes that the page holds, after collection."""
    session.send("HeapProfiler.collectGarbage")
    found = session.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in found if one["name"] == "JSHeapUsedSize")


def soak(minutes, seed, address, browser):
    """Act at random; return the heap as it was, the count of actions, and errors."""
    from playwright.sync_api import TimeoutError
    from studio.browser.reader import Reader

    draw = random.Random(seed)
    reader = Reader(browser.new_page(viewport={"width": 1200, "height": 760}), address).open()
    reader.page.set_default_timeout(3000)
    session = reader.page.context.new_cdp_session(reader.page)
    session.send("Performance.enable")
    heaps, done = [], 0
    start = time.monotonic()
    while (gone := time.monotonic() - start) < 60 * minutes:
        if gone >= len(heaps) * 60 * minutes / MEASURED:
            heaps.append(heap(session))
            print(f"{gone:6.0f} s  {done:5d} actions  {heaps[-1] / 1e6:6.1f} MB", flush=True)
        weights, offered = zip(*ACTIONS, strict=True)
        with suppress(TimeoutError):  # what was there when it was looked for may be gone
            draw.choices(offered, weights)[0](reader, draw)
        done += 1
    heaps.append(heap(session))
    return heaps, done, reader.errors


def main():
    """Run a studio and a browser, and judge."""
    from studio.browser import conftest

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with ExitStack() as stack:
        address = stack.enter_context(conftest.studio_address())
        browser = stack.enter_context(conftest.opened_browser())
        heaps, done, errors = soak(given.minutes, given.seed, address, browser)
    quarter = max(1, len(heaps) // 4)
    early = sorted(heaps[quarter : 2 * quarter])[quarter // 2]
    late = sorted(heaps[-quarter:])[quarter // 2]
    print(
        f"{done} actions; heap {early / 1e6:.1f} MB, then {late / 1e6:.1f} MB; {len(errors)} errors"
    )
    for error in errors[:20]:
        print("  ", error)
    return int(bool(errors) or late > GROWTH * early + SLACK)


if __name__ == "__main__":
    sys.exit(main())
