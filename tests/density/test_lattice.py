"""Lattices cover the mass of a model, and sums over them are integrals."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

import land
from land.density.cover import extend_covers, place_covers
from land.density.nodes import summarise
from land.geodesics import log_map
from land.metrics import FunctionMetric, LocalDiagonalMetric


def cover_of(metric, mean, covariance, cloud, n_points, seed=0, tail=1e-6):
    logs = log_map(metric, mean, cloud)

    def map_points(means, points, near):
        pairs = zip(means, points, near, strict=True)
        return [log_map(metric, *pair[:2], curves=pair[2]) for pair in pairs]

    (cover,) = place_covers(
        metric,
        [mean],
        [np.linalg.inv(covariance)],
        [cloud],
        [logs],
        n_points,
        map_points,
        np.random.default_rng(seed),
        tail,
    )
    return cover, map_points


@pytest.mark.parametrize(
    ("dim", "n_points", "error"), [(1, 40, 1e-5), (2, 250, 1e-5), (3, 800, 1e-4)]
)
def test_a_normal_distribution_has_its_constant(dim, n_points, error):
    metric = FunctionMetric(lambda x: 1.0 + 0.0 * x, dim=dim)
    rng = np.random.default_rng(0)
    factor = np.tril(0.4 * rng.normal(size=(dim, dim)), -1) + np.eye(dim)
    covariance = factor @ factor.T
    cloud = rng.normal(size=(300, dim)) @ factor.T
    cover, _ = cover_of(metric, np.zeros(dim), covariance, cloud, n_points)
    nodes = cover.nodes(metric, np.zeros(dim), "lebesgue")
    found = summarise(nodes, np.linalg.inv(covariance), 0.0)
    truth = -multivariate_normal(cov=covariance).logpdf(np.zeros(dim))
    assert found.value == pytest.approx(truth, abs=error)
    assert abs(found.value - truth) <= 2.0 * found.stderr + 2e-6


@pytest.mark.parametrize("reference", ["lebesgue", "riemannian"])
def test_lattices_around_data_and_around_a_model_agree(reference):
    metric = FunctionMetric(lambda x: 1.0 + 0.5 * jnp.sin(x) ** 2, dim=2)
    mean, covariance = np.array([0.3, -0.2]), np.diag([0.5, 0.3])
    alone = land.log_constant(
        metric, mean, covariance, random_state=0, reference=reference
    )
    cloud = np.random.default_rng(0).normal(size=(200, 2)) @ np.sqrt(covariance)
    cover, _ = cover_of(metric, mean, covariance, mean + cloud, 400)
    nodes = cover.nodes(metric, mean, reference)
    found = summarise(nodes, np.linalg.inv(covariance), 0.0)
    assert found.value == pytest.approx(alone.value, abs=1e-4)


@pytest.fixture(scope="module")
def sharp():
    """A sharp metric, a mean and a covariance."""
    data = land.datasets.make_half_ellipse(200, random_state=0)
    metric = LocalDiagonalMetric(data, sigma=0.2, rho=0.03).tabulated()
    mean = data[np.argmin(np.linalg.norm(data - [0.0, 1.5], axis=1))]
    tangents = log_map(metric, mean, data).tangents
    return metric, data, mean, tangents.T @ tangents / len(data)


def test_error_bars_hold_in_a_sharp_metric(sharp):
    metric, data, mean, covariance = sharp
    precision = np.linalg.inv(covariance)
    values, errors = [], []
    for seed, n_points in enumerate((60, 60, 120, 120, 600)):
        cover, _ = cover_of(metric, mean, covariance, data, n_points, seed, 1e-4)
        found = summarise(cover.nodes(metric, mean, "lebesgue"), precision, 0.0)
        values.append(found.value)
        errors.append(found.stderr)
    gaps = np.abs(np.array(values[:-1]) - values[-1])
    assert np.all(gaps < 3.0 * np.array(errors[:-1]) + 1e-3)
    assert gaps.max() < 0.1
    assert errors[-1] < 0.005


def test_a_cover_grows_with_the_covariance_and_never_beyond_its_limit(sharp):
    metric, data, mean, covariance = sharp
    cover, map_points = cover_of(metric, mean, covariance, data, 60, tail=1e-2)
    wide = np.linalg.inv(4.0 * covariance)
    (grown,) = extend_covers([mean], [wide], [cover], map_points, 1e-3)
    assert len(grown.points) > 1.5 * len(cover.points)
    np.testing.assert_array_equal(grown.points[: len(cover.points)], cover.points)
    (limited,) = extend_covers([mean], [1e-9 * wide], [cover], map_points, 1e-3)
    assert len(limited.points) < 20 * cover.n_asked
