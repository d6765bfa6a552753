"""Without noise, points lie on the curve they claim and cover all of it."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from land import datasets


def test_half_ellipse_lies_on_its_upper_half():
    X = datasets.make_half_ellipse(2000, n_centers=None, noise=0.0, random_state=0)
    np.testing.assert_allclose((X[:, 0] / 3) ** 2 + (X[:, 1] / 1.5) ** 2, 1.0)
    assert X[:, 1].min() >= 0
    t = np.arctan2(X[:, 1] / 1.5, X[:, 0] / 3)
    assert_uniform(t, 0.0, np.pi)


@pytest.mark.parametrize("n_centers", [2, 5, 20])
def test_half_ellipse_has_equal_centers_and_both_ends(n_centers):
    X = datasets.make_half_ellipse(4000, n_centers=n_centers, noise=0.0, random_state=0)
    centers, counts = np.unique(X, axis=0, return_counts=True)
    assert len(centers) == n_centers
    np.testing.assert_allclose(centers[[0, -1]], [[-3, 0], [3, 0]], atol=1e-12)
    np.testing.assert_allclose(counts, 4000 / n_centers, rtol=0.25)


def test_two_moons_are_interleaving_half_circles():
    X, y = datasets.make_two_moons(4000, noise=0.0, random_state=0)
    upper, lower = X[y == 0], X[y == 1] - [1.0, 0.5]
    np.testing.assert_allclose(np.linalg.norm(upper, axis=1), 1.0)
    np.testing.assert_allclose(np.linalg.norm(lower, axis=1), 1.0)
    assert upper[:, 1].min() >= 0 >= lower[:, 1].max()
    # Interleaving: a tip of each moon reaches beyond the other's tip, at a distance.
    assert X[y == 0, 1].min() < 0.01 < 0.49 < X[y == 1, 1].max()
    assert gap(X, y) == pytest.approx(0.5, abs=0.01)


def test_wave_and_arc_follow_their_curves_and_stay_apart():
    X, y = datasets.make_wave_and_arc(4000, noise=0.0, random_state=0)
    wave, arc = X[y == 0], X[y == 1]
    np.testing.assert_allclose(
        wave[:, 1], 0.5 * np.sin(2 * np.pi * wave[:, 0] / 1.8), atol=1e-12
    )
    np.testing.assert_allclose((arc[:, 0] / 3) ** 2 + ((arc[:, 1] + 0.8) / 2.8) ** 2, 1)
    assert_uniform(wave[:, 0], -1.8, 1.8)
    assert gap(X, y) > 0.8
    # The arc embraces the wave: no straight line parts the two.
    assert arc[:, 0].min() < wave[:, 0].min() < wave[:, 0].max() < arc[:, 0].max()
    assert arc[:, 1].min() < wave[:, 1].min() < wave[:, 1].max() < arc[:, 1].max()


def test_circle_is_closed():
    X = datasets.make_circle(2000, noise=0.0, random_state=0)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)
    angles = np.sort(np.arctan2(X[:, 1], X[:, 0]))
    assert_uniform(angles, -np.pi, np.pi)
    gaps = np.diff(angles, append=angles[0] + 2 * np.pi)
    assert gaps.max() < 0.06


@pytest.mark.parametrize("n_turns", [0.5, 2.0, 3.5])
def test_spiral_winds_one_unit_per_turn(n_turns):
    X = datasets.make_spiral(4000, n_turns=n_turns, noise=0.0, random_state=0)
    radii = np.linalg.norm(X, axis=1)
    angles = 2 * np.pi * (radii - 0.5)
    np.testing.assert_allclose(
        X, radii[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    )
    assert radii.min() == pytest.approx(0.5, abs=0.01)
    assert radii.max() == pytest.approx(0.5 + n_turns, abs=0.01)


def test_s_curve_is_two_arcs_of_unit_circles():
    X = datasets.make_s_curve(4000, noise=0.0, random_state=0)
    center = np.column_stack([np.zeros(len(X)), np.sign(X[:, 2])])
    np.testing.assert_allclose(np.linalg.norm(X[:, [0, 2]] - center, axis=1), 1.0)
    assert_uniform(X[:, 1], -1.0, 1.0)
    # Three quarters of each circle: the quarter that would close it stays empty.
    upper = X[X[:, 2] > 0]
    assert not np.any((upper[:, 0] < -0.01) & (upper[:, 2] < 0.99))
    lower = X[X[:, 2] < 0]
    assert not np.any((lower[:, 0] > 0.01) & (lower[:, 2] > -0.99))
    np.testing.assert_allclose([X[:, 2].min(), X[:, 2].max()], [-2, 2], atol=0.01)


def gap(X, y):
    """Return the smallest distance between the two classes."""
    distances, _ = cKDTree(X[y == 0]).query(X[y == 1])
    return distances.min()


def assert_uniform(values, low, high):
    """Hold the empirical distribution to the uniform one (Kolmogorov, p about 1e-6)."""
    grid = (np.sort(values) - low) / (high - low)
    assert grid[0] >= 0
    assert grid[-1] <= 1
    rank = (np.arange(len(grid)) + 0.5) / len(grid)
    assert np.abs(grid - rank).max() < 2.7 / np.sqrt(len(grid))
