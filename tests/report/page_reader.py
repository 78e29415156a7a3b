"""Read a page as a browser would, and note everything that is not as it should be."""

from html.parser import HTMLParser

VOID = {"meta", "br", "img", "hr", "input", "link"}
ELEMENTS = set(
    "html head meta title style body a header p h1 h2 h3 bdi span strong div nav ol ul li main "
    "section table thead tbody tr th td figure figcaption dl dt dd pre code details summary footer "
    "svg desc text rect line path polyline polygon circle image".split()
)
ATTRIBUTES = set(
    "lang charset http-equiv content name class href id role aria-label aria-hidden tabindex scope "
    "viewbox width height x y x1 x2 y1 y2 cx cy r d points transform text-anchor stroke-width "
    "fill-opacity preserveaspectratio".split()
)


class PageReader(HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.wrong, self.text, self.links, self.style = [], [], [], [], ""
        self.elements, self.ids, self.policy = {}, [], ""
        self.feed(page)
        self.close()
        if self.open:
            self.wrong.append(f"never closed: {self.open}")

    def handle_starttag(self, tag, attrs):
        self.elements[tag] = self.elements.get(tag, 0) + 1
        if tag not in ELEMENTS:
            self.wrong.append(f"element {tag}")
        for name, value in attrs:
            if name not in ATTRIBUTES:
                self.wrong.append(f"attribute {name} of {tag}")
            if name == "href":
                self.links.append(value)
            if name == "id":
                self.ids.append(value)
            if name == "content" and "default-src" in value:
                self.policy = value
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes something else")

    def handle_comment(self, data):
        self.wrong.append(f"comment {data[:40]}")

    def handle_pi(self, data):
        self.wrong.append(f"instruction {data[:40]}")

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            self.style += data
        else:
            self.text.append(data)


def read(page):
    """Return a page that was read, after the checks that hold for every report."""
    found = PageReader(page)
    assert not found.wrong, found.wrong[:5]
    outside = [link for link in found.links if not link.startswith(("#", "data:image/png;base64,"))]
    assert not outside
    assert {link[1:] for link in found.links if link[0] == "#"} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    assert "http:" not in page and "https:" not in page and "url(" not in page
    assert "<script" not in page.lower() and "javascript:" not in "".join(found.links)
    assert found.elements["h1"] == found.elements["main"] == found.elements["style"] == 1
    return found
