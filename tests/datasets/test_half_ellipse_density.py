"""The density of the half-ellipse is the one its points were drawn from."""

import numpy as np
import pytest

from land.datasets import half_ellipse_log_density, make_half_ellipse


@pytest.mark.parametrize(
    ("n_centers", "noise"), [(20, 0.1), (20, 0.5), (2, 0.3), (7, 0.2)]
)
def test_density_integrates_to_one(n_centers, noise):
    step = noise / 4
    margin = 8 * noise
    first = np.arange(-3 - margin, 3 + margin, step)
    second = np.arange(-margin, 1.5 + margin, step)
    grid = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    log_density = half_ellipse_log_density(grid, n_centers=n_centers, noise=noise)
    # The trapezoidal rule is spectrally accurate for a Gaussian on the whole line.
    assert np.exp(log_density).sum() * step**2 == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(("n_centers", "noise"), [(20, 0.1), (5, 0.4)])
def test_samples_have_the_density(n_centers, noise):
    """Compare histogram counts of samples with the density: a chi-squared test."""
    n_samples = 50_000
    X = make_half_ellipse(n_samples, n_centers=n_centers, noise=noise, random_state=0)
    edges = [np.linspace(-3.5, 3.5, 36), np.linspace(-0.5, 2.0, 26)]
    counts, _, _ = np.histogram2d(*X.T, bins=edges)

    nodes, weights = np.polynomial.legendre.leggauss(6)
    first, second = (
        ((e[:-1] + e[1:])[:, None] + np.diff(e)[:, None] * nodes) / 2 for e in edges
    )
    grid = np.stack(
        np.broadcast_arrays(first[:, None, :, None], second[None, :, None, :]), axis=-1
    )
    log_density = half_ellipse_log_density(
        grid.reshape(-1, 2), n_centers=n_centers, noise=noise
    )
    density = np.exp(log_density).reshape(grid.shape[:-1])
    area = 0.2 * 0.1
    expected = (
        n_samples * area / 4 * np.einsum("ijkl,k,l->ij", density, weights, weights)
    )

    filled = expected > 10
    chi_squared = np.sum((counts - expected)[filled] ** 2 / expected[filled])
    n_bins = filled.sum()
    assert n_bins > 100
    assert abs(chi_squared - n_bins) < 4 * np.sqrt(2 * n_bins)


def test_far_points_do_not_underflow():
    (log_density,) = half_ellipse_log_density([[1e3, 0.0]])
    expected = -0.5 * (997 / 0.1) ** 2 - np.log(20 * 2 * np.pi * 0.01)
    assert log_density == pytest.approx(expected)


@pytest.mark.parametrize("n_centers", [1, 0, 2.5, None, "20"])
def test_bad_n_centers(n_centers):
    message = "n_centers must be (an integer|at least 2), got"
    with pytest.raises(ValueError, match=message):
        half_ellipse_log_density([[0.0, 0.0]], n_centers=n_centers)
    if n_centers is not None:
        with pytest.raises(ValueError, match=message):
            make_half_ellipse(n_centers=n_centers)


@pytest.mark.parametrize("noise", [0.0, -1.0, np.nan])
def test_density_needs_positive_noise(noise):
    with pytest.raises(ValueError, match="noise must be positive and finite, got"):
        half_ellipse_log_density([[0.0, 0.0]], noise=noise)
