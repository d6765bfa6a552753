"""Fits that several files look at from different sides."""

import numpy as np
import pytest

import land
from land.metrics import EuclideanMetric

FAST = {"n_samples": 500, "random_state": 0}


@pytest.fixture(scope="session")
def cloud():
    """Sixty points of a slanted normal distribution."""
    shape, center = np.array([[1.0, 0.3], [0.0, 0.5]]), np.array([3.0, -1.0])
    return center + np.random.default_rng(0).normal(size=(60, 2)) @ shape


@pytest.fixture(scope="session")
def flat(cloud):
    """The cloud's model where space is flat."""
    return land.LAND(metric=EuclideanMetric(2), tol=1e-6, **FAST).fit(cloud)


@pytest.fixture(scope="session")
def arc():
    """Sixty points along a half-ellipse."""
    return land.datasets.make_half_ellipse(60, random_state=0)


@pytest.fixture(scope="session")
def arc_model(arc):
    """The arc's model, its metric learned."""
    return land.LAND(**FAST).fit(arc)


@pytest.fixture(scope="session")
def arc_means(arc):
    """The arc's model by least squares: as good for laws of data in and numbers out."""
    return land.LAND(method="least_squares", **FAST).fit(arc)


@pytest.fixture(scope="session")
def smooth_model(arc):
    """The arc's model under a smooth metric: as curved as a law needs, and quick."""
    return land.LAND(sigma=0.8, rho=0.5, **FAST).fit(arc)


@pytest.fixture(scope="session")
def moons():
    """Sixty points of two moons."""
    return land.datasets.make_two_moons(60, random_state=0)[0]


@pytest.fixture(scope="session")
def moons_mixture(moons):
    """The moons' mixture by least squares."""
    return land.LANDMixture(2, method="least_squares", **FAST).fit(moons)


@pytest.fixture(scope="session")
def moons_clusters(moons):
    """The moons' clusters."""
    return land.RiemannianKMeans(2, random_state=0).fit(moons)


@pytest.fixture
def file(smooth_model, tmp_path):
    """A model file."""
    smooth_model.save(tmp_path / "model.land")
    return tmp_path / "model.land"
