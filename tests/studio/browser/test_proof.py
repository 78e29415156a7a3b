"""The certificate in words, the gap as it falls, and why a place is answered as it is."""


def test_the_certificate_is_told_and_the_gap_falls(reader):
    page = reader.page
    reader.panel("proof")
    assert "holds" in page.inner_text("#panel-proof")
    page.wait_for_selector("#panel-proof .steps .chart")
    assert "Primal" in page.inner_text("#panel-proof .twin")


def test_infinite_price_is_one_press_away(reader):
    reader.panel("proof")
    before = reader.answers
    reader.page.click("#infinite")
    reader.page.wait_for_function(
        """(n) => {
            const d = document.getElementById("plane").dataset;
            return Number(d.answers) > n || d.refused === "true";
        }""",
        arg=before,
    )
    assert reader.page.is_hidden("#infinite")


def test_why_names_the_points_that_decide(reader):
    page = reader.page
    reader.panel("why")
    page.mouse.move(*reader.place(0.4, 0.6))
    page.wait_for_selector("#panel-why .bars li")
    first = page.inner_text("#panel-why")
    page.mouse.move(*reader.place(0.8, 0.2), steps=4)
    page.wait_for_function(
        "(was) => document.getElementById('panel-why').innerText !== was", arg=first
    )


def test_a_refusal_is_shown_where_the_answer_was(reader):
    reader.clear()
    reader.press(0.5, 0.5)
    reader.page.wait_for_selector("#plane[data-refused=true]")
    assert "refused" in reader.verdict()
    reader.page.click("[data-brush='1']")
    reader.press(0.2, 0.2)
    reader.settle()
    assert reader.plane("refused") == "false"
