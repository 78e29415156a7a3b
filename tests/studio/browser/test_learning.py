"""Tours, and scenes that are shared: reload, another tab, an address from a friend."""


def test_a_tour_is_stepped_played_and_left(reader):
    page = reader.page
    painted = reader.points
    first = reader.tours()[0]
    page.click(f"[data-tour={first}]")
    page.wait_for_selector("#tour-step")
    assert page.is_disabled("#tour-back")
    page.click("#tour-step")
    page.wait_for_function("() => document.querySelector('.player').innerText.includes('2 of')")
    page.click("#tour-rewind")
    page.wait_for_function("() => document.querySelector('.player').innerText.includes('1 of')")
    page.click("#tour-play")
    page.wait_for_selector("#tour-pause")
    page.wait_for_function("() => document.querySelector('.player').innerText.includes('2 of')")
    page.click("#tour-leave")
    page.wait_for_selector("[data-tour]")
    assert reader.points == painted


def test_every_tour_shows_all_its_frames(reader):
    page = reader.page
    for name in reader.tours():
        page.click(f"[data-tour={name}]")
        page.wait_for_selector("#tour-step")
        titles = page.evaluate(
            """async () => {
                const found = [];
                for (let k = 0; k < 60; k += 1) {
                    found.push(document.querySelector(".player h2").innerText);
                    await new Promise(requestAnimationFrame);
                    const step = document.getElementById("tour-step");
                    if (step.disabled) break;
                    step.click();
                }
                return found;
            }"""
        )
        assert len(titles) > 1, name
        assert all(titles), name
        page.click("#tour-leave")
        page.wait_for_selector("[data-tour]")


def test_a_scene_of_a_tour_can_be_kept(reader):
    page = reader.page
    page.click(f"[data-tour={reader.tours()[0]}]")
    page.click("#tour-keep")
    reader.settle()
    before = reader.points
    reader.press(0.5, 0.9)
    assert reader.points == before + 1


def test_a_reload_shows_the_same_scene(reader):
    reader.clear()
    for place in [(0.2, 0.2), (0.4, 0.6)]:
        reader.press(*place)
    reader.page.click("[data-brush='1']")
    reader.press(0.8, 0.5)
    reader.settle()
    reader.page.mouse.move(5, 5)
    scene, seen = reader.fragment(), reader.picture()
    reader.page.reload()
    reader.page.wait_for_selector("#plane[data-fitted='3']")
    reader.settle()
    assert reader.fragment() == scene
    assert reader.picture() == seen


def test_two_tabs_have_scenes_of_their_own(reader, new_reader):
    one, two = reader, new_reader()
    one.preset("groups")
    two.open(one.fragment())
    assert two.points == one.points
    two.clear()
    two.press(0.3, 0.3)
    two.page.click("[data-brush='1']")
    two.press(0.6, 0.6)
    two.settle()
    assert two.points == 2
    assert one.points > 2
    assert "certified" in one.verdict()


def test_an_address_that_was_cut_opens_the_first_page(reader):
    reader.open("#s1.nonsense")
    assert reader.points > 20
