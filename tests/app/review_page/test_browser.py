"""The page in Chromium: a reviewer who knows the truth, keys, two windows, hostile text, a phone, the dark, WCAG."""

import json
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from chrome import Page, chrome, needs_chrome
from sklearn.datasets import load_digits

from floral_learn import FloralClassifier, JudgeReview, LabelReview, find_label_issues, load

pytestmark = needs_chrome
AXE = (Path(__file__).parent / "axe.min.js").read_text(encoding="utf-8")
RULES = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}"
SLIP = 0.3  # seconds in which the page takes a second press for a slip


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chrome(tmp_path_factory, "--window-size=1280,900") as driver:
        yield driver


class ReviewPage(Page):
    """What a person does."""

    def __init__(self, browser, address, name="ann"):
        super().__init__(browser)
        self.name = name
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.get(f"{address}?as={name}")
        browser.get_log("browser")  # what a page of an earlier test complained about when its server went away
        self.wait(lambda: self.row() is not None)

    def trouble(self):
        return f"the page did not get there: {self.text('#trouble')!r}"

    def text(self, selector):
        return self.js("return document.querySelector(arguments[0]).innerText", selector)

    def row(self):
        row = self.js("return document.documentElement.dataset.row")
        return None if row is None else int(row)

    def press(self, keys):
        from selenium.webdriver.common.action_chains import ActionChains

        time.sleep(SLIP)
        ActionChains(self.browser).send_keys(keys).perform()

    def say(self, label):
        """Press the button of a class and wait for the next question."""
        before = self.row()
        time.sleep(SLIP)
        self.js(
            "[...document.querySelectorAll('#classes button')].find(b => b.dataset.label === arguments[0]).click()",
            label,
        )
        self.wait(lambda: self.row() != before)

    def settled(self, answers):
        self.wait(lambda: self.js("return document.documentElement.dataset.answers") == str(answers))

    def violations(self):
        """What axe finds against WCAG."""
        self.js(AXE)
        found = self.browser.execute_async_script(
            f"const done = arguments[0]; axe.run(document, {RULES}).then(r => done([r.violations.map(v => v.id + ': ' "
            "+ v.nodes.map(n => n.target.join(' ') + ' ' + n.failureSummary).join('; ')), r.passes.length]))"
        )
        assert found[1] > 20, "axe did not look"
        return found[0]

    def errors(self):
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]

    def shape(self, width, dark=False, height=844):
        sizes = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sizes)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


@pytest.fixture
def page(browser, running):
    return ReviewPage(browser, running.server.address)


@pytest.mark.parametrize("answers", [14, pytest.param(30, marks=pytest.mark.slow)])
def test_a_reviewer_with_the_true_labels_gets_a_clean_table_and_a_good_model(browser, parts, start, tmp_path, answers):
    path, truth = parts
    running = start(path, tmp_path / "review", seed=0)
    page = ReviewPage(browser, running.server.address)
    for _ in range(answers):
        page.say(str(truth[page.row()]))
    page.settled(answers)
    assert page.text("#glance").startswith(f"{answers} of about ")
    known = answers >= 20
    assert (page.text("#share") == "Not known yet") != known
    assert "Whatever an attacker did" in page.text("#guarantee")
    page.find("#finish").click()
    page.wait(lambda: page.js("return document.querySelector('#done').open"), 120)
    for width, height in ((1280, 800), (1920, 1080)):
        page.shape(width, height=height)
        for part in ("#written li:last-child a", "#written code", "#go-on"):
            box = page.js(
                "const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.top, b.bottom]", part
            )
            assert 0 <= box[0] < box[1] <= height, part
    assert "cleaned.csv" in page.text("#written")
    assert "floral predict" in page.text("#written")
    assert page.errors() == []
    out, work = running.session.out, running.session
    plain = LabelReview(work.X, work.table.labels, groups=work.table.groups, random_state=0)
    for _ in range(answers):
        rows = plain.ask(1)
        plain.answer(rows, truth[rows])
    cleaned = pd.read_csv(out / "cleaned.csv")["quality"].to_numpy()
    assert (cleaned == truth).mean() >= (plain.labels == truth).mean() - 0.02
    assert (cleaned == truth).mean() > (work.table.labels == truth).mean() + 0.05

    python = plain.train(FloralClassifier(C=1.0, budget=0.05, random_state=0)).predict(work.X)
    model = load(out / "model.skops").predict(work.table.features)
    assert (model == truth).mean() >= (python == truth).mean() - 0.02


def test_keys_answer_and_can_be_turned_off(page, running):
    first = page.row()
    page.press("1")
    page.wait(lambda: page.row() != first)
    second = page.row()
    page.press("u")
    page.wait(lambda: page.row() != second)
    third = page.row()
    page.press("s")
    page.wait(lambda: page.row() != third)
    page.press("z")
    page.wait(lambda: page.row() == third)
    said = [(answer.row, answer.kind, answer.label) for answer in running.session.store.active()]
    assert said == [(first, "label", "bad"), (second, "unsure", None)]
    page.find("#open-settings").click()
    page.find("#use-keys").click()
    page.find("#settings button").click()
    page.press("1")
    page.press("u")
    time.sleep(0.5)
    assert page.row() == third
    assert len(running.session.store.active()) == 2
    page.js("localStorage.clear(); sessionStorage.clear()")


def test_a_second_press_at_once_is_a_slip(page, running):
    before = page.row()
    time.sleep(SLIP)
    page.js("const b = document.querySelector('#classes button'); b.click(); b.click();")
    page.wait(lambda: page.row() != before)
    page.js("document.querySelector('#classes button').click()")
    page.wait(lambda: "Ignored" in page.text("#slip"))
    assert len(running.session.store.active()) == 1
    page.press("1")
    page.wait(lambda: len(running.session.store.active()) == 2)
    page.wait(lambda: page.text("#slip") == "")


def test_earlier_answers_own_keys_and_guidelines_by_keyboard(browser, parts, start, tmp_path):
    page_options = {"keys": {"good": "s"}, "guidelines": "# What counts\n- <b>bad</b> if broken"}
    running = start(parts[0], tmp_path / "review", seed=0, page=page_options)
    page = ReviewPage(browser, running.server.address)
    assert page.text("#guidelines").split("\n")[-1] == "<b>bad</b> if broken"
    rows = []
    for key in ("s", "1", "S", "f", "x"):
        rows.append(page.row())
        page.press(key)
        page.wait(lambda: page.row() != rows[-1])
    kinds = ["label", "label", "skip", "later", "out"]
    assert [(said.row, said.kind) for said in running.session.store.active()] == list(zip(rows, kinds))
    page.wait(lambda: page.js("return document.querySelectorAll('#answers button').length") == 5)
    page.press("c")
    for _ in range(4):
        page.press("\ue015")
    page.press("\ue007")
    page.wait(lambda: page.row() == rows[0])
    assert "You said good" in page.text("#reason")
    page.press("1")
    page.wait(lambda: page.row() != rows[0])
    assert running.session.store.active()[-1].label == "bad"
    assert page.errors() == []


def test_rows_that_are_nearly_the_same_are_answered_at_once_by_keyboard(browser, start, tmp_path):
    rng = np.random.default_rng(0)
    places = np.repeat(rng.normal(size=(30, 2)), 4, axis=0)
    frame = pd.DataFrame(places + 1e-5 * rng.normal(size=(120, 2)), columns=["width", "height"])
    frame["remark"], frame["source"] = "", "a"
    frame["quality"] = np.where((frame["width"] > 0) ^ (rng.random(120) < 0.1), "good", "bad")
    frame.to_csv(tmp_path / "parts.csv", index=False)
    running = start(tmp_path / "parts.csv", tmp_path / "review", seed=0)
    page = ReviewPage(browser, running.server.address)
    store, truth = running.session.store, np.where(frame["width"] > 0, "good", "bad")

    def press(key):
        row = page.row()
        page.press(key)
        page.wait(lambda: page.row() != row)
        return row

    key_of = {"bad": "1", "good": "2"}
    assert "These 4 rows are nearly the same" in page.text("#alike-title")
    assert len(page.text("#alikes").split("\n")) == 3
    for dark in (False, True):
        page.shape(390, dark)
        assert page.violations() == []
    page.shape(1280)
    first = press(key_of[truth[page.row()]])
    said = store.active()[-1]
    assert sorted(said.rows) == list(range(4 * (first // 4), 4 * (first // 4) + 4))
    assert f"row {first} and 3 like it are" in page.text("#last").replace("\n", " ")
    page.wait(lambda: "1 answer on 1 row and 3 rows like them" in page.text("#answered"))
    before = page.row()
    page.press("z")
    page.wait(lambda: page.row() == first)
    assert store.active() == []
    assert "nearly the same" in page.text("#alike-title"), "as it was asked"
    page.press("a")
    page.wait(lambda: "only" in page.text("#alike-title"))
    press(key_of[truth[first]])
    assert store.active()[-1].rows == (first,)
    assert page.row() == before
    rows = [press(key_of[truth[page.row()]]) for _ in range(3)]
    page.press("c")
    page.press("\ue007")
    page.wait(lambda: page.row() == rows[-1])
    press(key_of[truth[rows[-1]]])
    changed, other = store.active()[-1], store.active()[-2]
    assert (changed.row, sorted(changed.along)) == (rows[-1], sorted(other.along)), "changing one changes all"
    page.find("#finish").click()
    page.wait(lambda: page.js("return document.querySelector('#done').open"), 120)
    told = pd.read_csv(running.session.out / "decisions.csv")
    assert len(told) == len({row for said in store.active() for row in said.rows})
    assert (told["label"] == truth[told["row"]]).all()
    assert page.errors() == []


def test_judges_are_questioned_blind_and_the_same_after_a_restart(browser, tmp_path):
    from floral_learn.app.review_page import JudgeSession, ReviewServer
    from floral_learn.app.tables import read_table

    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=60)
    texts = [f"a comment number {i} that somebody wrote about something, {'rude' * t}" for i, t in enumerate(truth)]
    frame = pd.DataFrame({"text": texts})
    frame.to_csv(tmp_path / "answers.csv", index=False)
    said = pd.DataFrame({"gpt": np.array(["fine", "rude"])[truth], "rules": rng.choice(["fine", "rude"], 60)})
    path, out, rows = tmp_path / "answers.csv", tmp_path / "judged", []

    def sitting():
        session = JudgeSession(JudgeReview(said, prompt="rude?"), read_table(path), path=path, out=out)
        server = ReviewServer(session, title="answers.csv", reviewer="ann", folder=out)
        threading.Thread(target=server.run, daemon=True).start()
        page = ReviewPage(browser, server.address)
        assert not rows or page.row() == rows[-1]
        assert not page.find("#given").is_displayed()
        for _ in range(6):
            rows.append(page.row())
            page.press("12"[truth[rows[-1]]])
            page.wait(lambda: page.row() != rows[-1])
        rows.append(page.row())
        page.wait(lambda: "gpt: " in page.text("#judges"))
        page.find("#finish").click()
        page.wait(lambda: page.js("return document.querySelector('#done').open"))
        assert page.errors() == []
        server.stop()
        session.close()

    sitting()
    sitting()
    told = json.loads((tmp_path / "judged" / "judge.json").read_text())
    assert told["answered"] == 12
    assert [row["error"] < 0.2 for row in told["errors"] if row["class"] == ""] == [True, False]
    assert "gpt" in (tmp_path / "judged" / "judge.html").read_text()


def test_the_given_label_is_hidden_until_answered_or_asked_for(page, running):
    given = str(running.session.rows.labels[page.row()])
    assert given not in page.text("#given").split()
    page.find("#reveal").click()
    assert page.text("#given").split()[-1] == given
    row = page.row()
    page.say(given)
    assert f"row {row} is" in page.text("#last").replace("\n", " ")
    assert "as the file says" in page.text("#last")
    assert running.session.store.active()[0].seen
    row = page.row()
    page.say("bad" if running.session.rows.labels[row] == "good" else "good")
    assert "while the file says" in page.text("#last")
    assert not running.session.store.active()[1].seen


def test_two_windows_two_reviewers(browser, running, parts):
    truth = parts[1]
    ann = ReviewPage(browser, running.server.address, "ann")
    first = browser.current_window_handle
    browser.switch_to.new_window("window")
    bob = ReviewPage(browser, running.server.address, "bob")
    second = browser.current_window_handle
    try:
        assert ann.row() is not None
        for _ in range(7):
            browser.switch_to.window(first)
            ann.say(str(truth[ann.row()]))
            browser.switch_to.window(second)
            bob.say(str(truth[bob.row()]))
        browser.switch_to.window(first)
        while "Second opinion" not in ann.text("#reason"):
            ann.say(str(truth[ann.row()]))
        row = ann.row()
        ann.say("bad" if truth[row] == "good" else "good")
        browser.switch_to.window(second)
        for _ in range(4):
            if "do not agree" in bob.text("#reason"):
                break
            bob.say(str(truth[bob.row()]))
        assert bob.row() == row
        assert "ann:" in bob.text("#reason")
        bob.wait(lambda: "You disagree on 1 row" in bob.text("#disagreements"))
    finally:
        browser.switch_to.window(second)
        browser.close()
        browser.switch_to.window(first)


def test_hostile_names_and_texts_stay_text(browser, start, tmp_path):
    bad = '"><img src=x onerror=window.hacked=1><script>window.hacked=1</script>'
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"size {bad}": rng.normal(size=40), "text": [bad * 3] * 40, "source": [bad] * 40})
    frame["remark"] = ""
    frame["quality"] = np.where(frame.iloc[:, 0] > 0, bad, "javascript:window.hacked=1")
    (tmp_path / "a&b<i>.csv").write_text(frame.to_csv(index=False), encoding="utf-8")
    running = start(tmp_path / "a&b<i>.csv", tmp_path / "review")
    page = ReviewPage(browser, running.server.address, "ann%3Cb%3E")
    page.say(bad)
    page.settled(1)
    assert page.text("h1") == "a&b<i>.csv"
    assert bad in page.text("#fields")
    assert page.js("return document.querySelector('#classes button').textContent").startswith('">')
    assert page.js("return window.hacked === undefined")
    assert page.js("return document.querySelectorAll('img').length") == 1, "the page's own"
    assert page.errors() == []


def test_an_answer_that_was_not_saved_stays_and_is_sent_again(page, running):
    row = page.row()
    base = running.session.store._base
    base.execute(
        "CREATE TEMP TRIGGER full BEFORE INSERT ON answers BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
    )
    page.press("1")
    page.wait(lambda: "Not saved" in page.text("#trouble"))
    assert page.row() == row
    base.execute("DROP TRIGGER full")
    page.find("#again").click()
    page.wait(lambda: page.row() != row)
    assert page.text("#trouble") == ""
    assert [answer.row for answer in running.session.store.active()] == [row]
    page.browser.get_log("browser")


def test_pictures_are_shown_from_the_folder(browser, start, tmp_path):
    image = pytest.importorskip("PIL.Image", reason="pictures need pillow")
    (tmp_path / "pictures").mkdir()
    for i in range(30):
        image.new("L", (1, 1), 128).save(tmp_path / "pictures" / f"{i}.png")
    frame = pd.DataFrame({"file": [f"pictures/{i}.png" for i in range(30)], "size": np.arange(30.0)})
    frame["remark"], frame["source"], frame["quality"] = "", "a", np.where(np.arange(30) < 15, "low", "high")
    frame.to_csv(tmp_path / "table.csv", index=False)
    page = ReviewPage(browser, start(tmp_path / "table.csv", tmp_path / "review").server.address)
    page.wait(lambda: page.js("const i = document.querySelector('#fields img'); return i && i.naturalWidth === 1"))
    assert page.find("#fields img").get_attribute("alt").startswith("Picture pictures/")


def test_many_classes_have_ten_keys_and_a_search_box_and_leave_room_for_the_question(browser, start, tmp_path):
    names = [f"kind-{chr(97 + k)}" for k in range(26)]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=130), "remark": "", "source": "a", "quality": names * 5})
    frame.to_csv(tmp_path / "table.csv", index=False)
    running = start(tmp_path / "table.csv", tmp_path / "review")
    page = ReviewPage(browser, running.server.address)
    page.shape(1280)
    share = page.js("return document.querySelector('#bar').getBoundingClientRect().height / innerHeight")
    assert share < 0.45, "what is asked about has more than half of the screen"
    before = page.row()
    page.press("0")
    page.wait(lambda: page.row() != before)
    before = page.row()
    page.press("/")
    page.press("kind-x")
    page.press("\ue007")
    page.wait(lambda: page.row() != before)
    assert [answer.label for answer in running.session.store.active()] == ["kind-j", "kind-x"]
    assert page.errors() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390], ids=["desk", "phone"])
def test_it_fits_the_screen_and_meets_wcag(page, parts, width, dark):
    page.say(str(parts[1][page.row()]))
    page.settled(1)
    page.shape(width, dark)
    time.sleep(0.2)
    assert page.js("return document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    small = page.js(
        "return [...document.querySelectorAll('button, summary')].filter(b => b.offsetParent && "
        "b.getBoundingClientRect().height < 24).map(b => b.textContent)"
    )
    assert small == []
    assert page.violations() == []
    page.js("document.getElementById('open-settings').click()")
    assert page.violations() == []


def test_everything_can_be_reached_with_the_keyboard_alone(page, running):
    from selenium.webdriver.common.keys import Keys

    reached = []
    for _ in range(14):
        page.press(Keys.TAB)
        reached.append(page.js("return document.activeElement.id || document.activeElement.dataset.label"))
    assert {"bad", "good", "unsure", "skip", "later", "out", "undo", "reveal", "finish"} <= set(reached)
    page.js("document.querySelector('#classes button').focus()")
    before = page.row()
    page.press(Keys.ENTER)
    page.wait(lambda: page.row() != before)
    assert page.js("return document.activeElement.id") == "ask", "a screen reader goes on with the new question"


@pytest.mark.slow
@pytest.mark.parametrize("beside", [False, True], ids=["inside the page", "beside it"])
def test_the_audit_page_of_2000_pictures_scrolls_without_long_tasks(browser, tmp_path, monkeypatch, beside):
    from floral_learn.app import audit_page

    image = pytest.importorskip("PIL.Image", reason="pictures need pillow")
    rng, digits = np.random.default_rng(0), load_digits()
    rows = np.arange(2000) % len(digits.target)
    labels = np.where(rng.random(2000) < 0.1, rng.integers(10, size=2000), digits.target[rows])
    paths = [tmp_path / f"{i}.png" for i in range(2000)]
    for path, row in zip(paths, rows, strict=True):
        image.fromarray((digits.images[row] * 15.9).astype(np.uint8)).save(path)
    if beside:
        monkeypatch.setattr(audit_page, "MOST_BYTES", 1000)
    pictures = audit_page.PagePictures(paths, tmp_path)
    found = find_label_issues(digits.data[rows], labels, random_state=0)
    page = audit_page.render(found, frame=pd.DataFrame({"file": [path.name for path in paths]}), pictures=pictures)
    (tmp_path / "thumbnails").mkdir()
    for path, content in pictures.files.items():
        path.write_bytes(content)
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.get((tmp_path / "page.html").as_uri())
    js = browser.execute_script
    js("window.tasks = []; new PerformanceObserver(l => tasks.push(...l.getEntries().map(e => e.duration)))"
       ".observe({type: 'longtask', buffered: true})")  # fmt: skip
    js("const s = document.getElementById('size'); s.value = 100; s.dispatchEvent(new Event('change'))")
    images = []
    for _ in range(20):
        for _ in range(10):
            wheel = {"type": "mouseWheel", "x": 640, "y": 450, "deltaX": 0, "deltaY": 900}
            browser.execute_cdp_cmd("Input.dispatchMouseEvent", wheel)
        js("document.querySelector('tr.row button.open').click()")
        images.append(js("return document.images.length"))
        js("document.getElementById('next').click()")
    assert js("return document.getElementById('page').textContent") == "page 20 of 20"
    assert js("return scrollY") > 1000
    assert 100 < max(images) < 300
    assert max(js("return window.tasks"), default=0) < 200
