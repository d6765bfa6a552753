"""Draws have the density that they claim."""

import numpy as np
import pytest
from scipy.stats import chi2

import land
from land.density.likelihood import log_density
from land.density.sampling import draw
from land.geodesics import exp_jacobian
from land.metrics import EuclideanMetric, LocalDiagonalMetric
from land.metrics.bandwidth import automatic_sigma

N = 6000


@pytest.fixture(scope="module")
def model():
    data = land.datasets.make_half_ellipse(150, random_state=0)
    metric = LocalDiagonalMetric(data, sigma=0.4, rho=0.02).tabulated()
    mean = data[np.argmin(np.linalg.norm(data - [0.0, 1.5], axis=1))]
    return metric, mean, np.linalg.cholesky(np.diag([0.64, 0.0225]))


@pytest.mark.slow
@pytest.mark.parametrize("law", ["lebesgue", "riemannian", "paper"])
def test_histogram_of_tangents_passes_a_chi_square_test(model, law):
    metric, mean, factor = model
    draws = draw(metric, mean, factor, N, law, np.random.default_rng(0))
    assert 0.2 < draws.acceptance < 1.0
    tangents, weights = _in_tangent_space(metric, mean, factor, law)
    expected = N * _histogram(tangents, factor, weights / weights.sum())
    observed = _histogram(draws.tangents, factor, np.ones(N))
    big = expected > 10.0
    statistic = np.sum((observed[big] - expected[big]) ** 2 / expected[big])
    assert statistic < chi2.isf(1e-3, int(big.sum()) - 1)
    assert big.sum() > 15


def _in_tangent_space(metric, mean, factor, law):
    """A fine grid of tangents with the model's probabilities, by integration alone."""
    radii, angles = (np.arange(90) + 0.5) / 20.0, (np.arange(96) + 0.5) * np.pi / 48.0
    radius, angle = (each.reshape(-1) for each in np.meshgrid(radii, angles))
    grid = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    tangents = grid @ factor.T
    found = exp_jacobian(metric, mean, tangents, tol=1e-5)
    log_volumes = np.zeros(len(grid)) if law == "paper" else found.log_dets
    if law != "lebesgue":
        log_volumes = log_volumes + metric.log_volume(found.points)
    counts = found.converged & ((found.signs > 0.0) | (law == "paper"))
    weights = radius * np.exp(log_volumes - 0.5 * radius**2)
    return tangents[counts], weights[counts]


def _histogram(tangents, factor, weights):
    """Weights in eight sectors and eight rings of the whitened tangent space."""
    whitened = np.linalg.solve(factor, tangents.T).T
    radius = np.linalg.norm(whitened, axis=1)
    angle = np.arctan2(whitened[:, 1], whitened[:, 0])
    ring = np.minimum(radius / 0.5, 7).astype(int)
    sector = np.minimum((angle + np.pi) / (2.0 * np.pi) * 8, 7).astype(int)
    return np.bincount(8 * ring + sector, weights=weights, minlength=64)


def test_points_are_where_the_tangents_lead(model):
    metric, mean, factor = model
    draws = draw(metric, mean, factor, 50, "paper", np.random.default_rng(0))
    ends = land.exp_map(metric, mean, draws.tangents, tol=1e-10).points
    np.testing.assert_allclose(draws.points, ends, atol=1e-4)


def test_flat_draws_are_normal():
    factor = np.linalg.cholesky(np.array([[1.0, 0.4], [0.4, 0.5]]))
    rng = np.random.default_rng(0)
    draws = draw(EuclideanMetric(2), np.ones(2), factor, 4000, "paper", rng)
    np.testing.assert_allclose(draws.points.mean(axis=0), 1.0, atol=0.06)
    np.testing.assert_allclose(np.cov(draws.points.T), factor @ factor.T, atol=0.08)


@pytest.fixture(scope="module")
def plane(model):
    """A grid with log maps to all of its points, and the area of a cell."""
    metric, mean, _ = model
    x, y = np.linspace(-4.0, 4.0, 81), np.linspace(-1.2, 2.6, 39)
    grid = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    logs = land.log_map(metric, mean, grid, tol=1e-4)
    assert logs.converged.all()
    return grid, logs, (x[1] - x[0]) * (y[1] - y[0])


@pytest.mark.slow
@pytest.mark.parametrize("law", ["lebesgue", "riemannian", "paper"])
def test_lebesgue_density_integrates_to_one(model, plane, law):
    """C is the integral of the unnormalised density, by log maps on a grid."""
    metric, mean, factor = model
    grid, logs, cell = plane
    covariance = factor @ factor.T
    options = {"volume": "paper"} if law == "paper" else {"reference": law}
    constant = land.log_constant(metric, mean, covariance, random_state=0, **options)
    values = log_density(
        metric,
        mean,
        np.linalg.inv(covariance),
        constant.value,
        grid,
        logs,
        law,
        "lebesgue",
    )
    assert np.isfinite(values).all()
    mass = np.exp(values).sum() * cell
    assert mass == pytest.approx(1.0, abs=0.005)


def nightly(*values):
    return pytest.param(*values, marks=pytest.mark.nightly)


@pytest.fixture(
    scope="module",
    params=[("circle", 0.5), nightly(("half_ellipse", 1.0)), nightly(("spiral", 0.5))],
    ids=str,
)
def fitted(request):
    """The model of a data set, its sigma a multiple of the automatic one."""
    name, scale = request.param
    data = getattr(land.datasets, f"make_{name}")(150, random_state=0)
    sigma = scale * automatic_sigma(data)
    return land.LAND(sigma=sigma, n_samples=1500, random_state=0).fit(data), data


@pytest.mark.slow
def test_a_fitted_density_integrates_to_one_and_samples_have_it(fitted):
    model, data = fitted
    spread, _ = model.sample(2000, random_state=0)
    low, high = np.minimum(spread.min(axis=0), data.min(axis=0)), spread.max(axis=0)
    low, high = low - 0.1 * (high - low), high + 0.1 * (high - low)
    n = 72
    edges = [np.linspace(low[k], high[k], n + 1) for k in range(2)]
    centres = [0.5 * (each[1:] + each[:-1]) for each in edges]
    grid = np.stack(np.meshgrid(*centres, indexing="ij"), axis=-1).reshape(-1, 2)
    masses = np.exp(model.score_samples(grid)) * np.prod((high - low) / n)
    assert masses.sum() == pytest.approx(1.0, abs=0.005)
    # Chi-square of the samples on blocks of 6 x 6 cells.
    blocks = masses.reshape(n // 6, 6, n // 6, 6).sum(axis=(1, 3))
    found, *_ = np.histogram2d(*spread.T, bins=[each[::6] for each in edges])
    expected = len(spread) * blocks
    big = expected > 8.0
    observed = np.append(found[big], len(spread) - found[big].sum())
    expected = np.append(expected[big], len(spread) - expected[big].sum())
    statistic = np.sum((observed - expected) ** 2 / expected)
    assert big.sum() > 15
    assert statistic < chi2.isf(1e-3, int(big.sum()))


def test_no_draw_lies_past_a_conjugate_point_or_can_be_reached_sooner(fitted):
    model, _ = fitted
    factor = np.linalg.cholesky(model.covariance_)
    rng = np.random.default_rng(1)
    draws = draw(model.metric_, model.mean_, factor, 200, "lebesgue", rng)
    found = land.log_map(model.metric_, model.mean_, draws.points)
    lengths = np.sqrt(model.metric_.inner(model.mean_, draws.tangents, draws.tangents))
    assert np.all(found.lengths > 0.998 * lengths)
    jacobians = exp_jacobian(model.metric_, model.mean_, draws.tangents)
    assert np.all(np.linalg.det(jacobians.jacobians) > 0.0)
