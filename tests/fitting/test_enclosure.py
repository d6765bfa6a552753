"""Where means may be: hulls against linear programming, and their replacements."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from land.fitting.enclosure import Enclosure


def in_hull(data, point):
    """Whether a point is an average of the data with some weights."""
    equal = np.vstack([data.T, np.ones(len(data))])
    outcome = linprog(np.zeros(len(data)), A_eq=equal, b_eq=[*point, 1.0])
    return outcome.status == 0


@given(st.integers(0, 10_000), st.integers(2, 4))
def test_the_hull_holds_what_averages_of_the_data_reach(seed, dim):
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(30, dim)) + 5.0
    enclosure = Enclosure(data, 1e-9)
    point = 5.0 + 1.5 * rng.normal(size=dim)
    if abs(enclosure.remoteness(point) - 1.0) > 1e-6:
        assert enclosure.holds(point) == in_hull(data, point)


def test_remoteness_grows_along_a_ray_and_is_one_on_the_border():
    square = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]])
    enclosure = Enclosure(square, 1e-9)
    assert enclosure.remoteness(np.array([1.0, 1.0])) == pytest.approx(0.0)
    assert enclosure.remoteness(np.array([1.5, 1.0])) == pytest.approx(0.5)
    assert enclosure.remoteness(np.array([2.0, 1.3])) == pytest.approx(1.0)
    assert enclosure.stopped(np.array([1.99, 1.0]))
    assert not enclosure.stopped(np.array([1.9, 1.0]))


def test_one_dimension_is_an_interval():
    enclosure = Enclosure(np.array([[0.0], [1.0], [5.0]]), 1e-9)
    assert enclosure.holds(np.array([4.9]))
    assert not enclosure.holds(np.array([5.1]))
    assert not enclosure.holds(np.array([-0.1]))


@pytest.mark.parametrize("dim", [2, 8])
def test_data_without_a_hull_have_an_ellipsoid(dim):
    """All on a line, and in many dimensions."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(40, dim))
    if dim == 2:
        data[:, 1] = 2.0 * data[:, 0]
    enclosure = Enclosure(data, 1e-6)
    assert all(enclosure.remoteness(row) <= 1.0 + 1e-12 for row in data)
    assert enclosure.remoteness(data.mean(axis=0)) == pytest.approx(0.0)
    assert not enclosure.holds(data.mean(axis=0) + 100.0)


def test_remoteness_does_not_depend_on_units():
    rng = np.random.default_rng(1)
    data, point = rng.normal(size=(50, 2)), np.array([0.5, -0.3])
    moved = 1e4 * data + 1e6, 1e4 * point + 1e6
    assert Enclosure(moved[0], 1e-9).remoteness(moved[1]) == pytest.approx(
        Enclosure(data, 1e-9).remoteness(point)
    )
