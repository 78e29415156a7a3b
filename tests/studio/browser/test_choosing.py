"""Machines, kernels and parameters; the curve under a slider; the grid as a heat map."""


def test_a_slider_refits_while_it_moves_and_is_undone(reader):
    page = reader.page
    before, seen = reader.answers, reader.picture()
    slider = page.locator("[data-parameter=C]")
    first = page.locator("#machine-fields .exact").first.input_value()
    slider.focus()
    for _ in range(4):
        page.keyboard.press("PageDown")
    reader.answered(before)
    assert reader.picture() != seen
    assert float(page.locator("#machine-fields .exact").first.input_value()) < float(first)
    for _ in range(4):  # each press of a key ends a movement of its own
        page.click("#undo")
    assert page.locator("#machine-fields .exact").first.input_value() == first
    reader.settle()


def test_an_exact_number_may_be_typed(reader):
    before = reader.answers
    field = reader.page.locator("#machine-fields .exact").first
    field.fill("inf")
    field.press("Enter")
    reader.page.wait_for_function(
        """(n) => {
            const d = document.getElementById("plane").dataset;
            return Number(d.answers) > n || d.refused === "true";
        }""",
        arg=before,
    )
    reader.settle()
    field.fill("many")
    field.press("Enter")
    assert field.get_attribute("aria-invalid") == "true"


def test_the_curve_is_drawn_under_its_slider(reader):
    reader.page.wait_for_selector("details.curve[open] .chart .dot")
    reader.page.wait_for_selector("details.curve[open] button.link")


def test_a_kernel_is_typed_and_refused_in_words(reader):
    page = reader.page
    reader.panel("kernel")
    page.wait_for_selector("#panel-kernel .pixels")
    before = reader.answers
    page.fill("#kernel-text", "linear + 2 * gaussian(0.3)")
    reader.answered(before)
    assert "gaussian(0.3)" in page.input_value("#kernel-text")
    page.fill("#kernel-text", "gausian(0.3)")
    page.wait_for_selector("#kernel-text[aria-invalid=true]")
    assert "gausian" in page.inner_text("#kernel-refusal")
    page.fill("#kernel-text", "gaussian(0.3)")
    page.wait_for_selector("#kernel-text[aria-invalid=false]")
    assert page.inner_text("#kernel-refusal") == ""


def test_a_kernel_is_composed_by_blocks(reader):
    page = reader.page
    reader.panel("kernel")
    before = reader.answers
    page.click("text=+ add a kernel")
    reader.answered(before)
    page.wait_for_function("() => document.querySelectorAll('.blocks .block').length === 2")
    assert "+" in page.input_value("#kernel-text")
    assert page.is_visible("#panel-kernel .formula")


def test_tuning_fills_a_heat_map_and_takes_the_best(reader):
    page = reader.page
    page.click("#tune")
    page.wait_for_selector(".heat .best")
    assert "Best" in page.inner_text("#tune-says")
    before = reader.answers
    page.locator(".heat button").first.click()
    reader.answered(before)


def test_tuning_can_be_stopped(reader):
    page = reader.page
    page.evaluate(
        """() => {
            document.getElementById("tune").click();
            document.getElementById("tune-stop").click(); // at once: a warm grid is done in no time
        }"""
    )
    page.wait_for_function("() => !document.getElementById('tune').disabled")
    assert page.inner_text("#tune-says") == "Stopped."
