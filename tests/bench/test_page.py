"""The page in a real browser: it is not too wide, it asks nobody for anything, and data cannot become markup."""

import html
import re
import shutil
import subprocess
from dataclasses import replace

import pytest
from tiny import BROKEN, TINY

from floral_bench.reporting.page import render
from floral_bench.reporting.results import Results
from floral_bench.runner import run_suite
from floral_bench.store import Store

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
HOSTILE = "<script>document.title='taken'</script>&\"'"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    hostile = replace(BROKEN, label=HOSTILE)
    suite = replace(TINY, methods=(*TINY.methods, hostile), title=f"a title {HOSTILE}")
    note = {"command": f"floral bench tiny {HOSTILE}", "environment": {"python": "3", "odd": HOSTILE}}
    with Store(tmp_path_factory.mktemp("page") / "store.sqlite") as store:
        run_suite(suite, store)
        return render(Results(suite, store), note)


def test_the_page_has_everything_in_it(page):
    for expected in (
        "Test accuracy",
        "Hinge loss",
        "Settings and versions",
        "Repeat it",
        "floral bench tiny",
        "Seeds: 1, 2",
    ):
        assert expected in page
    assert "Cells that failed" in page
    assert page.count("data:image/png;base64,") == 5  # rounds, and a curve for each of best, last, average and one fit


def test_pictures_come_before_tables_and_each_names_its_attack(page):
    assert page.index("<figure") < page.index("<table")
    headings = re.findall(r"<figure.*?>\n<h2>(.*?)</h2>", page)
    assert len(headings) == 4
    assert all("farthest" in text for text in headings)


def test_the_page_refers_to_nothing_outside(page):
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!data:|#)""", page)
    assert not re.findall(r"https?://", page)
    assert "default-src 'none'" in page


def test_text_from_data_is_escaped(page):
    assert HOSTILE not in page
    assert html.escape("<script>document.title=") in page


def dom(path, tmp_path):
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--virtual-time-budget=2000",
        f"--user-data-dir={tmp_path / 'profile'}", "--window-size=390,900", "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout
