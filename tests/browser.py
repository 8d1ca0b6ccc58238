"""Pages: their data read back, and driven in a browser."""

import base64
import json
import time
import zlib
from html.parser import HTMLParser

import numpy as np


def unpack_columns(text):
    """Return the columns of a block."""
    raw = zlib.decompress(base64.b64decode(text), -zlib.MAX_WBITS)
    start = 4 + int.from_bytes(raw[:4], "little")
    found = {}
    for name, kind, rows in json.loads(raw[4:start]):
        dtype = np.dtype(f"<{kind}")
        end = start + rows * dtype.itemsize
        planes = np.frombuffer(raw[start:end], np.uint8).reshape(dtype.itemsize, rows)
        found[name] = np.ascontiguousarray(planes.T).view(dtype).reshape(rows)
        start = end
    return found


def unpack_document(text):
    """Return the JSON of a block."""
    return json.loads(zlib.decompress(base64.b64decode(text), -zlib.MAX_WBITS))


class Page(HTMLParser):
    """The blocks of a page, and what elements there are."""

    def __init__(self, path):
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.blocks, self.elements, self._open = {}, [], None
        self.feed(self.text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open = dict(attrs).get("id", "").removeprefix("data-") if tag == "script" else None

    def handle_data(self, data):
        if self._open:
            self.blocks[self._open] = data
            self._open = None

    @property
    def meta(self):
        return unpack_document(self.blocks["meta"])

    @property
    def story(self):
        return unpack_document(self.blocks["story"])

    def columns(self, name):
        return unpack_columns(self.blocks[name])


class Viewer:
    """A page in a browser."""

    def __init__(self, browser, path):
        self.browser, self.path = browser, path
        for log in ("browser", "performance"):
            browser.get_log(log)

    def open(self, address=""):
        self.browser.get("about:blank")
        self.browser.get(self.path.as_uri() + address)
        self.until("document.documentElement.dataset.ready !== undefined")
        return self

    def js(self, code, *arguments):
        """Run code once the page has drawn what was done to it: it draws in the next frame."""
        self.browser.execute_async_script("const drawn = arguments[0]; requestAnimationFrame(() => setTimeout(drawn));")
        return self.browser.execute_script(code, *arguments)

    def until(self, condition):
        end = time.monotonic() + 20
        while not self.browser.execute_script(f"return Boolean({condition})"):
            assert time.monotonic() < end, f"never happened: {condition}; {self.browser.get_log('browser')}"
            time.sleep(0.02)

    @property
    def views(self):
        """The names of the views that the page has."""
        return self.js("return [...document.querySelectorAll('#top nav a')].map((link) => link.dataset.view)")

    def show(self, view):
        """Go to a view, and wait until it shows what it has."""
        self.js("location.hash = arguments[0]", view)
        self.until(f"document.body.dataset.view === '{view}' && document.querySelector('#view').childElementCount")
        if view in {"timeline", "timelines"}:
            self.until("document.querySelector('.timeline')?.dataset.shown !== undefined")

    def text(self, selector):
        return self.js("return document.querySelector(arguments[0])?.textContent ?? null", selector)

    def texts(self, selector):
        return self.js("return [...document.querySelectorAll(arguments[0])].map((node) => node.textContent)", selector)

    def rows(self, pane):
        return dict(
            self.js(
                "return [...document.querySelectorAll(`#tree-${arguments[0]} .row`)].map((row) =>"
                " [row.querySelector('.name').textContent, row.querySelector('.value').textContent])",
                pane,
            )
        )

    def selected(self, pane):
        return self.text(f"#tree-{pane} .row[aria-selected=true] .name")

    def click(self, selector):
        self.js("document.querySelector(arguments[0]).click()", selector)

    def press(self, selector, *keys):
        self.js("document.querySelector(arguments[0]).focus()", selector)
        for key in keys:
            self.js(
                "document.activeElement.dispatchEvent("
                "new KeyboardEvent('keydown', { key: arguments[0], bubbles: true, cancelable: true }))",
                key,
            )

    def is_well(self):
        """Check that the console has no message and nothing but the file was requested."""
        assert [entry["message"] for entry in self.browser.get_log("browser")] == []
        messages = (json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance"))
        asked = {m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"}
        assert {url.partition("#")[0] for url in asked} <= {self.path.as_uri(), "about:blank", "data:,"}
