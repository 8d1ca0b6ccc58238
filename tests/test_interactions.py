"""Keys, clicks, and pointer movements on all pages, in a real browser.

What the pages show is checked in the files of their parts: test_html, test_html_*, test_timeline, test_comparison,
test_communication, and test_series. `python -m pytest -p tests.page_functions tests` lists the functions of the pages
that no test has run.
"""

from pathlib import Path

import pytest
import whywait
from whywait.hypotheses import Balance

from tests.browser import Viewer

Keys = pytest.importorskip("selenium.webdriver.common.keys", reason="the package selenium drives the browser").Keys
ActionChains = pytest.importorskip("selenium.webdriver", reason="the package selenium drives the browser").ActionChains
DATA = Path(__file__).parent / "data"
TREE = "#tree-call-tree"
PLANE = ".timeline .times"
ZOOM_OUT = "\N{MINUS SIGN}"
# Capture what would go to the clipboard or to a file.
TAKE = """
window.taken = {};
navigator.clipboard.writeText = async (text) => { window.taken.copied = text; };
URL.createObjectURL = (blob) => { blob.text().then((text) => { window.taken.saved = text; }); return "data:,"; };
HTMLAnchorElement.prototype.click = function () { window.taken.name = this.download; };
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pages")
    stencil, fence = (whywait.analyze(DATA / name) for name in ("stencil", "sor_fence"))
    found = {name: directory / f"{name}.html" for name in ("report", "diff", "whatif", "series")}
    stencil.write_html(found["report"])
    whywait.compare(stencil, fence).write_html(found["diff"])
    whywait.whatif(stencil, [Balance("relax/work")]).write_html(found["whatif"])
    whywait.series([fence, stencil], names=["a", "b"]).write_html(found["series"])
    found["length"] = stencil.facts["length"]
    return found


class Hand(Viewer):
    """A page that is driven by real mouse and keyboard events."""

    def find(self, selector, text=None):
        found = self.browser.find_elements("css selector", selector)
        if text is not None:
            found = [element for element in found if element.text.strip() == text]
        assert found, (selector, text)
        return found[0]

    def do(self):
        return ActionChains(self.browser, duration=20)

    def point(self, selector, x=0, y=0):
        """Move the pointer to an offset from the center of an element."""
        self.js("document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })", selector)
        self.do().move_to_element_with_offset(self.find(selector), x, y).perform()

    def tip(self):
        return self.js("const tip = document.getElementById('tip'); return tip.hidden ? null : tip.textContent")

    def type(self, *keys):
        self.do().send_keys(*keys).perform()

    @property
    def view(self):
        return self.js("return document.body.dataset.view")

    def names(self, tree):
        return self.js(
            "return [...document.querySelectorAll(`${arguments[0]} .row .name`)].map((n) => n.textContent)", tree
        )

    @property
    def window(self):
        """Begin, end, first and last row of the timeline's window, from the address."""
        query = self.js("return Object.fromEntries(new URLSearchParams(location.hash.split('?')[1]))")
        rows = query.get("places", "0-7").split("-")
        return float(query["from"]), float(query["to"]), int(rows[0]), int(rows[1])

    def moves(self, act):
        """Act, wait for the new address, and return the window before and after."""
        before = self.window
        address = self.js("return location.hash")
        act()
        self.until(f"location.hash !== {address!r}")
        return before, self.window


def opened(browser, pages, page, address=""):
    return Hand(browser, pages[page]).open(address)


def timeline(browser, pages, address="#timeline?from=0.4&to=0.5&places=2-5"):
    hand = opened(browser, pages, "report", address)
    hand.until("document.querySelector('.timeline')?.dataset.shown !== undefined")
    hand.js(f"document.querySelector('{PLANE}').focus()")
    hand.type(Keys.ARROW_RIGHT)
    hand.until("location.hash.includes('from=0.415')")
    return hand


@pytest.mark.parametrize("page", ["report", "diff", "whatif", "series"])
def test_each_view_has_a_key_and_a_link(browser, pages, page):
    hand = opened(browser, pages, page)
    views = hand.views
    keys = hand.text("#help dt").split()
    assert len(views) == len(keys) == len(set(keys)) > 1
    for view, key in reversed(list(zip(views, keys, strict=True))):
        hand.type(key)
        hand.until(f"document.body.dataset.view === '{view}'")
        hand.show(view)
        assert hand.texts("#top nav [aria-current]") == hand.texts(f"#top nav [data-view={view}]")
    for view in views:
        hand.find(f"#top nav [data-view={view}]").click()
        hand.until(f"document.body.dataset.view === '{view}'")
    hand.is_well()


@pytest.mark.parametrize("page", ["report", "whatif", "series"])
def test_views_follow_the_theme(browser, pages, page):
    hand = opened(browser, pages, page)
    background = "return getComputedStyle(document.body).backgroundColor"
    for view in hand.views:
        hand.show(view)
        before = hand.js(background)
        hand.type("t")
        assert hand.js(background) != before
    hand.is_well()


def test_help_lists_the_keys(browser, pages):
    hand = opened(browser, pages, "report")
    hand.type("?")
    assert hand.js("return document.getElementById('help').open")
    keys = hand.texts("#help dt")
    for view, key in {"explorer": "h", "timeline": "w", "all": "t"}.items():
        assert key in keys, view
    hand.find("#help button", "Close").click()
    assert not hand.js("return document.getElementById('help').open")


def test_tree_keys(browser, pages):
    hand = opened(browser, pages, "report", "#explore?metric=time&call=11")
    hand.until("document.querySelectorAll('.box').length")
    hand.type("2", Keys.HOME)
    names = hand.names(TREE)

    def at(*keys):
        hand.type(*keys)
        return hand.selected("call-tree")

    assert at(Keys.HOME) == names[0] == "stencil"
    # The node is expanded, so the key moves to its first child.
    assert at(Keys.ARROW_RIGHT) == names[1] == "main"
    assert at(Keys.ARROW_LEFT) == "main"
    assert at(Keys.ARROW_LEFT) == "stencil"
    hand.type(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.HOME)
    assert at(Keys.ARROW_DOWN) == names[1] == "main"
    assert at(Keys.ARROW_UP) == "stencil"
    assert at(Keys.END) == names[-1]
    assert at(Keys.PAGE_UP) in names[1:-1]
    assert at(Keys.PAGE_UP) == names[0]
    assert at(Keys.PAGE_DOWN) in names[1:-1]
    hand.type(Keys.HOME, Keys.ARROW_DOWN)
    for key in (Keys.SPACE, Keys.ENTER):
        rows = len(hand.names(TREE))
        hand.type(key)
        assert len(hand.names(TREE)) != rows
    hand.type(Keys.HOME, "h")
    assert hand.selected("call-tree") in {"work", "MPI_Init"}
    hand.type("1")
    assert hand.js("return document.activeElement.closest('#tree-metrics') !== null")
    hand.type("/")
    assert hand.js("return document.activeElement.getAttribute('aria-label')") == "Find in Metrics"
    hand.type("bytes", Keys.ESCAPE)
    assert hand.js("return document.activeElement.closest('#tree-metrics') !== null")
    hand.browser.switch_to.active_element.send_keys("%")
    assert hand.js("return document.querySelector('.choice [aria-checked=true]').textContent") == "% of root"
    hand.is_well()


def test_explorer_keys_work_wherever_the_focus_is(browser, pages):
    hand = opened(browser, pages, "report", "#explore?metric=mpi_latesender&call=0")
    hand.until("document.querySelectorAll('.box').length")
    hand.js("document.activeElement.blur()")
    hand.type("h")
    assert hand.selected("call-tree") == "MPI_Waitall"
    hand.js("document.activeElement.blur()")
    hand.type("/")
    assert hand.js("return document.activeElement.getAttribute('aria-label')") == "Find in Call tree"
    hand.type("mpi_recv", Keys.ENTER)
    assert hand.selected("call-tree") == "MPI_Recv"
    # Typing in a text field does not trigger keys.
    assert hand.view == "explore"
    hand.type(Keys.ESCAPE)
    assert hand.js("return document.activeElement.id") == "tree-call-tree"
    hand.is_well()


def test_tooltip_of_a_pair_of_ranks(browser, pages):
    hand = opened(browser, pages, "report", "#communication")
    hand.until("document.querySelector('.communication')?.dataset.shown === 'bytes'")
    side, margin = hand.js("return [document.querySelector('.matrix canvas').clientWidth, 44]")

    def at(row, column):
        """Point at a cell, and return the tooltip."""
        place = [margin + (number + 0.5) * (side - margin) / 8 - side / 2 for number in (column, row)]
        hand.point(".matrix canvas", *map(round, place))
        return hand.tip()

    assert at(0, 1).startswith("rank 0 → rank 1")
    for said in ("12.5 KiB", "Messages100", "141 ms", "80.0 ms"):
        assert said in at(0, 1)
    assert at(0, 2) == "rank 0 → rank 2 nothing"
    hand.find(".communication .toolbar button", "Waiting").click()
    assert hand.find(".communication .ranking th:last-child").text == "Share of waiting"
    hand.do().move_to_element(hand.find("#top .brand")).perform()
    assert hand.tip() is None
    hand.is_well()


def test_double_click_expands_a_row(browser, pages):
    hand = opened(browser, pages, "report", "#explore?metric=time&call=0")
    hand.until("document.querySelectorAll('.box').length")
    assert len(hand.names(TREE)) == 1
    hand.do().double_click(hand.find(f"{TREE} .row .name")).perform()
    hand.until(f"document.querySelectorAll('{TREE} .row').length === 2")
    assert hand.names(TREE) == ["stencil", "main"]


def test_explorer_buttons(browser, pages):
    hand = opened(browser, pages, "report", "#explore?metric=mpi_latesender&call=0")
    hand.until("document.querySelectorAll('.box').length")
    hand.find(".explorer .toolbar button", "Follow the largest").click()
    assert hand.selected("call-tree") == "MPI_Waitall"
    value = hand.rows("call-tree")["MPI_Waitall"]
    hand.find(".explorer .toolbar button", "% of root").click()
    assert hand.rows("call-tree")["MPI_Waitall"].endswith("%") != value.endswith("%")
    shown = len(hand.names(TREE))

    def sorted_names():
        # Only visible rows are in the document.
        hand.js("document.querySelector('#tree-call-tree').scrollTop = 0")
        hand.until("document.querySelector('#tree-call-tree').scrollTop === 0")
        return hand.names(TREE)

    zeros = hand.find(".explorer .check input")
    zeros.click()
    assert len(hand.names(TREE)) > shown
    by_tree = sorted_names()
    hand.find(".explorer .toolbar button", "By name").click()
    assert sorted_names() != by_tree
    hand.find(".explorer .toolbar button", "Tree order").click()
    assert sorted_names() == by_tree
    zeros.click()
    # The second box is the callee with the largest value.
    hand.open("#explore?metric=mpi_latesender&call=0")
    hand.until("document.querySelectorAll('.box').length > 1")
    called = hand.js("return document.querySelectorAll('.box .name')[1].textContent")
    hand.js("document.querySelectorAll('.box')[1].click()")
    assert hand.selected("call-tree") == called
    hand.is_well()


def test_heat_map(browser, pages):
    hand = opened(browser, pages, "report", "#explore?metric=mpi_latesender&call=11")
    hand.until("document.querySelector('.map canvas').width > 50 && document.querySelectorAll('.legend span').length")
    hand.point(".map canvas", -10, -10)
    assert hand.tip().startswith("rank ")
    rank = hand.tip().split(",")[0].split()[1][0]
    hand.do().click().perform()
    assert hand.selected("system") == f"MPI Rank {rank}"
    least = hand.text(".map + .legend span")
    hand.find("[aria-label='Range of the colors'] option[value=least]").click()
    assert hand.text(".map + .legend span") != least
    hand.is_well()


def test_jumps_to_waiter_and_cause(browser, pages):
    hand = opened(browser, pages, "report", "#explore?metric=mpi_latesender&call=11")
    hand.until("document.querySelectorAll('.instances li').length")
    first = hand.find(".instances li > button")
    rank, cause = (word.split(",")[0] for word in first.text.replace("\n", " ").split("rank ")[1:3])
    for text, whose, call in (("Go to the waiter", rank, "MPI_Waitall"), ("Go to the cause", cause, "MPI_Isend")):
        hand.open("#explore?metric=mpi_latesender&call=11")
        hand.until("document.querySelectorAll('.instances li').length")
        hand.find(".instances li > button").click()
        hand.find(".instances .jumps button", text).click()
        assert hand.selected("call-tree") == call
        assert hand.selected("system") == f"MPI Rank {whose.split()[0]}"
    hand.is_well()


@pytest.mark.parametrize(
    ("page", "address", "where", "head"),
    [
        ("report", "#explore?metric=mpi_latesender&call=11", ".explorer .toolbar", "call path,"),
        ("report", "#explore?metric=mpi_latesender&call=11", "[aria-label='Wait states']", "wait state,rank,"),
        ("report", "#functions", ".functions", "Function,Own time (s)"),
        ("report", "#timeline?from=0.4&to=0.5", ".statistics", "what,share,seconds"),
        ("series", "#runs", ".series .card:nth-of-type(2)", "Efficiency,a,b"),
        ("series", "#scaling", ".series .card", "Call path,a (s),b (s)"),
    ],
)
def test_tables_are_exported(browser, pages, page, address, where, head):
    hand = opened(browser, pages, page, address)
    hand.js(TAKE)
    hand.until("document.querySelector('details.statistics') || document.body.dataset.view !== 'timeline'")
    hand.js("for (const more of document.querySelectorAll('details')) more.open = true")
    hand.until(f"document.querySelector(`{where} .take button`)")
    for text in ("Copy", "CSV"):
        hand.js(
            f"[...document.querySelectorAll(`{where} .take button`)].find((b) => b.textContent === '{text}').click()"
        )
    hand.until("window.taken.saved && window.taken.copied")
    copied, saved, name = hand.js("return [window.taken.copied, window.taken.saved, window.taken.name]")
    assert name.endswith(".csv")
    assert saved.startswith(head)
    rows = [line.split("\t") for line in copied.split("\n")]
    assert ",".join(rows[0]).startswith(head)
    assert len(rows) == saved.count("\r\n") > 1
    assert len({len(row) for row in rows}) == 1


def test_all_tables_of_a_series_are_exported(browser, pages):
    hand = opened(browser, pages, "series")
    hand.js(TAKE)
    names = set()
    for button in hand.browser.find_elements("css selector", ".take button"):
        button.click()
        names.add(hand.js("return window.taken.name ?? null"))
    assert {"efficiencies.csv", "wait_states.csv", "runs.csv"} <= names


def test_copy_without_clipboard_permission(browser, pages):
    hand = opened(browser, pages, "report", "#functions")
    hand.until("document.querySelectorAll('.functions tbody tr').length")
    hand.js(
        "navigator.clipboard.writeText = async () => { throw new Error('denied'); };"
        "document.execCommand = (what) => { window.did = [what, document.activeElement.value]; return true; };"
    )
    hand.find(".functions .take button", "Copy").click()
    hand.until("window.did && document.querySelector('.functions .take [role=status]').textContent === 'Copied'")
    what, text = hand.js("return window.did")
    assert what == "copy"
    assert text.startswith("Function\tOwn time")


def test_timeline_opens_on_the_focus(browser, pages):
    hand = opened(browser, pages, "report", "#timeline")
    shows = "document.querySelector('.timeline .crumbs')?.textContent === '{}'".format
    focus, whole = shows("0.3437 s to 0.6831 s (339 ms)"), shows("0.0000 s to 0.7421 s (742 ms)")
    hand.until(focus)
    hand.type("0")
    hand.until(whole)
    # The address is updated with a delay.
    hand.until("location.hash.includes('from=0.000000000')")
    # Leaving the view keeps its window.
    for key, view in (("o", "overview"), ("l", "timeline")):
        hand.type(key)
        hand.until(f"document.body.dataset.view === '{view}'")
    assert "from=" not in hand.js("return location.hash")
    hand.until(whole)
    hand.is_well()


def test_keys_move_the_timeline(browser, pages):
    hand = timeline(browser, pages)
    span = 0.1

    def moved(*keys):
        before, after = hand.moves(lambda: hand.type(*keys))
        assert after[1] - after[0] == pytest.approx(span, abs=1e-8)
        return after[0] - before[0], after[2] - before[2]

    assert moved(Keys.ARROW_LEFT) == (pytest.approx(-0.015), 0)
    assert moved(Keys.PAGE_DOWN) == (pytest.approx(0.09), 0)
    assert moved(Keys.PAGE_UP) == (pytest.approx(-0.09), 0)
    assert moved(Keys.ARROW_DOWN) == (0, 1)
    assert moved(Keys.ARROW_UP) == (0, -1)
    hand.moves(lambda: hand.type(Keys.HOME))
    assert hand.window[0] == 0
    hand.moves(lambda: hand.type(Keys.END))
    assert hand.window[1] == pytest.approx(pages["length"], abs=1e-6)


def test_keys_zoom_the_timeline(browser, pages):
    hand = timeline(browser, pages)
    for key, factor in (("+", 0.5), ("-", 2), ("=", 0.5)):
        before, after = hand.moves(lambda key=key: hand.type(key))
        assert after[1] - after[0] == pytest.approx(factor * (before[1] - before[0]), rel=1e-3)
    for key, more in (("[", True), ("]", False)):
        before, after = hand.moves(lambda key=key: hand.type(key))
        assert (after[3] - after[2] > before[3] - before[2]) == more
    hand.type("/")
    assert hand.js("return document.activeElement.getAttribute('aria-label')") == "Find a function"
    hand.find(".timeline .toolbar button", ZOOM_OUT).click()
    hand.find(".timeline .toolbar button", "All").click()
    hand.until("location.hash.includes('from=0.000000000') && !location.hash.includes('places')")


def test_enter_goes_to_the_cause_of_a_wait(browser, pages):
    hand = timeline(browser, pages)
    hand.moves(lambda: hand.type("w"))
    assert "It ended with" in hand.text(".timeline .picked")
    hand.moves(lambda: hand.type(Keys.ENTER))


def test_the_pointer_moves_and_zooms_the_timeline(browser, pages):
    hand = timeline(browser, pages)
    width = hand.js(f"return document.querySelector('{PLANE}').clientWidth") - 85
    drag = hand.do().move_to_element(hand.find(PLANE)).click_and_hold().move_by_offset(-100, 0).release()
    before, after = hand.moves(drag.perform)
    assert after[0] - before[0] == pytest.approx(0.1 * 100 / width, rel=0.02)
    before, after = hand.moves(hand.do().double_click(hand.find(PLANE)).perform)
    assert after[1] - after[0] == pytest.approx((before[1] - before[0]) / 4, rel=1e-3)
    origin = pytest.importorskip("selenium.webdriver.common.actions.wheel_input").ScrollOrigin
    wheel = hand.do().scroll_from_origin(origin.from_element(hand.find(PLANE)), 0, 150)
    before, after = hand.moves(wheel.perform)
    assert after[1] - after[0] > before[1] - before[0]
    sideways = hand.do().scroll_from_origin(origin.from_element(hand.find(PLANE)), 200, 0)
    before, after = hand.moves(sideways.perform)
    assert after[1] - after[0] == pytest.approx(before[1] - before[0], rel=1e-3)
    assert after[0] > before[0]


def test_strip_selects_a_window(browser, pages):
    hand = timeline(browser, pages)
    strip = hand.find(".timeline .strip")
    middle = hand.do().move_to_element(strip).click_and_hold().move_by_offset(200, 0).release()
    _, after = hand.moves(middle.perform)
    width = strip.size["width"] - 85
    assert after[1] - after[0] == pytest.approx(200 / width * pages["length"], rel=0.02)
    # A click centers the window there.
    before, after = hand.moves(hand.do().move_to_element_with_offset(strip, -200, 0).click().perform)
    assert after[1] - after[0] == pytest.approx(before[1] - before[0], rel=1e-3)
    assert after[0] < before[0]


@pytest.mark.parametrize(
    ("page", "address", "what", "said"),
    [
        ("report", "#overview", ".stack .part", "of the time between start-up and shutdown"),
        ("report", "#overview", ".by-rank canvas", "rank "),
        ("report", "#overview", ".iterations canvas", "Iteration "),
        ("report", "#explore?metric=time~&call=0~", ".box.whole", "mean"),
        ("report", "#timeline?from=0.4&to=0.5", ".timeline .times", "rank "),
        ("report", "#communication", ".matrix canvas", "rank "),
        ("diff", "#changes", ".stack .part", "%"),
        ("series", "#runs", ".stacks .bar-part", "in a ("),
        ("series", "#runs", ".lines circle", "in a ("),
    ],
)
def test_tooltips(browser, pages, page, address, what, said):
    hand = opened(browser, pages, page, address)
    hand.until(f"document.querySelector(`{what}`)?.getBoundingClientRect().width > 0")
    hand.point(what)
    hand.until("!document.getElementById('tip').hidden")
    assert said in hand.tip()
    hand.do().move_by_offset(0, 0).move_to_element(hand.find("#top .brand")).perform()
    assert hand.tip() is None


def test_tooltip_of_the_call_stack(browser, pages):
    hand = timeline(browser, pages, "#timeline?from=0.4&to=0.5")
    hand.find(".stack-of summary").click()
    hand.until("document.querySelector('.stack-of canvas')?.clientHeight > 20")
    hand.point(".stack-of canvas", 0, -10)
    hand.until("!document.getElementById('tip').hidden")


def test_click_selects_an_iteration(browser, pages):
    hand = opened(browser, pages, "report")
    hand.until("document.querySelector('.iterations canvas')?.width > 300")
    hand.point(".iterations canvas")
    said = hand.tip().split(" at")[0]
    hand.do().click().perform()
    assert hand.text(".iterations .picked b") == said


def test_keys_and_buttons_of_two_timelines(browser, pages):
    hand = opened(browser, pages, "whatif", "#timelines")
    hand.until("document.querySelector('.timeline')?.dataset.shown !== undefined")

    def said():
        return [
            element.text for element in hand.browser.find_elements("css selector", ".timeline .crumbs, .timeline .of")
        ]

    for key in ("+", "]", "[", "-"):
        hand.js("window.before = [...document.querySelectorAll('.times')].map((canvas) => canvas.toDataURL())")
        hand.type(key)
        hand.until(
            "[...document.querySelectorAll('.times')].every((canvas, i) => canvas.toDataURL() !== window.before[i])"
        )
    whole = said()
    hand.find(".timeline .toolbar button", "Waits simulated").click()
    hand.until("document.querySelector('.timeline .picked').textContent.length > 20")
    assert said() != whole
    hand.find(".timeline .toolbar button", ZOOM_OUT).click()
    hand.js("document.querySelectorAll('.times')[1].focus()")
    before = said()
    hand.type(Keys.ENTER)
    hand.until(
        f"[...document.querySelectorAll('.timeline .of')].map((e) => e.innerText).join('|') !== {'|'.join(before)!r}"
    )
    hand.is_well()


def test_differences_by_groups_of_ranks(browser, pages):
    hand = opened(browser, pages, "diff", "#differences")
    hand.until("document.querySelectorAll('.pair-row').length")
    options = hand.browser.find_elements("css selector", "[aria-label='Groups of ranks'] option")
    assert len(options) > 1
    rows = len(hand.browser.find_elements("css selector", ".pair-row"))
    next(option for option in options if not option.is_selected()).click()
    assert len(hand.browser.find_elements("css selector", ".pair-row")) != rows
    # Both bars fit in one row.
    assert hand.js("return document.querySelector('.pair-row').getBoundingClientRect().height") < 40
    hand.js(
        "[...document.querySelectorAll('#tree-metrics .row')]"
        ".find((row) => row.textContent.includes('Computation')).click()"
    )
    assert hand.selected("metrics") == "Computation"
    hand.js("document.querySelector('#tree-call-tree').scrollTop = 0")
    hand.find("#tree-call-tree .row .name", "stencil").click()
    hand.js("document.activeElement.blur()")
    hand.type("h")
    assert hand.selected("call-tree") == "work"


def test_broken_page_shows_an_error(browser, pages, tmp_path):
    broken = tmp_path / "broken.html"
    text = pages["report"].read_text(encoding="utf-8")
    at = text.index('id="data-meta"')
    broken.write_text(text[:at] + text[at:].replace(">", ">broken", 1), encoding="utf-8")
    browser.get(broken.as_uri())
    hand = Hand(browser, broken)
    hand.until("document.querySelector('#view').textContent.startsWith('This report cannot be opened')")
    browser.get_log("browser")
