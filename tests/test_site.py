"""The built site in Chromium, on a desk and on a phone: nothing sticks out, no picture is missing."""

import re
from pathlib import Path

import pytest
from chrome import chrome, needs_chrome

SITE = Path(__file__).resolve().parents[1] / "build" / "docs"
pytestmark = [
    pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="the site is not built: make docs"),
    needs_chrome,
]
# On a desk no column of a result is behind a scroll bar; on a phone wide tables scroll within themselves.
LOOK = """
const width = document.documentElement.clientWidth;
const scrolls = '.pst-scrollable-table-container, pre, .math-display';
return {
  sideways: document.documentElement.scrollWidth - width,
  missing: [...document.images].filter(i => i.complete && !i.naturalWidth && i.loading != 'lazy').map(i => i.src),
  outside: [...document.querySelectorAll('article *')].filter(
    e => e.getBoundingClientRect().right > width + 1 && !e.closest(scrolls)).map(e => e.outerHTML.slice(0, 120)),
  cut: innerWidth < 1000 || !location.pathname.includes('/results/') ? [] :
    [...document.querySelectorAll('.pst-scrollable-table-container')].filter(
      c => c.scrollWidth > c.clientWidth + 1).map(c => c.innerText.slice(0, 80)),
  fetched: performance.getEntriesByType('resource').map(r => r.name).filter(n => n.startsWith('http')),
};
"""


def pages():
    """Pages that people write, and a few of those that are generated."""
    written = [p for p in sorted(SITE.rglob("*.html")) if not {"generated", "_static", "gallery"} & set(p.parts)]
    some = [p for folder in ("api/generated", "gallery") for p in sorted((SITE / folder).glob("*.html"))[::6]]
    return [p for p in [*written, *some] if p.name not in ("genindex.html", "search.html", "py-modindex.html")]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chrome(tmp_path_factory) as driver:
        yield driver


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("three annotators", "crowd"),
        ("inter-annotator", "crowd"),
        ("xgboost", "boosting"),
        ("label noise", "audit"),
        ("data poisoning", "threat-model"),
    ],
)
def test_the_search_finds_the_right_page_among_its_first_three(browser, query, page):
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"{(SITE / 'search.html').as_uri()}?q={query.replace(' ', '+')}")
    found = "return [...document.querySelectorAll('#search-results ul.search li a')].map(a => a.getAttribute('href'))"

    def right(driver):  # results are shown one by one, the best first
        return f"{page}.html" in [re.split("[?#]", link)[0] for link in driver.execute_script(found)[:3]]

    WebDriverWait(browser, 20).until(right, f"{query}: {browser.execute_script(found)[:3]}")


@pytest.mark.parametrize("width", [1280, 390], ids=["desk", "phone"])
def test_pages_fit_the_screen_and_are_complete(browser, width):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    wrong = []
    for page in pages():
        browser.get(page.as_uri())
        seen = browser.execute_script(LOOK)
        if any(seen.values()):
            wrong.append(f"{page.relative_to(SITE)}: {seen}")
    assert len(pages()) > 30
    assert not wrong, "\n".join(wrong)
