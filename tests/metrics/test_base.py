"""What every metric offers: tensors, volumes and inner products on any leading axes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from land.metrics import EuclideanMetric, FunctionMetric, LocalDiagonalMetric

DIM = 3


def diagonal(x):
    return jnp.exp(x) + jnp.roll(x, 1) ** 2


def full(x):
    return jnp.eye(DIM) + jnp.outer(x, x)


METRICS = {
    "euclidean": EuclideanMetric(DIM),
    "diagonal": FunctionMetric(diagonal, DIM),
    "full": FunctionMetric(full, DIM),
    "learned": LocalDiagonalMetric(
        np.random.default_rng(0).standard_normal((50, DIM)), sigma=0.7, rho=0.1
    ),
}


@pytest.fixture(params=METRICS.values(), ids=METRICS.keys())
def metric(request):
    return request.param


@pytest.fixture
def points():
    return np.random.default_rng(1).standard_normal((4, 5, DIM))


def one_tensor(metric, point):
    """The tensor at one point as a matrix, from the function of one point."""
    with jax.enable_x64(True):
        tensor = np.asarray(metric.tensor_at(jnp.asarray(point)))
    return np.diag(tensor) if tensor.ndim == 1 else tensor


def test_tensors_are_those_of_the_single_points(metric, points):
    tensors = metric.tensor(points)
    assert tensors.shape == (4, 5, DIM, DIM)
    assert tensors.dtype == np.float64
    for index in np.ndindex(4, 5):
        expected = one_tensor(metric, points[index])
        np.testing.assert_allclose(tensors[index], expected, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(
            metric.tensor(points[index]), expected, rtol=1e-12, atol=1e-14
        )


def test_volume_is_the_root_of_the_determinant(metric, points):
    volumes = metric.log_volume(points)
    assert volumes.shape == (4, 5)
    dets = np.linalg.det(metric.tensor(points))
    np.testing.assert_allclose(np.exp(2.0 * volumes), dets, rtol=1e-12)
    assert metric.log_volume(points[0, 0]).shape == ()


def test_inner_products_are_bilinear_forms(metric, points):
    rng = np.random.default_rng(2)
    u, v = rng.standard_normal((2, 4, 5, DIM))
    products = metric.inner(points, u, v)
    assert products.shape == (4, 5)
    expected = np.einsum("abi,abij,abj->ab", u, metric.tensor(points), v)
    np.testing.assert_allclose(products, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(metric.inner(points, v, u), products, rtol=1e-12)
    assert np.all(metric.inner(points, u, u) > 0.0)


@pytest.mark.parametrize("shape", [(0, DIM), (2, 0, DIM)])
def test_no_points_give_no_values(metric, shape):
    assert metric.tensor(np.empty(shape)).shape == (*shape, DIM)
    assert metric.log_volume(np.empty(shape)).shape == shape[:-1]
    assert metric.inner(np.empty(shape), np.ones(DIM), np.ones(DIM)).shape == shape[:-1]


def test_many_points_go_through_in_blocks(metric):
    """More points than one block holds, and not a multiple of it."""
    points = np.random.default_rng(3).standard_normal((9001, DIM))
    tensors = metric.tensor(points)
    for row in (0, 4095, 4096, 8191, 8192, 9000):
        np.testing.assert_allclose(
            tensors[row], metric.tensor(points[row]), rtol=1e-12, atol=1e-14
        )


def test_metrics_survive_the_round_trip_through_a_pytree(metric, points):
    leaves, structure = jax.tree_util.tree_flatten(metric)
    again = jax.tree_util.tree_unflatten(structure, leaves)
    assert type(again) is type(metric)
    assert again.dim == metric.dim
    np.testing.assert_array_equal(again.tensor(points), metric.tensor(points))
    # Compiled functions take metrics as arguments; equal structures share them.
    assert jax.tree_util.tree_structure(again) == structure
    with jax.enable_x64(True):
        compiled = jax.jit(lambda metric, x: metric.tensor_batch(x))
        found = np.asarray(compiled(metric, points[0]))
    np.testing.assert_allclose(found, metric.host_tensors(points[0]), rtol=1e-13)
