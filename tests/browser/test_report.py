"""The page of `land report` in a browser."""

import re

import numpy as np
import pytest

import land

SHOWN = "document.querySelectorAll('.live path.shown').length"
FAINT = "document.querySelectorAll('.live use.faint').length"


@pytest.fixture(scope="module")
def data():
    return land.datasets.make_two_moons(100, random_state=0)[0]


@pytest.fixture(scope="module")
def model(data):
    options = {"sigma": 0.3, "rho": 0.05, "method": "least_squares", "n_samples": 200}
    return land.LANDMixture(2, **options, random_state=0).fit(data)


@pytest.fixture(scope="module")
def address(chromium, model, data, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    land.report(model, file, data, names=["length", "width"])
    return file.as_uri()


def _place(page, index):
    """Where a point is in the window, which is scrolled there."""
    page.locator(".live svg").scroll_into_view_if_needed()
    box = page.locator(".live [id$='-points'] use").nth(index).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def _hint(page):
    return page.text_content(".hint")


def test_a_row_shows_its_geodesic(visit, address, model, data):
    page = visit(address)
    words = _hint(page)
    assert page.evaluate(SHOWN) == 0
    page.mouse.move(*_place(page, 7))
    row = int(re.match(r"row (\d+)", _hint(page))[1]) - 1
    assert np.linalg.norm(data[row] - data[7]) < 0.1  # it, or one that covers it
    assert f"component {model.predict(data)[row]}, probability" in _hint(page)
    assert page.evaluate(SHOWN) == 1
    assert page.evaluate(FAINT) == 99
    page.mouse.move(2, 2)
    assert page.evaluate(SHOWN) == 0
    assert _hint(page) == words


def test_a_component_is_chosen_in_legend_or_table(visit, address, model, data):
    page = visit(address)
    sizes = np.bincount(model.predict(data))
    for place in (".live button >> nth=1", "table button >> nth=1"):
        page.click(place)
        assert page.evaluate(FAINT) == sizes[0]
        faint = "document.querySelector('[id$=curves-0]').classList.contains('faint')"
        assert page.evaluate(faint)
        assert _hint(page) == "component 1"
        assert page.get_attribute(place, "aria-pressed") == "true"
        page.click(place)
        assert page.evaluate(FAINT) == 0


def test_a_finger_does_as_well(visit, address):
    page = visit(address, "phone", has_touch=True, is_mobile=True)
    page.touchscreen.tap(*_place(page, 3))
    assert _hint(page).startswith("row ")
    assert page.evaluate(SHOWN) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", ["desktop", "phone"])
def test_any_window(visit, address, picture, width, scheme):
    page = visit(address, width, scheme)
    page.mouse.move(*_place(page, 7))
    text = page.locator("figure.broad text").first.bounding_box()
    assert text["height"] > 6.0  # it can be read
    picture(page, f"report-{width}-{scheme}")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("figure svg").count() == 3


def test_paper(visit, address, picture):
    page = visit(address, scheme="dark")
    page.click(".live button >> nth=1")
    page.emulate_media(media="print")
    picture(page, "report-print")
    assert not page.is_visible(".hint")
    faint = "getComputedStyle(document.querySelector('.live use.faint')).opacity"
    assert page.evaluate(faint) == "1"
    colors = "getComputedStyle(document.body)"
    assert page.evaluate(f"{colors}.color") == "rgb(0, 0, 0)"
    assert page.evaluate(f"{colors}.backgroundColor") == "rgb(255, 255, 255)"
