"""Small models that the figures show; axes without pyplot."""

import pytest
from matplotlib.figure import Figure
from sklearn.mixture import GaussianMixture

import land

FAST = {"n_samples": 200, "random_state": 0}


@pytest.fixture
def ax():
    return Figure().add_subplot()


@pytest.fixture(scope="session")
def arc():
    return land.datasets.make_half_ellipse(40, random_state=0)


@pytest.fixture(scope="session")
def arc_model(arc):
    """One component; least squares is quick, and a figure cannot tell."""
    return land.LAND(sigma=0.4, rho=0.1, method="least_squares", **FAST).fit(arc)


@pytest.fixture(scope="session")
def mixture(arc):
    options = {"sigma": 0.4, "rho": 0.1, "method": "least_squares"}
    return land.LANDMixture(2, **options, **FAST).fit(arc)


@pytest.fixture(scope="session")
def gaussians(arc):
    return GaussianMixture(2, random_state=0).fit(arc)
