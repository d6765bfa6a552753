"""Tensors with first and second derivatives: closed forms and differentiation agree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from land.metrics import (
    DensityMetric,
    FunctionMetric,
    LocalDiagonalMetric,
    LocalFullMetric,
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


KINDS = {
    "diagonal": LocalDiagonalMetric,
    "full": LocalFullMetric,
    "density": DensityMetric,
}


def formula(name, data):
    """The tensor at one point, as printed."""

    def tensor(x):
        offsets = data - x
        weights = jnp.exp(-0.5 * jnp.sum(offsets**2, axis=1) / SIGMA**2)
        if name == "diagonal":
            return 1.0 / (weights @ offsets**2 + RHO)
        if name == "density":
            return 1.0 / (SIGMA**2 * jnp.sum(weights) + RHO) * jnp.ones_like(x)
        full = (weights * offsets.T) @ offsets
        return jnp.linalg.inv(full + RHO * jnp.eye(len(x)))

    return tensor


# Diagonal ones beyond the closed form too.
CASES = [("diagonal", dim) for dim in (1, 2, 7)] + [("full", 1), ("full", 3)]
CASES += [("density", 1), ("density", 3)]


@jax.jit(static_argnums=0)
def by_jacfwd(function, points):
    """A function of one point and its derivatives, their coordinates in front."""

    def jet(x):
        slopes, bends = jax.jacfwd(function), jax.jacfwd(jax.jacfwd(function))
        there = jnp.moveaxis(bends(x), (-2, -1), (0, 1))
        return function(x), jnp.moveaxis(slopes(x), -1, 0), there

    return jax.vmap(jet)(points)


def points_for(dim, n=50):
    rng = np.random.default_rng(10 + dim)
    return 3.0 + 1.5 * rng.standard_normal((n, dim)) / np.sqrt(dim)


@jax.jit
def device_jets(metric, points):
    return metric.jet_batch(points)


def jets(metric, points):
    """Tensors, slopes and bends at points (n, D)."""
    with jax.enable_x64(True):
        return [np.asarray(part) for part in device_jets(metric, points)]


def assert_same(found, expected, relative):
    for part, exact, bound in zip(found, expected, relative, strict=True):
        exact = np.asarray(exact)
        assert part.shape == exact.shape
        np.testing.assert_allclose(part, exact, rtol=0, atol=bound * np.ptp(exact))


def assert_jets(metric, function, bounds):
    points = points_for(metric.dim)
    with jax.enable_x64(True):
        expected = by_jacfwd(function, points)
    assert_same(jets(metric, points), expected, bounds)


@pytest.mark.parametrize(("name", "dim"), CASES)
def test_jets_are_derivatives_of_the_formula(name, dim):
    metric = learned(dim, KINDS[name])
    assert_jets(metric, formula(name, metric.data), (1e-11, 1e-10, 1e-10))


@pytest.mark.parametrize("name", KINDS)
def test_jets_from_tables(name):
    metric = learned(2, KINDS[name]).tabulated()
    assert metric.is_tabulated
    assert_jets(metric, formula(name, metric.data), (1e-9, 1e-7, 1e-5))


@pytest.mark.parametrize("fn", [diagonal, full])
@pytest.mark.parametrize("dim", [1, 3])
def test_jets_of_functions(fn, dim):
    assert_jets(FunctionMetric(fn, dim), fn, (1e-13, 1e-13, 1e-13))
