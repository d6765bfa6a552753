"""The page of `land explore` in a browser."""

import threading

import pytest

import land
from land.cli.console import Console
from land.cli.explore import Server
from land.cli.models import load_model


@pytest.fixture(scope="module")
def server(chromium, tmp_path_factory):
    X, _ = land.datasets.make_two_moons(80, random_state=0)
    options = {"sigma": 0.3, "rho": 0.05, "method": "least_squares", "n_samples": 200}
    file = tmp_path_factory.mktemp("model") / "moons.land"
    land.LANDMixture(2, **options, random_state=0).fit(X).save(file)
    with Server(load_model(file, Console(quiet=True))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def page(server, visit, until):
    page = visit(server.address)
    until(page, "live !== null && scored !== null")
    return page


def _at_base(page):
    box = page.locator("#view").bounding_box()
    return (
        box["x"] + page.evaluate("toX(base[0])"),
        box["y"] + page.evaluate("toY(base[1])"),
    )


def _pixels(page):
    return page.evaluate("canvas.toDataURL()")


def test_geodesics_follow_the_base(page, until):
    x, y = _at_base(page)
    base, curves = page.evaluate("[base, live.curves]")
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 11):
        page.mouse.move(x + 9 * step, y - 4 * step)
    until(page, "live.curves[0][0][0] === base[0]")
    page.mouse.up()
    after, moved = page.evaluate("[base, live.curves]")
    scale = page.evaluate("toX(1) - toX(0)")
    assert after[0] - base[0] == pytest.approx(90 / scale, rel=0.05)
    assert after[1] - base[1] == pytest.approx(40 / scale, rel=0.05)
    assert moved[0] != curves[0]
    assert "50 geodesics" in page.text_content("#place")
    assert page.locator("#points tr").count() == 0  # it was no click


def test_keys_move_the_base(page, until):
    x = page.evaluate("base[0]")
    page.focus("#view")
    page.keyboard.press("ArrowRight")
    until(page, "live.curves[0][0][0] === base[0]")
    assert page.evaluate("base[0]") > x


def test_sliders_change_metric_and_score(page, until):
    score, shading = page.text_content("#score"), _pixels(page)
    assert "held-out rows" in score
    assert "not the model itself" in score
    page.evaluate("scored = null")
    page.focus("#sigma")
    for _ in range(8):
        page.keyboard.press("PageUp")
    until(page, "scored !== null && $('score').textContent.includes('held-out')")
    assert page.text_content("#score") != score
    assert float(page.text_content("#sigma-value")) > 0.3
    assert _pixels(page) != shading
    page.click("#reset")
    assert float(page.text_content("#sigma-value")) == 0.3
    until(page, f"$('score').textContent === {score!r}")


def test_points_are_dropped_and_scored(page, server, until):
    box = page.locator("#view").bounding_box()
    page.mouse.click(box["x"] + 200, box["y"] + 150)
    until(page, "dropped.length === 1 && dropped[0].color !== undefined")
    x, y = page.evaluate("dropped[0].place")
    found = server.explorer.point(x, y)
    _, density, cluster = page.locator("#points td").all_text_contents()
    assert float(density) == pytest.approx(found["density"], rel=1e-3)
    assert cluster.startswith(str(found["cluster"]))
    page.click("#clear")
    assert page.locator("#points tr").count() == 0


def test_what_is_shown_can_be_chosen(page):
    for box in ("shading", "curves", "fan", "parts"):
        before = _pixels(page)
        page.uncheck(f"#{box}")
        assert _pixels(page) != before, box
    page.select_option("#by", "density")
    assert "Rows from blue" in page.text_content("#legend")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", ["desktop", "phone"])
def test_any_window(server, visit, until, picture, width, scheme):
    page = visit(server.address, width, scheme)
    until(page, "live !== null && shade !== null && scored !== null")
    picture(page, f"explore-{width}-{scheme}")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == (
        "rgb(255, 255, 255)" if scheme == "light" else "rgb(22, 24, 27)"
    )
    height = page.locator("#view").bounding_box()["height"]
    assert 100 < height < 700


def test_an_end_of_the_server_is_said(server, visit, until):
    page = visit(server.address)
    until(page, "live !== null")
    page.evaluate("() => { fetch = () => Promise.reject(new TypeError()); }")
    page.focus("#view")
    page.keyboard.press("ArrowUp")
    until(page, "$('message').textContent.includes('has it ended')")
