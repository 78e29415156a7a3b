"""Render the studio's page anew: a sheet for each panel and each tour, beside this file.

    python tests/studio/references/render.py [NAME ...] [--steps FOLDER]

Each sheet shows a phone and a wide screen, light and dark; the dark phone is scrolled to the panel.
Of a tour its last step is shown. With --steps all steps of the tours are
rendered, too, into a folder of their own. Needs playwright, Pillow and a browser.
"""

import argparse
import io
import sys
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

PHONE, WIDE = (390, 844), (1600, 1000)
HEIGHT = 340  # pixels of a sheet
COLOURS = 40  # of its palette: small files, and the page has no more that matter
STEP = 460  # pixels of a step of a tour
GAP = 6
PANELS = ("machine", "kernel", "proof", "why", "data", "learn")


def picture(reader):
    """Return what the window shows."""
    from PIL import Image

    if reader.scrolls:  # the light one shows the plane
        reader.page.locator("#tabs").evaluate("tabs => tabs.scrollIntoView()")
    reader.drawn()
    return Image.open(io.BytesIO(reader.page.screenshot(animations="disabled")))


def sheet(pictures, height, across):
    """Return pictures of one height beside and below one another."""
    from PIL import Image

    sized = [one.resize((round(one.width * height / one.height), height)) for one in pictures]
    rows = [sized[k : k + across] for k in range(0, len(sized), across)]
    width = max(sum(one.width + GAP for one in row) for row in rows)
    found = Image.new("RGB", (width, len(rows) * (height + GAP)), "#888")
    for k, row in enumerate(rows):
        left = 0
        for one in row:
            found.paste(one.convert("RGB"), (left, k * (height + GAP)))
            left += one.width + GAP
    return found


def saved(image, file, colours=COLOURS):
    """Write a picture with few colours."""
    image.convert("RGB").quantize(colours).save(file, optimize=True)
    print(f"{file.name:32s} {file.stat().st_size / 1024:6.1f} KB", flush=True)


def show_panel(reader, name):
    """Open a panel as a reader would who uses it."""
    reader.panel(name)
    reader.settle()
    if name == "machine":
        reader.page.wait_for_selector("details.curve[open] .chart .dot")
        reader.page.wait_for_selector("details.curve[open] button.link")
    elif name == "kernel":
        reader.page.wait_for_selector("#panel-kernel .pixels")
    elif name == "proof":
        reader.page.wait_for_selector("#panel-proof .steps .chart")
    elif name == "why":
        reader.page.mouse.move(*reader.place(0.42, 0.55), steps=3)
        reader.page.wait_for_selector("#panel-why .bars li")
    elif name == "learn":
        reader.page.wait_for_selector("[data-tour]")


def show_tour(reader, name):
    """Open a tour at its first step."""
    reader.panel("learn")
    reader.page.wait_for_selector("[data-tour], #tour-leave")
    if reader.page.is_visible("#tour-leave"):
        reader.page.click("#tour-leave")
    reader.page.click(f"[data-tour={name}]")
    reader.page.wait_for_selector("#tour-step")


def steps(reader, name):
    """Go through a tour; yields at each step."""
    show_tour(reader, name)
    while True:
        reader.settle_tour()
        yield
        if reader.page.is_disabled("#tour-step"):
            return
        reader.page.click("#tour-step")


def last_step(reader, name):
    """Go to the end of a tour, and return what is shown."""
    show_tour(reader, name)
    reader.page.press(".player input[type=range]", "End")
    reader.settle_tour()
    return picture(reader)


def main():
    """Render what is asked for, or all."""
    from studio.browser import conftest
    from studio.browser.reader import Reader

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="panels or tours; all, unless some are named")
    parser.add_argument("--steps", type=Path, help="a folder for all steps of the tours")
    given = parser.parse_args()
    with ExitStack() as stack:
        address = stack.enter_context(conftest.studio_address())
        browser = stack.enter_context(conftest.opened_browser())
        readers = []
        for width, height in (PHONE, WIDE):
            for scheme in ("light", "dark"):
                screen = {"width": width, "height": height}
                page = browser.new_page(viewport=screen, color_scheme=scheme)
                readers.append(Reader(page, address).open())
                readers[-1].scrolls = scheme == "dark" and width == PHONE[0]
        tours = readers[0].tours()
        for name in given.names or [*PANELS, *tours]:
            shots = []
            for reader in readers:
                if name in PANELS:
                    show_panel(reader, name)
                    shots.append(picture(reader))
                    continue
                if given.steps and reader is readers[2]:
                    every = [picture(reader) for _ in steps(reader, name)]
                    saved(sheet(every, STEP, 2), given.steps / f"{name}.png")
                shots.append(last_step(reader, name))
            kind = "panel" if name in PANELS else "tour"
            saved(sheet(shots, HEIGHT, 4), HERE / f"{kind}-{name}.png")


if __name__ == "__main__":
    main()
