"""Render the pictures of the guide's page anew: `python tests/studio/references/guide.py`."""

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]
IMAGES = HERE.parents[2] / "docs" / "images" / "studio"
SCREEN = {"width": 960, "height": 700}


def tune(reader):
    reader.panel("machine")
    reader.page.click("#tune")
    reader.page.wait_for_selector(".heat .best")
    reader.page.locator(".heat").scroll_into_view_if_needed()


def kernel(reader):
    reader.panel("kernel")
    before = reader.answers
    reader.page.fill("#kernel-text", "gaussian(0.4) + 0.5 * linear")
    reader.answered(before)
    reader.page.wait_for_selector("#panel-kernel .pixels")


def table(reader):
    from sklearn.datasets import load_iris

    data = load_iris()
    lines = ["sepal length,sepal width,petal length,petal width,species"]
    for row, kind in zip(data.data, data.target, strict=True):
        lines.append(",".join(map(str, row)) + "," + data.target_names[kind])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "flowers.csv"
        file.write_text("\n".join(lines), encoding="utf-8")
        reader.panel("data")
        before = reader.answers
        reader.page.set_input_files("#file", str(file))
        reader.page.wait_for_selector("#target")
        reader.answered(before)


def proof(reader):
    from render import show_panel

    show_panel(reader, "proof")


def why(reader):
    from render import show_panel

    show_panel(reader, "why")


def tour(reader):
    from render import last_step

    last_step(reader, "nearest-mean")


# file, whether it is dark, what is done first
PICTURES = (
    ("tune-dark", True, tune),
    ("kernel", False, kernel),
    ("proof-dark", True, proof),
    ("why", False, why),
    ("table-dark", True, table),
    ("tour", False, tour),
)


def main():
    """Render all."""
    from render import picture, saved
    from studio.browser import conftest
    from studio.browser.reader import Reader

    with ExitStack() as stack:
        address = stack.enter_context(conftest.studio_address())
        browser = stack.enter_context(conftest.opened_browser())
        for name, dark, show in PICTURES:
            scheme = "dark" if dark else "light"
            page = browser.new_page(viewport=SCREEN, color_scheme=scheme)
            reader = Reader(page, address).open()
            show(reader)
            reader.settle_tour()
            saved(picture(reader), IMAGES / f"{name}.png", 160)
            page.close()


if __name__ == "__main__":
    main()
