"""The tools that make the documentation: what they refuse, what they show."""

import importlib
import inspect

import matplotlib.pyplot as plt
import numpy as np
import offline
import pictures
import pytest
import reference
import snippets

import mercer
from mercer import kernels

FENCE = "```"


def page(*blocks):
    return "\n\n".join(f"Words.\n\n{FENCE}python\n{block}\n{FENCE}" for block in blocks) + "\n"


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://elsewhere.org/a.js"></script>',
        '<link rel="stylesheet" href="//elsewhere.org/a.css">',
        '<img srcset="a.png 1x, http://elsewhere.org/b.png 2x">',
        "<style>@import 'https://elsewhere.org/a.css';</style>",
        "<p style=\"background: url('https://elsewhere.org/a.png')\">words</p>",
    ],
)
def test_what_a_page_loads_from_elsewhere_is_found(html):
    assert len(offline.loaded_from_outside(html)) == 1


def test_links_that_are_followed_by_hand_are_no_matter():
    html = '<a href="https://elsewhere.org">there</a><link rel="canonical" href="https://here.org">'
    html += '<script src="_static/a.js"></script><img src="a.png">'
    assert offline.loaded_from_outside(html) == []


def test_style_sheets_and_pages_of_a_site_are_looked_at(tmp_path):
    (tmp_path / "index.html").write_text('<img src="https://elsewhere.org/a.png">')
    (tmp_path / "a.css").write_text("@font-face { src: url(https://elsewhere.org/a.woff2); }")
    found = offline.check_site(tmp_path)
    assert [line.split(":")[0] for line in found] == ["index.html", "a.css"]


def test_axes_without_a_drawing_are_found():
    figure, (drawn, empty, words, off) = plt.subplots(1, 4)
    drawn.plot([1, 2])
    words.text(0, 0, "words")
    off.axis("off")
    assert pictures.empty_axes(figure) == [1]
    empty.imshow([[1.0]])
    assert pictures.empty_axes(figure) == []
    plt.close(figure)


def test_a_gallery_cell_that_leaves_its_axes_empty_is_refused():
    figure, _ = plt.subplots(1, 4)
    with pytest.raises(pictures.EmptyPictureError, match=r"plot_a\.py.*\[0, 1, 2, 3\]"):
        pictures.refuse_empty([figure], "plot_a.py")
    plt.close(figure)


def test_thumbnails_of_wide_pictures_show_their_first_panels():
    wide = np.zeros((100, 400, 3))
    wide[:, 130:140] = wide[:, 160:200] = wide[:, 300:390] = 1.0  # gaps; the last is too far right
    assert pictures.first_panels(wide).shape == (100, 180, 3)
    assert pictures.first_panels(wide[:, :200]).shape == (100, 200, 3)
    assert pictures.first_panels(np.zeros((100, 400, 3))).shape == (100, 400, 3)


def test_blocks_of_a_page_share_their_names_and_show_what_they_print():
    text = page("a = 2\nprint(a)", "b = a + 1", "print(a * b)")
    assert [printed for printed, _ in snippets.run_page(text, "page")] == ["2", "", "6"]


@pytest.mark.parametrize(
    "line", ["1 / 0", "import warnings; warnings.warn('look out', stacklevel=1)"]
)
def test_errors_and_warnings_of_a_block_name_page_and_line(line):
    with pytest.raises(snippets.SnippetError, match="guide/a, block at line 9"):
        list(snippets.run_page(page("a = 1", line), "guide/a"))


def test_output_and_picture_follow_their_block(tmp_path):
    text = page("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nprint('drawn')")
    shown = snippets.shown_with_output(text, "guide/a", tmp_path, "/snippets")
    assert "```\n\n```{code-block} none\n:class: output\n\ndrawn\n```\n" in shown
    assert "](/snippets/guide-a-1.png)" in shown
    assert (tmp_path / "guide-a-1.png").stat().st_size > 0
    assert not plt.get_fignums()


def test_a_page_that_carries_its_output_is_rewritten(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(page("print(6 * 7)") + f"\n{FENCE}text\nold\n{FENCE}\n\nThe end.\n")
    snippets.write_output(readme)
    assert snippets.carried_output(readme.read_text()) == ["42"]
    assert readme.read_text().endswith("\n\nThe end.\n")


NOTES = reference.read_notes()


def test_every_machine_and_kernel_has_its_notes():
    noted = {name.rsplit(".", 1)[1] for name in NOTES}  # the top also has names of other rooms
    machines = {name for name in mercer.__all__ if hasattr(getattr(mercer, name), "fit")}
    public = {name: getattr(kernels, name) for name in kernels.__all__}
    classes = {name: k for name, k in public.items() if inspect.isclass(k)}
    own = {name for name, k in classes.items() if issubclass(k, kernels.Kernel)} - {"Kernel"}
    missing = sorted((machines | own) - noted)
    assert not missing, f"give these formula, see and guide in docs/api/formulas.toml: {missing}"


@pytest.mark.parametrize("name", sorted(NOTES))
def test_notes_name_what_exists(name):
    home = name.rsplit(".", 1)[0]
    assert name.rsplit(".", 1)[1] in importlib.import_module(home).__all__
    for other in NOTES[name]["see"]:
        assert inspect.getdoc(reference.find(reference.qualified(home, other)))
    guide = reference.FORMULAS.parents[1] / "guide" / f"{NOTES[name]['guide']}.md"
    assert guide.is_file()
