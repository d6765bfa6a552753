"""Whatever a user hands to a metric by mistake is answered by a ValueError.

It names the argument, what was expected and what came.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from land.metrics import EuclideanMetric, FunctionMetric, LocalDiagonalMetric

DATA = np.random.default_rng(0).standard_normal((20, 2))


def spoiled(value):
    data = DATA.copy()
    data[3, 1] = value
    return data


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (spoiled(np.nan), "data must be finite, got 1 NaN or infinite"),
        (DATA[:, 0], r"data must have 2 axes.*got shape \(20,\)"),
        (DATA[None], r"data must have 2 axes.*got shape \(1, 20, 2\)"),
        (np.empty((0, 2)), r"data must not be empty.*\(0, 2\)"),
        (np.empty((5, 0)), "data must have at least 1 coordinates.*got 0"),
        (DATA + 1j, "data must be an array of real numbers"),
    ],
    ids=lambda value: None if not isinstance(value, str) else value[:20],
)
def test_bad_data(data, what):
    with pytest.raises(ValueError, match=what):
        LocalDiagonalMetric(data, sigma=0.1, rho=0.1)


@pytest.mark.parametrize("name", ["sigma", "rho"])
@pytest.mark.parametrize(
    "value", [0.0, -1.0, np.inf, "wide", None, True, [0.1, 0.2], 1j]
)
def test_bad_widths(name, value):
    arguments = {"sigma": 0.1, "rho": 0.1} | {name: value}
    with pytest.raises(ValueError, match=rf"{name} must be .*positive.*, got"):
        LocalDiagonalMetric(DATA, **arguments)


@pytest.mark.parametrize("dim", [0, -1, 2.0, "2", None, True])
def test_bad_dimensions(dim):
    with pytest.raises(ValueError, match=r"dim must be .*, got"):
        EuclideanMetric(dim)
    with pytest.raises(ValueError, match=r"dim must be .*, got"):
        FunctionMetric(lambda x: x, dim)


@pytest.mark.parametrize("method", ["tensor", "log_volume"])
@pytest.mark.parametrize(
    ("x", "what"),
    [
        (np.ones(3), "x must have 2 coordinates.*got 3"),
        (1.0, r"x must have at least one axis.*got shape \(\)"),
        ([[np.inf, np.nan]], "x must be finite, got 2"),
        ("here", "x must be an array of real numbers"),
    ],
)
def test_bad_points(method, x, what):
    metric = LocalDiagonalMetric(DATA, sigma=0.1, rho=0.1)
    with pytest.raises(ValueError, match=what):
        getattr(metric, method)(x)


@pytest.mark.parametrize("name", ["x", "u", "v"])
@pytest.mark.parametrize("value", [np.ones(3), [np.nan, 0.0], 1.0])
def test_bad_vectors(name, value):
    arguments = {"x": np.ones(2), "u": np.ones(2), "v": np.ones(2)} | {name: value}
    with pytest.raises(ValueError, match=f"^{name} must"):
        EuclideanMetric(2).inner(**arguments)


@pytest.mark.parametrize("sigma", [1e-12, 1e-100])
def test_kernels_that_rounding_would_hide(sigma):
    with pytest.raises(ValueError, match=r"sigma must be at least 1e-06 of the extent"):
        LocalDiagonalMetric(DATA, sigma, 0.1)


def called_back(x):
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(np.ones_like, like, x, vmap_method="expand_dims")


def looped(x):
    """JAX can differentiate it forwards only."""
    return jax.lax.while_loop(lambda y: y[0] < 1.0, lambda y: 2.0 * y, jnp.exp(x))


@pytest.mark.parametrize("fn", [called_back, looped])
def test_a_function_without_derivatives(fn):
    with pytest.raises(ValueError, match="fn could not be differentiated by JAX"):
        FunctionMetric(fn, 2)


def test_no_volume_where_there_is_no_metric():
    """Eigenvalues 3 and -1: its volume element is not sqrt(3)."""
    metric = FunctionMetric(lambda x: jnp.array([[1.0, 2.0], [2.0, 1.0]]), dim=2)
    with pytest.raises(ValueError, match="positive definite"):
        metric.log_volume([0.0, 0.0])
