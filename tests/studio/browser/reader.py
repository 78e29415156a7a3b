"""Somebody who reads the page: what they do, and what they see."""

PATIENCE = 240_000  # milliseconds; machines under load are slow, and nothing here measures


class Reader:
    """A page of the studio with a hand on it."""

    def __init__(self, page, address):
        self.page, self.address = page, address
        self.errors, self.is_open = [], False
        self.scrolls = False  # whether pictures show the panel in place of the plane
        page.set_default_timeout(PATIENCE)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("requestfailed", lambda request: self.errors.append(f"failed: {request.url}"))

    def _heard(self, message):
        if message.type in {"error", "warning"}:
            self.errors.append(message.text)

    def open(self, fragment=""):
        """Open the page and wait for its first answer."""
        self.page.goto("about:blank")  # with another fragment alone, nothing would be loaded
        self.page.goto(self.address + fragment)
        self.page.wait_for_selector("#plane[data-answers]")
        self.settle()
        self.is_open = True
        return self

    def begin_again(self):
        """Leave what is open, and take the first example."""
        if self.page.is_visible("#tour-leave"):
            self.page.click("#tour-leave")
        self.preset("moons")
        self.tool("paint")
        self.panel("machine")
        self.page.click("[data-brush='0']")
        self.page.mouse.move(1, 1)
        self.settle()

    def settle(self):
        """Wait until nothing is being fitted, and the newest answer is of the newest points."""
        self.page.wait_for_function(
            """() => {
                const d = document.getElementById("plane").dataset;
                const fitted = d.current === "true" && d.fine === "true";
                const blank = d.points === "0" && d.machine === "";
                const done = d.refused === "true" || fitted || blank;
                return d.working === "false" && done;
            }"""
        )

    def settle_tour(self):
        """Wait until the step of a tour is drawn: its own answer, or that of a fit."""
        self.page.wait_for_function(
            """() => {
                const d = document.getElementById("plane").dataset;
                return d.working === "false" && (d.current === "true" || d.refused === "true");
            }"""
        )

    def tours(self):
        """Open the list of tours; return their names."""
        self.panel("learn")
        self.page.wait_for_selector("[data-tour]")
        names = "all => all.map((b) => b.dataset.tour)"
        return self.page.eval_on_selector_all("[data-tour]", names)

    def plane(self, name):
        """Return what the plane says of itself: points, answers, fitted, machine."""
        return self.page.get_attribute("#plane", f"data-{name}")

    @property
    def points(self):
        return int(self.plane("points"))

    @property
    def answers(self):
        return int(self.plane("answers"))

    def answered(self, before):
        """Wait for an answer newer than the one of that number, and for rest."""
        self.page.wait_for_function(
            "(n) => Number(document.getElementById('plane').dataset.answers) > n", arg=before
        )
        self.settle()

    def place(self, across, up):
        """Return pixels of a place given by shares of the plane."""
        box = self.page.locator("#plane").bounding_box()
        return box["x"] + across * box["width"], box["y"] + (1 - up) * box["height"]

    def press(self, across, up):
        """Press and let go at a place."""
        self.page.mouse.click(*self.place(across, up))

    def drag(self, start, end, steps=8):
        """Drag from one place to another."""
        self.page.mouse.move(*self.place(*start))
        self.page.mouse.down()
        self.page.mouse.move(*self.place(*end), steps=steps)
        self.page.mouse.up()

    def tool(self, name):
        self.page.click(f"[data-tool={name}]")

    def panel(self, name):
        self.page.click(f"#tab-{name}")

    def clear(self):
        self.page.click("[aria-label='Clear all points']")

    def preset(self, name):
        """Take an example and wait for its fit."""
        before = self.answers
        self.page.select_option("#preset", name)
        self.answered(before)

    def picture(self):
        """Return what both canvases show, as numbers: equal pictures, equal numbers."""
        self.drawn()
        return self.page.evaluate(
            """() => [...document.querySelectorAll("#plane canvas")].map((canvas) => {
                let sum = 0;
                for (const c of canvas.toDataURL()) sum = (sum * 31 + c.charCodeAt(0)) % 2147483647;
                return sum;
            })"""
        )

    def drawn(self):
        """Wait until what has changed is on the screen."""
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def verdict(self):
        return self.page.inner_text("#verdict")

    def fragment(self):
        """Return the scene that the address holds, when it has caught up."""
        self.page.wait_for_selector("body[data-address=current]")
        return self.page.evaluate("location.hash")
