"""On a line every metric has a closed form: arc length, the integral of sqrt(M).

So the learned metric itself, not only a textbook manifold, can be held to one.
"""

import numpy as np
import pytest
from scipy.integrate import quad

import land
from land.metrics import LocalDiagonalMetric

DATA = np.random.default_rng(0).standard_normal((60, 1))
BASE = -0.7


@pytest.fixture(scope="module")
def metric():
    return LocalDiagonalMetric(DATA, sigma=0.4, rho=0.01)


def speed(x):
    """sqrt(M(x)), from the formula."""
    offsets = DATA[:, 0] - x
    weights = np.exp(-(offsets**2) / (2.0 * 0.4**2))
    return 1.0 / np.sqrt(weights @ offsets**2 + 0.01)


def arc_length(x):
    return quad(speed, BASE, x, epsabs=1e-11, epsrel=1e-11, limit=200)[0]


# Inside the data, at their edge and beyond it on both sides.
POINTS = np.array([-6.0, -2.0, -0.71, -0.7, 0.0, 0.9, 2.2, 5.0])


def test_log_is_arc_length(metric):
    found = land.log_map(metric, [BASE], POINTS[:, None])
    expected = np.array([arc_length(x) for x in POINTS])
    assert found.converged.all()
    np.testing.assert_allclose(found.lengths, np.abs(expected), rtol=1e-6)
    np.testing.assert_allclose(
        found.tangents[:, 0], expected / speed(BASE), rtol=2e-6, atol=1e-12
    )


def test_exp_inverts_arc_length(metric):
    lengths = np.array([arc_length(x) for x in POINTS])
    tangents = lengths / speed(BASE)
    found = land.exp_map(metric, [BASE], tangents[:, None])
    assert found.converged.all()
    np.testing.assert_allclose(found.points[:, 0], POINTS, rtol=0, atol=1e-6)


def test_determinant_is_the_ratio_of_speeds(metric):
    # x(v) with s(x) = speed(base) v, so dx/dv = speed(base) / speed(x).
    tangents = np.array([arc_length(x) for x in POINTS]) / speed(BASE)
    log_dets = land.exp_log_det(metric, [BASE], tangents[:, None])
    expected = [np.log(speed(BASE) / speed(x)) for x in POINTS]
    np.testing.assert_allclose(log_dets, expected, rtol=0, atol=1e-5)
