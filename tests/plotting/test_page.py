"""The page of a model: it is whole, it is safe, and its sentence is right."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split

import land
from land.estimators.held_out import Comparison, Entry, compare

QUICK = {"n_samples": 200, "tol": 0.01, "random_state": 0}
VOID = {"meta", "br"}


class Page(HTMLParser):
    """Tags that are open, and what was found."""

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.ids, self.labels, self.tags = [], [], [], [], []
        self.words = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href"):
                self.links.append(value)
            elif name == "id":
                self.ids.append(value)
            elif name == "aria-label":
                self.labels.append(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


@pytest.fixture(scope="module")
def page(arc, mixture, tmp_path_factory):
    """The page of a mixture in the plane; names are hostile."""
    file = tmp_path_factory.mktemp("page") / "report.html"
    names = ["<script>alert(1)</script>", r"$\oops & more"]
    rows = range(101, 141)
    land.report(mixture, file, arc, names=names, rows=rows, notes=["<b>note</b>"])
    return file.read_text()


def test_the_page_is_whole_and_needs_nothing_else(page):
    found = Page(page)
    assert all(link.startswith(("#", "data:image/")) for link in found.links)
    assert {link[1:] for link in found.links if link[0] == "#"} <= set(found.ids)
    assert len(set(found.ids)) == len(found.ids)
    assert len(found.labels) == found.tags.count("svg") == 3
    assert all(len(label) > 20 for label in found.labels)
    assert "url(http" not in page
    assert len(page) < 2_000_000


def test_names_and_notes_are_escaped(page):
    found = Page(page)
    assert found.tags.count("script") == 1  # the page's own
    assert "b" not in found.tags
    assert found.words.count("<script>alert(1)</script>") >= 3
    assert "<b>note</b>" in found.words


def test_points_say_which_row_they_are(page, arc, mixture):
    shares = mixture.predict_proba(arc)
    for row in (0, 39):
        component, share = shares[row].argmax(), shares[row].max()
        text = f"row {row + 101}, component {component}, probability {share:.2f}"
        assert f"<title>{text}</title>" in page


def test_each_point_has_a_geodesic_from_its_mean(page, arc, mixture):
    group, points = (
        page.partition(f'<g id="f1-{name}">')[2].partition("<g id=")[0]
        for name in ("geodesics", "points")
    )
    ways = [
        re.findall(r"-?[\d.]+ -?[\d.]+", d) for d in re.findall(' d="([^"]*)"', group)
    ]
    ends = [[tuple(map(float, way[k].split())) for k in (0, -1)] for way in ways]
    places = re.findall(r'x="(-?[\d.]+)" y="(-?[\d.]+)"', points)
    assert len(ends) == len(places) == 40
    owners = mixture.predict(arc)
    assert f'data-owners="{" ".join(map(str, owners))}"' in page
    for k in (0, 1):  # those of a component begin together
        begins = np.array([start for start, _ in ends])[owners == k]
        assert np.ptp(begins, axis=0).max() < 1e-3
    arrivals = np.array([end for _, end in ends])
    np.testing.assert_allclose(arrivals, np.array(places, float), atol=1e-3)


def test_components_can_be_chosen_in_table_and_legend(page):
    for k in (0, 1):
        assert page.count(f'data-component="{k}"') == 2
        assert f'id="f1-curves-{k}"' in page
    assert 'data-component="2"' not in page


@pytest.mark.parametrize("dim", [1, 3])
def test_other_dimensions_and_units(dim, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, dim)) * 1000.0 + 5e4
    flat = land.metrics.EuclideanMetric(dim)
    model = land.Standardized(land.LAND(metric=flat, **QUICK)).fit(X)
    sentence = land.report(model, tmp_path / "p.html", X)
    assert sentence.startswith("A Gaussian mixture is as good and far quicker")
    found = Page((tmp_path / "p.html").read_text())
    assert f"x{dim}" in found.words
    assert "Not drawn" not in found.words
    assert len(found.labels) == 3


def test_rivals_are_scored_in_the_units_of_the_data(arc):
    flat = land.metrics.EuclideanMetric(2)
    comparison = compare(land.LAND(metric=flat, **QUICK), arc, 0, lambda _: None)
    assert comparison.n_fitted == 32
    train, test = train_test_split(arc, test_size=0.2, random_state=0)
    expected = GaussianMixture(1, reg_covar=1e-9).fit(train).score_samples(test)
    np.testing.assert_allclose(comparison.entries[1].values, expected, atol=1e-3)


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ((1.0, 0.0, 0.0, 0.0), "No other model that was tried comes near."),
        ((1.0, 0.0, 1.0, 0.0), "a mixture of 5 is as good, as far as these rows"),
        ((1.0, 0.0, 0.0, 2.0), "a kernel is better than LAND, by 1.00 ± 0.00."),
        ((0.0, 1.0, 1.0, 0.0), "LAND as fitted does not suit these data"),
        ((0.0, 0.02, 0.0, 0.0), "A Gaussian mixture is as good"),
    ],
)
def test_sentences(means, expected):
    noise = np.random.default_rng(0).normal(size=50)  # the same for all: it cancels
    names = ("LAND", "mixture of 1", "mixture of 5", "kernel")
    entries = [
        Entry(name, "", mean + noise, 1.0)
        for name, mean in zip(names, means, strict=True)
    ]
    assert expected in Comparison(entries, 200, False).sentence


def test_what_is_refused(arc, arc_model, tmp_path):
    file = tmp_path / "p.html"
    with pytest.raises(ValueError, match="data must have 25 rows at least, got 20"):
        land.report(arc_model, file, arc[:20])
    with pytest.raises(ValueError, match="names and rows must have 2 and 40 entries"):
        land.report(arc_model, file, arc, names=["a"])
    with pytest.raises(ValueError, match="must be a LAND or a LANDMixture, got Riem"):
        land.report(land.RiemannianKMeans(2), file, arc)
    assert not file.exists()
