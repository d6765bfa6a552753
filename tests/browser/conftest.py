"""A headless Chromium of the system, driven by playwright; skipped where there is none.

`pip install '.[dev,browser]'` and a Chromium, for example Debian's package of that
name. Nothing is downloaded. With LAND_SCREENSHOTS, tests leave pictures in that folder.
"""

import os
import shutil
import time
from pathlib import Path

import pytest

WIDTHS = {"desktop": (1200, 850), "phone": (390, 844)}
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def chromium():
    sync = pytest.importorskip(
        "playwright.sync_api", reason="no playwright: pip install '.[browser]'"
    )
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(_NAMES)} is installed")
    with sync.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium):
    """Open an address in a window of a width and a scheme; no page may complain."""
    complaints, contexts = [], []

    def opened(address, width="desktop", scheme="light", **more):
        size = dict(zip(("width", "height"), WIDTHS[width], strict=True))
        context = chromium.new_context(viewport=size, color_scheme=scheme, **more)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def until():
    """Wait for an expression of the page to be true."""

    def wait(page, expression, seconds=60.0):
        end = time.monotonic() + seconds
        while not page.evaluate(expression):
            assert time.monotonic() < end, expression
            page.wait_for_timeout(30)

    return wait


@pytest.fixture
def picture():
    """Keep a picture of the whole page, if somebody wants to look at it."""

    def keep(page, name):
        folder = os.environ.get("LAND_SCREENSHOTS")
        if folder:
            page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)

    return keep
