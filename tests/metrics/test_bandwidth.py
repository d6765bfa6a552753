"""Automatic sigma and rho: what they are, and how they scale."""

import numpy as np
import pytest

from land.metrics import KINDS
from land.metrics.bandwidth import automatic_rho, automatic_sigma

DATA = np.random.default_rng(0).normal(size=(50, 3))


def test_sigma_is_the_median_distance_of_the_kth_neighbour():
    distances = np.linalg.norm(DATA[:, None] - DATA, axis=2)
    k = 4  # ceil(sqrt(50) / 2)
    # Column 0 is the point itself.
    expected = np.median(np.sort(distances, axis=1)[:, k])
    assert automatic_sigma(DATA, 3) == pytest.approx(expected, rel=1e-12)
    assert automatic_sigma(DATA) == pytest.approx(2.0 * expected, rel=1e-12)


@pytest.mark.parametrize("c", [1e-6, 0.3, 1e6])
def test_both_scale_with_the_data(c):
    sigma = automatic_sigma(DATA)
    scaled = automatic_sigma(c * DATA)
    assert scaled == pytest.approx(c * sigma, rel=1e-9)
    rho = automatic_rho(DATA, sigma)
    assert automatic_rho(c * DATA, scaled) == pytest.approx(c**2 * rho, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS.values())
def test_rho_is_the_typical_local_variance(kind):
    sigma = automatic_sigma(DATA)
    bare = kind(DATA, sigma=sigma, rho=1e-12)
    variances = np.linalg.inv(bare.tensor(DATA))  # h
    expected = np.median(np.trace(variances, axis1=1, axis2=2)) / 3.0
    assert automatic_rho(DATA, sigma, kind=kind) == pytest.approx(expected, rel=1e-6)


def test_rho_without_neighbours_is_still_positive():
    apart = 1e3 * np.arange(10.0)[:, None]
    assert automatic_rho(apart, 1.0) == pytest.approx(1e-2)


def test_sigma_does_not_depend_on_place_turn_or_order():
    rng = np.random.default_rng(1)
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    sigma = automatic_sigma(DATA)
    assert automatic_sigma(DATA + 100.0) == pytest.approx(sigma, rel=1e-9)
    assert automatic_sigma(DATA @ turn) == pytest.approx(sigma, rel=1e-9)
    assert automatic_sigma(rng.permutation(DATA)) == sigma


def test_repeated_rows_count_once():
    assert automatic_sigma(np.repeat(DATA, 4, axis=0)) == automatic_sigma(DATA)


def test_identical_rows_have_no_scale():
    with pytest.raises(ValueError, match="at least 2 different rows"):
        automatic_sigma(np.ones((10, 2)))


def test_a_sample_speaks_for_many_rows():
    """Beyond 2000 rows the median is taken over a sample, the neighbours are not."""
    many = np.random.default_rng(2).normal(size=(6000, 2))
    k = int(np.ceil(0.5 * np.sqrt(len(many))))
    some = many[:1500]
    distances = np.linalg.norm(some[:, None] - many, axis=2)
    expected = np.median(np.partition(distances, k, axis=1)[:, k])
    sigma = automatic_sigma(many, 2)
    assert sigma == pytest.approx(expected, rel=0.05)
    assert automatic_sigma(many, 2) == sigma  # the sample is always the same
    rho = automatic_rho(many, sigma)
    assert rho == automatic_rho(many, sigma)
    weighted = np.exp(-0.5 * (distances / sigma) ** 2) * distances**2
    expected = np.median(weighted.sum(axis=1)) / 2.0
    assert rho == pytest.approx(expected, rel=0.1)
