"""Tensors with first and second derivatives: closed forms and differentiation agree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from land.metrics import (
    DensityMetric,
    EuclideanMetric,
    FunctionMetric,
    LocalDiagonalMetric,
    LocalFullMetric,
    Metric,
)

SIGMA, RHO = 0.8, 0.05


def learned(dim, kind=LocalDiagonalMetric):
    rng = np.random.default_rng(dim)
    data = 3.0 + rng.standard_normal((150, dim)) / np.sqrt(dim)
    return kind(data, SIGMA, RHO)


def diagonal(x):
    return 1.5 + jnp.sin(x[0]) * jnp.cos(jnp.arange(1.0, 1.0 + len(x)) * x)


def full(x):
    ways = jnp.outer(jnp.sin(x), jnp.cos(x))
    return jnp.eye(len(x)) + ways @ ways.T


METRICS = {
    "full sum": learned,
    "full covariance": lambda dim: learned(dim, LocalFullMetric),
    "density": lambda dim: learned(dim, DensityMetric),
    "table": lambda dim: learned(dim).tabulated(),
    "table of full covariance": lambda dim: learned(dim, LocalFullMetric).tabulated(),
    "table of density": lambda dim: learned(dim, DensityMetric).tabulated(),
    "diagonal function": lambda dim: FunctionMetric(diagonal, dim),
    "full function": lambda dim: FunctionMetric(full, dim),
}
# Tables are of the plane.
DIMENSIONS = {
    name: (2,) if name.startswith("table") else (1, 2, 3, 5) for name in METRICS
}
DIMENSIONS |= {"full covariance": (1, 3), "density": (1, 3)}
CASES = [(name, dim) for name in METRICS for dim in DIMENSIONS[name]]
CASES += [("full sum", 7)]  # beyond the closed form


def by_jacfwd(function, points):
    """A function of one point and its derivatives, their coordinates in front."""

    def jet(x):
        slopes, bends = jax.jacfwd(function), jax.jacfwd(jax.jacfwd(function))
        there = jnp.moveaxis(bends(x), (-2, -1), (0, 1))
        return function(x), jnp.moveaxis(slopes(x), -1, 0), there

    return jax.vmap(jet)(points)


def of_batch(metric, points):
    """Derivatives of what the batched function makes of single points."""
    return by_jacfwd(lambda x: metric.tensor_batch(x[None])[0], points)


def points_for(dim, n=50):
    rng = np.random.default_rng(10 + dim)
    return 3.0 + 1.5 * rng.standard_normal((n, dim)) / np.sqrt(dim)


def assert_same(found, expected, relative):
    for part, exact, bound in zip(found, expected, relative, strict=True):
        exact = np.asarray(exact)
        assert part.shape == exact.shape
        np.testing.assert_allclose(part, exact, rtol=0, atol=bound * np.ptp(exact))


@pytest.mark.parametrize(("name", "dim"), CASES)
def test_jets_are_derivatives_of_the_tensors(name, dim):
    metric, points = METRICS[name](dim), points_for(dim)
    with jax.enable_x64(True):
        expected = jax.jit(of_batch)(metric, points)
    assert_same(metric.host_jets(points), expected, (1e-11, 1e-11, 1e-10))


@pytest.mark.parametrize(("name", "dim"), CASES)
def test_jets_are_derivatives_of_the_formula(name, dim):
    """For one point and as printed, also where a closed form takes its place."""
    metric, points = METRICS[name](dim), points_for(dim)
    with jax.enable_x64(True):
        expected = by_jacfwd(metric.tensor_at, points)
        generic = [np.asarray(each) for each in Metric.jet_batch(metric, points)]
    bounds = (1e-9, 1e-7, 1e-5) if name.startswith("table") else (1e-11, 1e-10, 1e-10)
    assert_same(generic, expected, (1e-13, 1e-13, 1e-13))
    assert_same(metric.host_jets(points), expected, bounds)


@pytest.mark.parametrize("tabulated", [False, True])
def test_far_away_nothing_changes(tabulated):
    metric = METRICS["table" if tabulated else "full sum"](2)
    tensors, slopes, bends = metric.host_jets(np.array([[1e3, 0.0], [3.0, -1e8]]))
    np.testing.assert_array_equal(tensors, 1.0 / RHO)
    assert not slopes.any()
    assert not bends.any()


@pytest.mark.parametrize("name", ["full sum", "full function"])
def test_blocks_are_put_together_again(name):
    metric, points = METRICS[name](2), points_for(2, 1500)
    alone = metric.host_jets(points[-1:])
    for many, one in zip(metric.host_jets(points), alone, strict=True):
        assert len(many) == 1500
        np.testing.assert_allclose(many[-1:], one, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("fn", [diagonal, full])
def test_no_points_give_no_jets(fn):
    tensors, slopes, bends = FunctionMetric(fn, 3).host_jets(np.empty((0, 3)))
    assert slopes.shape == (0, 3, *tensors.shape[1:])
    assert bends.shape == (0, 3, 3, *tensors.shape[1:])


def test_the_flat_metric_has_no_slopes():
    tensors, slopes, bends = EuclideanMetric(2).host_jets(np.ones((3, 2)))
    np.testing.assert_array_equal(tensors, 1.0)
    np.testing.assert_array_equal(slopes, np.zeros((3, 2, 2)))
    np.testing.assert_array_equal(bends, np.zeros((3, 2, 2, 2)))
