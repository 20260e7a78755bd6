"""The page in a real browser: sorting, filtering, marking, download, hostile text, 50,000 rows."""

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from chrome import Page, chrome, needs_chrome

from floral_learn.app.audit_page import render, write_audit_page
from floral_learn.audit import LabelIssues, find_label_issues, read_decisions

pytestmark = needs_chrome
AXE = Path(__file__).parents[1] / "app" / "review_page" / "axe.min.js"
HOSTILE = '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chrome(tmp_path_factory, "--window-size=1200,900") as driver:
        yield driver


class AuditPage(Page):
    """What a person does with the page."""

    def __init__(self, browser, path):
        super().__init__(browser)
        browser.get(path.as_uri())
        self.wait(lambda: self.js("return document.documentElement.dataset.ready") == "yes")

    def rows(self):
        return self.js("return [...document.querySelectorAll('#table tr.row')].map(r => +r.dataset.row)")

    def column(self, name):
        cells = f"document.querySelectorAll('#table tr.row td[data-name={name}]')"
        return self.js(f"return [...{cells}].map(c => c.innerText)")

    def choose(self, selector, text):
        self.js(
            "const s = document.querySelector(arguments[0]);"
            "s.value = [...s.options].find(o => o.text === arguments[1]).value; s.dispatchEvent(new Event('change'))",
            selector, text,
        )  # fmt: skip

    def press(self, keys):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.browser).send_keys(keys).perform()

    def count(self):
        return int(self.find("#count").text.split(" of ")[0].replace(",", ""))


@pytest.fixture
def page(browser, found, moons, tmp_path):
    frame = pd.DataFrame(moons[0], columns=["east", "north"])
    frame["note"] = [f"note number {i}" for i in range(len(frame))]
    path = tmp_path / "page.html"
    write_audit_page(found, path, title="moons", frame=frame, ids=[f"id{i}" for i in range(400)])
    return AuditPage(browser, path)


def test_rows_come_ranked_and_headings_sort_them(page, found):
    assert page.rows() == found.ranking[:50].tolist()
    page.find("th[data-key=row] button").click()
    assert page.column("row")[:3] == ["id0", "id1", "id2"]
    page.find("th[data-key=row] button").click()
    assert page.column("row")[0] == "id399"
    page.find("th[data-key=given] button").click()
    assert set(page.column("given")) == {"no"}
    page.find("th[data-key=score] button").click()
    assert page.rows()[0] == found.ranking[0]


def test_filters_search_and_paging(page, found):
    page.choose("#f-given", "yes")
    assert page.count() == (found.given == 1).sum()
    page.choose("#f-reason", "neighbours disagree")
    assert page.count() == ((found.given == 1) & found.reasons[:, 1]).sum()
    page.find("#clear").click()
    assert page.count() == 400
    page.choose("#f-group", "careless")
    assert page.count() == (found.groups == "careless").sum()
    page.find("#clear").click()
    page.find("#search").send_keys("note id37")
    page.wait(lambda: page.count() == 11)  # id37 and id370 to id379
    page.find("#clear").click()
    assert page.find("#page").text == "page 1 of 8"
    page.find("#next").click()
    assert page.rows() == found.ranking[50:100].tolist()
    page.find("#last").click()
    assert page.find("#page").text == "page 8 of 8"
    assert not page.find("#next").is_enabled()
    page.find("#search").send_keys("nothing has this")
    page.wait(lambda: page.count() == 0)
    assert "No row fits" in page.find("#table tbody").text


def test_a_row_opens_with_its_content_and_neighbours(page, found):
    first = int(found.ranking[0])
    assert f"note number {first}" in page.column("content")[0]
    page.find("#table tr.row").click()
    heads = page.js("return [...document.querySelectorAll('tr.detail th')].map(t => t.innerText)")
    assert heads[:6] == ["neighbour", "label", "score", "east", "north", "note"]
    text = page.find("tr.detail").text
    assert f"note number {first}" in text
    assert all(f"id{j}" in text for j in found.neighbours[first])
    page.press("\ue00c")  # Escape
    assert not page.browser.find_elements("css selector", "tr.detail")


def test_marks_by_mouse_and_keyboard_go_into_the_download_and_survive_a_reload(page, found):
    fresh(page)
    first, second, third = found.ranking[:3].tolist()
    page.find("#table tr.row td.mark button.w").click()
    page.press("j")
    page.press("r")
    page.press("jw")
    page.press("jwu")  # marked and unmarked again
    assert page.find("#marks").text == "2 marked wrong, 1 right"
    page.choose("#f-mark", "wrong")
    assert sorted(page.rows()) == sorted([first, third])
    page.find("#download").click()
    target = page.browser.downloads / "decisions.csv"
    page.wait(target.exists)
    page.wait(lambda: target.read_text().count("\n") == 4)
    lines = {int(line["row"]): line for line in csv.DictReader(io.StringIO(target.read_text()))}
    assert {row: line["decision"] for row, line in lines.items()} == {first: "wrong", second: "right", third: "wrong"}
    assert lines[first]["id"] == f"id{first}"
    assert lines[first]["given"] == found.classes[found.given[first]]
    assert lines[first]["label"] == found.classes[found.suggested[first]]
    assert lines[second]["label"] == lines[second]["given"]
    page.browser.refresh()
    page.wait(lambda: page.find("#marks").text == "2 marked wrong, 1 right")


def test_marks_survive_a_reload_that_does_not_see_the_storage_of_a_file(page):
    """Chromium may show an empty localStorage to a page from a file that is loaded again at once."""
    fresh(page)
    page.press("w")
    page.press("jr")
    assert page.find("#marks").text == "1 marked wrong, 1 right"
    page.js("localStorage.clear()")
    page.browser.refresh()
    page.wait(lambda: page.find("#marks").text == "1 marked wrong, 1 right")


def forget(page):
    def forgotten():
        page.js("history.replaceState(null, ''); localStorage.clear()")
        page.browser.refresh()
        return page.js("return document.documentElement.dataset.ready === 'yes' && localStorage.length === 0")

    page.wait(forgotten)


def fresh(page):
    """Nothing marked, neither in the storage, which may lag behind, nor in the tab's history."""
    forget(page)
    for old in page.browser.downloads.iterdir():
        old.unlink()


def downloaded(page, lines):
    target = page.browser.downloads / "decisions.csv"
    page.find("#download").click()
    page.wait(target.exists)
    page.wait(lambda: target.read_text().count("\n") == lines + 1)
    return target


def test_another_label_a_note_unsure_and_the_reviewer_go_into_the_decisions_and_can_be_loaded_again(page, found):
    fresh(page)
    page.find("#reviewer").send_keys('=Eve, "E"')
    page.find("#table tr.row").click()
    page.choose("tr.detail select", page.js("return document.querySelector('tr.detail select option').text"))
    page.find("#table tr.row td.mark button.w").click()  # marked already: it stays
    assert page.find("#marks").text == "1 marked wrong, 0 right"
    page.find("tr.detail input.note").send_keys("looks, odd\ue007")
    page.press("\ue00c")
    page.press("js")
    assert page.find("#marks").text == "1 marked wrong, 0 right, 1 unsure"
    path = downloaded(page, 2)
    lines = read_decisions(path, found.classes[found.given])
    first, second = found.ranking[:2].tolist()
    assert {d.position: (d.kind, d.reviewer, d.note) for d in lines} == {
        first: ("wrong", '=Eve, "E"', "looks, odd"),
        second: ("unsure", '=Eve, "E"', ""),
    }
    fresh_copy = path.rename(path.with_name("kept.csv"))
    forget(page)
    assert page.find("#marks").text == "nothing marked yet"
    page.find("#load").send_keys(str(fresh_copy))
    page.wait(lambda: page.find("#loaded").text == "2 decisions loaded.")
    assert page.find("#marks").text == "1 marked wrong, 0 right, 1 unsure"
    page.find("#table td.mark button.undo").click()
    assert page.find("#marks").text == "0 marked wrong, 0 right, 1 unsure"
    other = fresh_copy.with_name("other.csv")
    other.write_text("row,given,decision,label\n0,never,right,never\n")
    page.find("#load").send_keys(str(other))
    page.wait(lambda: "1 left out" in page.find("#loaded").text)


def test_rows_can_be_reached_and_opened_with_tab_and_shortcuts_can_be_turned_off(page, found):
    fresh(page)
    page.js("document.querySelector('#table th:last-of-type').scrollIntoView()")
    page.js("document.querySelector('#table tr.row button.open').focus()")
    page.press("\ue007")  # Enter
    assert page.find("#table tr.row button.open").get_attribute("aria-expanded") == "true"
    assert page.js("return document.activeElement.className") == "open"  # the focus is not lost
    page.press("\ue004")  # Tab, to the first mark
    assert page.js("return document.activeElement.textContent") == "wrong"
    page.press(" ")
    assert page.find("#marks").text == "1 marked wrong, 0 right"
    assert page.js("return document.activeElement.textContent") == "wrong"
    page.js("document.activeElement.blur(); document.getElementById('keys').click()")
    page.press("r")
    assert page.find("#marks").text == "1 marked wrong, 0 right"
    page.browser.refresh()
    assert not page.find("#keys").is_selected()
    page.js("document.getElementById('keys').click()")


def test_decisions_given_to_the_audit_are_marks_on_its_page(browser, moons, tmp_path):
    X, y, wrong = moons
    row = int(np.flatnonzero(wrong)[0])
    lines = [{"row": row, "given": y[row], "decision": "wrong", "label": 1 - y[row], "reviewer": "eve", "note": "seen"}]
    path = tmp_path / "page.html"
    write_audit_page(find_label_issues(X, y, decisions=lines, random_state=0), path)
    page = AuditPage(browser, path)
    fresh(page)
    assert page.find("#marks").text == "1 marked wrong, 0 right"
    text = downloaded(page, 1).read_text().splitlines()[1]
    assert text == f"{row},{row},{y[row]},wrong,{1 - y[row]},eve,seen"  # the given label is that of the file
    page.choose("#f-mark", "wrong")
    page.find("#table td.mark button.undo").click()
    page.browser.refresh()
    page.wait(lambda: page.find("#marks").text == "nothing marked yet")


def test_confusion_cells_and_sources_list_their_rows(page, found):
    page.find("#confusion button[data-cell='0-1']").click()
    assert page.count() == ((found.given == 0) & (found.suggested == 1)).sum()
    page.find("#groups tbody button").click()
    assert page.count() == (found.groups == "careless").sum()


def test_the_map_names_the_row_under_the_pointer_and_opens_it(page, found):
    from selenium.webdriver.common.action_chains import ActionChains

    canvas = page.find("#map")
    page.js("arguments[0].scrollIntoView({block: 'center'})", canvas)
    target = int(found.ranking[0])
    x, y = page.js(
        "const D = JSON.parse(document.getElementById('data').textContent), r = arguments[0], c = arguments[1];"
        "const W = c.clientWidth, H = c.clientHeight;"
        "return [12 + D.x[r] * (W - 24) - W / 2, H / 2 - 12 - D.y[r] * (H - 24)]",
        target, canvas,
    )  # fmt: skip
    ActionChains(page.browser).move_to_element_with_offset(canvas, int(x), int(y)).perform()
    page.wait(lambda: page.find("#tip").is_displayed())
    assert page.find("#tip").text.startswith("row id")
    canvas_row = page.js("return +document.getElementById('tip').dataset.row")
    assert np.linalg.norm(found.map_position[canvas_row] - found.map_position[target]) < 0.2
    ActionChains(page.browser).click().perform()
    assert page.find("tr.detail").is_displayed()
    assert page.js("return +document.querySelector('tr.selected').dataset.row") == canvas_row


def test_light_and_dark_and_phone_width(page):
    page.browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    page.browser.refresh()
    dark = page.js("return getComputedStyle(document.body).backgroundColor")
    page.find("#theme").click()
    light = page.js("return getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, dark[4:-1].split(","))) < 150 < 600 < sum(map(int, light[4:-1].split(",")))
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    page.browser.refresh()
    assert page.js("return document.documentElement.scrollWidth") <= 390
    assert page.find("#table tr.row td.mark button").size["height"] >= 28
    page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_has_no_barriers_that_axe_knows(page, scheme):
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    fresh(page)
    page.find("#table tr.row button.open").click()
    page.find("#table tr.row button.w").click()
    page.js(AXE.read_text(encoding="utf-8"))
    found = page.browser.execute_async_script(
        "const done = arguments[0]; axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})"
        ".then(r => done([r.violations.map(v => v.id + ' ' + v.nodes[0].html), r.passes.length]))"
    )
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert found[0] == []
    assert found[1] > 15, "axe did not look"


def test_hostile_text_stays_text(browser, blobs, tmp_path):
    X, given, _, _ = blobs
    labels = np.where(given == "red", HOSTILE, given)
    result = find_label_issues(X, labels, groups=np.full(300, HOSTILE), random_state=0)
    frame = pd.DataFrame({HOSTILE: [HOSTILE] * 300})
    path = tmp_path / "page.html"
    path.write_text(render(result, title=HOSTILE, frame=frame, ids=[HOSTILE] * 300, notes=[HOSTILE]), encoding="utf-8")
    page = AuditPage(browser, path)
    page.find("#table tr.row").click()
    page.find("#notes summary").click()
    assert page.js("return window.hacked") is None
    assert not browser.find_elements("css selector", "img")
    assert HOSTILE in page.find("h1").text
    assert HOSTILE in page.find("tr.detail dd").get_property("textContent")
    assert HOSTILE in page.find("#confusion").get_property("textContent")


@pytest.fixture(scope="module")
def large():
    """A made-up result of 50,000 rows: the page does not care where numbers come from."""
    rng = np.random.default_rng(0)
    n = 50_000
    given = rng.integers(0, 5, n)
    score = rng.beta(0.2, 4, n)
    return LabelIssues(
        classes=np.array(list("abcde")),
        given=given,
        suggested=(given + 1) % 5,
        score=score,
        flagged=score >= 0.5,
        probability=np.zeros((n, 5)),
        reasons=rng.random((n, 5)) < 0.2,
        neighbour_disagreement=score,
        neighbours=rng.integers(0, n, (n, 6)),
        near_duplicate_pairs=np.zeros((0, 2), dtype=int),
        map_position=rng.normal(size=(n, 2)),
        map_method="chance",
        row_numbers=np.arange(n),
    )


def test_50_000_rows_stay_responsive(browser, large, tmp_path):
    frame = pd.DataFrame({"text": [f"review number {i} of a long list of things" for i in range(50_000)]})
    path = tmp_path / "page.html"
    write_audit_page(large, path, frame=frame, most_rows=50_000)
    page = AuditPage(browser, path)
    # Only a page of rows is ever in the document: that, and not luck, keeps it responsive.
    nodes = page.js("return document.querySelectorAll('*').length")
    assert nodes < 2500
    page.find("th[data-key=given] button").click()
    assert page.rows()[0] == np.lexsort((np.arange(50_000), -large.score, large.given))[0]
    page.find("#search").send_keys("number 4999")
    page.wait(lambda: page.count() == sum("4999" in str(i) for i in range(50_000)))
    page.find("#clear").click()
    page.find("#last").click()
    assert page.find("#page").text == "page 1000 of 1000"
    page.press("k")
    assert page.js("return document.querySelectorAll('*').length") < 2500


@pytest.mark.parametrize("folder", [False, True], ids=["inside", "beside"])
def test_pictures_stand_in_the_list_on_sheets_and_side_by_side(browser, tmp_path, monkeypatch, folder):
    pillow = pytest.importorskip("PIL.Image", reason="pictures need pillow")
    from floral_learn.app import audit_page

    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=400)
    X = np.column_stack([3 * truth + rng.normal(size=400), rng.normal(size=400)])
    y = np.where(rng.random(400) < 0.1, 1 - truth, truth)
    X[1], y[1] = X[0], 1 - y[0]
    (tmp_path / "photos").mkdir()
    paths = [tmp_path / "photos" / f"<b>{i}%20.png" for i in range(400)]
    for path, t in zip(paths, truth, strict=True):
        pillow.new("L", (40, 30), 60 + 120 * int(t)).save(path)
    if folder:
        monkeypatch.setattr(audit_page, "MOST_BYTES", 1000)
    pictures = audit_page.PagePictures(paths, tmp_path / "report")
    page = render(find_label_issues(X, y), frame=pd.DataFrame({"file": [p.name for p in paths]}), pictures=pictures)
    (tmp_path / "report" / "thumbnails").mkdir(parents=True)
    (tmp_path / "report" / "page.html").write_text(page, encoding="utf-8")
    assert bool(pictures.files) == folder
    for path, content in pictures.files.items():
        path.write_bytes(content)
    page = AuditPage(browser, tmp_path / "report" / "page.html")
    page.js("const s = document.getElementById('size'); s.value = 100; s.dispatchEvent(new Event('change'))")
    page.js("document.querySelector('.tile').click()")
    assert page.js("return document.querySelectorAll('img').length") < 300
    page.wait(lambda: page.js("return document.querySelector('.figures img').naturalWidth") == 40)
    page.wait(lambda: page.js("return document.querySelector('.tile img').naturalWidth") == 40)
    page.find("#search").send_keys("<b>0%20")
    page.wait(lambda: len(page.rows()) == 1)
    page.find("button.open").click()
    page.wait(lambda: page.js("return document.querySelectorAll('.figures img').length") == 2)
    link = page.js("return document.querySelector('.figures a').href")
    assert link == paths[0].as_uri()
    assert page.js("return window.hacked === undefined")
