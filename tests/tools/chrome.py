"""Chromium, for tests of pages."""

import shutil
import time
from contextlib import contextmanager

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROME = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
needs_chrome = pytest.mark.skipif(
    not (CHROME and DRIVER), reason="no Chromium with its driver on this machine (Debian: chromium chromium-driver)"
)
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@contextmanager
def chrome(folders, *flags):
    """A browser with a profile and a folder of downloads of its own, until the end of the block."""
    from selenium.webdriver.chrome.service import Service

    options, downloads = webdriver.ChromeOptions(), folders.mktemp("downloads")
    options.binary_location = CHROME
    for flag in (*FLAGS, *flags, f"--user-data-dir={folders.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.downloads = downloads
    yield driver
    driver.quit()


class Page:
    """What a person does with any page."""

    def __init__(self, browser):
        self.browser = browser

    def js(self, code, *args):
        return self.browser.execute_script(code, *args)

    def find(self, selector):
        return self.browser.find_element("css selector", selector)

    def trouble(self):
        return "the page did not get there"

    def wait(self, true, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if true():
                return
            time.sleep(0.03)
        raise AssertionError(self.trouble())
