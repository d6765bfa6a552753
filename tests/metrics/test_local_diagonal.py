"""The learned metric against the formula of the paper, written out in NumPy."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from land.metrics import LocalDiagonalMetric

# Both ways to the derivative (third moments up to 6 dimensions, reverse mode above).
DIMENSIONS = [1, 2, 3, 6, 7, 50]
SIGMA, RHO = 0.8, 1e-3


def local_variances(data, sigma, rho, points):
    """h_d(x) = sum_n w_n (x_nd - x_d)^2 + rho, term by term."""
    offsets = data - points[:, None]
    weights = np.exp(-np.sum(offsets**2, axis=2) / (2.0 * sigma**2))
    return np.einsum("pn,pnd->pd", weights, offsets**2) + rho


def diagonals(metric, points):
    return np.diagonal(metric.tensor(points), axis1=-2, axis2=-1)


@pytest.fixture(params=DIMENSIONS, ids="D={}".format, scope="module")
def example(request):
    """A metric and points at which it varies; N is no multiple of the padding."""
    dim = request.param
    rng = np.random.default_rng(dim)
    spread = 1.0 / np.sqrt(dim)  # so that neighbours are within a few sigma
    data = 5.0 + spread * rng.standard_normal((90, dim))
    points = 5.0 + 1.5 * spread * rng.standard_normal((20, dim))
    return LocalDiagonalMetric(data, SIGMA, RHO), points


def test_tensors_follow_the_formula(example):
    metric, points = example
    expected = 1.0 / local_variances(metric.data, SIGMA, RHO, points)
    np.testing.assert_allclose(diagonals(metric, points), expected, rtol=1e-10)


def test_both_paths_agree(example):
    """Matrix products on the batch, and the formula for one point under vmap."""
    metric, points = example
    with jax.enable_x64(True):
        single = jax.jit(jax.vmap(metric.tensor_at))(points)
    batch = metric.host_tensors(points)
    np.testing.assert_allclose(batch, single, rtol=1e-10)


def test_both_paths_have_the_same_derivatives(example):
    metric, points = example
    assert_same_derivatives(metric, points)


def test_derivatives_hold_beyond_the_outermost_datum(example):
    """In line with the centre and the outermost datum bounds on distances are tight."""
    metric, _ = example
    centre = metric.data.mean(axis=0)
    outermost = metric.data[np.argmax(np.linalg.norm(metric.data - centre, axis=1))]
    way = (outermost - centre) / np.linalg.norm(outermost - centre)
    points = outermost + SIGMA * np.linspace(0.1, 3.0, 20)[:, None] * way
    assert_same_derivatives(metric, points)


def assert_same_derivatives(metric, points):
    """Hold first and second derivatives of the batch to those of single points."""
    rng = np.random.default_rng(0)
    seeds, ways = rng.standard_normal((2, *points.shape))
    with jax.enable_x64(True):
        batch = derivatives(metric, points, seeds, ways, batched=True)
        single = derivatives(metric, points, seeds, ways, batched=False)
    for found, expected in zip(batch, single, strict=True):
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * scale)


@partial(jax.jit, static_argnames="batched")
def derivatives(metric, points, seeds, ways, batched):
    """Reverse and forward mode, and forward over reverse, as the Jacobi fields do."""
    function = metric.tensor_batch if batched else jax.vmap(metric.tensor_at)

    def gradient(points):
        return pulled_back(function, points, seeds)

    first, second = jax.jvp(gradient, (points,), (ways,))
    return first, pushed_forward(function, points, ways), second


def test_gradients_are_those_of_finite_differences(example):
    metric, points = example
    ways = np.random.default_rng(2).standard_normal(points.shape)
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    with jax.enable_x64(True):
        slopes = jax.jit(pushed_forward, static_argnums=0)(
            lambda x: 1.0 / metric.tensor_batch(x), points, ways
        )
    step = 1e-5
    after = local_variances(metric.data, SIGMA, RHO, points + step * ways)
    before = local_variances(metric.data, SIGMA, RHO, points - step * ways)
    expected = (after - before) / (2.0 * step)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(slopes, expected, rtol=0, atol=1e-7 * scale)


def pulled_back(function, points, seeds):
    """Reverse mode."""
    return jax.vjp(function, points)[1](seeds)[0]


def pushed_forward(function, points, ways):
    """Forward mode."""
    return jax.jvp(function, (points,), (ways,))[1]


@pytest.mark.parametrize("distance", [50.0, 1e3, 1e8, 1e100])
def test_far_away_nothing_is_left_but_rho(example, distance):
    """Exactly 1 / rho: what the expanded square loses must not show."""
    metric, points = example
    way = np.random.default_rng(3).standard_normal(points.shape)
    way *= distance * SIGMA / np.linalg.norm(way, axis=1, keepdims=True)
    np.testing.assert_array_equal(diagonals(metric, 5.0 + way), 1.0 / RHO)
    with jax.enable_x64(True):
        slopes = derivatives(metric, 5.0 + way, way, way, batched=True)
    for slope in slopes:
        np.testing.assert_array_equal(slope, 0.0)


def test_tails_keep_their_digits():
    """A few sigma out, with a rho too small to hide what is lost there."""
    rng = np.random.default_rng(4)
    data = rng.standard_normal((100, 2))
    metric = LocalDiagonalMetric(data, sigma=0.5, rho=1e-30)
    angles = rng.uniform(0.0, 2.0 * np.pi, 50)
    radii = rng.uniform(2.0, 6.0, 50)[:, None]
    points = radii * np.column_stack([np.cos(angles), np.sin(angles)])
    expected = local_variances(data, 0.5, 1e-30, points)
    np.testing.assert_allclose(1.0 / diagonals(metric, points), expected, rtol=1e-8)


def test_the_place_of_the_data_does_not_matter():
    """Data at a million: centring keeps the digits that the input has."""
    rng = np.random.default_rng(5)
    data, points = rng.standard_normal((100, 3)), rng.standard_normal((20, 3))
    here = LocalDiagonalMetric(data, SIGMA, RHO)
    there = LocalDiagonalMetric(data + 1e6, SIGMA, RHO)
    np.testing.assert_allclose(
        diagonals(there, points + 1e6), diagonals(here, points), rtol=1e-8
    )


@given(
    factor=st.floats(1e-6, 1e6),
    shift=arrays(float, 3, elements=st.floats(-100.0, 100.0)),
)
def test_units_and_origin_do_not_matter(factor, shift):
    """Data, sigma in the same units, rho in their square: M scales by their inverse."""
    rng = np.random.default_rng(6)
    data, points = rng.standard_normal((100, 3)), rng.standard_normal((20, 3))
    plain = LocalDiagonalMetric(data, SIGMA, RHO)
    moved = LocalDiagonalMetric(
        factor * (data + shift), factor * SIGMA, factor**2 * RHO
    )
    np.testing.assert_allclose(
        diagonals(moved, factor * (points + shift)) * factor**2,
        diagonals(plain, points),
        rtol=1e-9,
    )


@pytest.mark.parametrize("copies", [2, 5])
def test_a_row_given_twice_counts_twice(copies):
    rng = np.random.default_rng(7)
    data, points = rng.standard_normal((40, 2)), rng.standard_normal((20, 2))
    # All of them: h grows by the factor, and so must rho, for M to be divided by it.
    plain = LocalDiagonalMetric(data, SIGMA, RHO)
    heavy = LocalDiagonalMetric(np.repeat(data, copies, axis=0), SIGMA, copies * RHO)
    np.testing.assert_allclose(
        copies * diagonals(heavy, points), diagonals(plain, points), rtol=1e-12
    )
    # One of them: its term is added once more for each copy.
    one = LocalDiagonalMetric(
        np.concatenate([data, [data[3]] * (copies - 1)]), 1.0, 1.0
    )
    extra = local_variances(data[3:4], 1.0, 0.0, points)
    expected = local_variances(data, 1.0, 1.0, points) + (copies - 1) * extra
    np.testing.assert_allclose(1.0 / diagonals(one, points), expected, rtol=1e-10)


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(8)
    data, points = rng.standard_normal((100, 2)), rng.standard_normal((20, 2))
    plain = LocalDiagonalMetric(data, SIGMA, RHO)
    shuffled = LocalDiagonalMetric(rng.permutation(data), SIGMA, RHO)
    np.testing.assert_allclose(
        diagonals(shuffled, points), diagonals(plain, points), rtol=1e-12
    )


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65])
def test_padding_weighs_nothing(n):
    rng = np.random.default_rng(9)
    data, points = rng.standard_normal((n, 2)), rng.standard_normal((10, 2))
    metric = LocalDiagonalMetric(data, SIGMA, RHO)
    expected = local_variances(data, SIGMA, RHO, points)
    np.testing.assert_allclose(1.0 / diagonals(metric, points), expected, rtol=1e-10)


def test_blocks_of_points_are_put_together_again():
    """So many data that a batch of points is cut into blocks."""
    rng = np.random.default_rng(10)
    data, points = rng.standard_normal((20_000, 2)), rng.standard_normal((300, 2))
    metric = LocalDiagonalMetric(data, SIGMA, RHO)
    found = diagonals(metric, points)
    expected = 1.0 / local_variances(data, SIGMA, RHO, points[:20])
    np.testing.assert_allclose(found[:20], expected, rtol=1e-9)
    expected = 1.0 / local_variances(data, SIGMA, RHO, points[-20:])
    np.testing.assert_allclose(found[-20:], expected, rtol=1e-9)


def test_the_data_are_the_landmarks_and_sigma_the_resolution():
    data = np.random.default_rng(11).standard_normal((10, 2))
    metric = LocalDiagonalMetric(data, sigma=0.25, rho=0.1)
    np.testing.assert_array_equal(metric.landmarks, data)
    assert metric.resolution == 0.25


def test_data_may_be_jax_arrays_lists_and_integers():
    plain = LocalDiagonalMetric(np.array([[0.0, 1.0], [2.0, 3.0]]), 1.0, 0.5)
    for data in (jnp.array([[0, 1], [2, 3]]), [[0, 1], [2, 3]], [(0.0, 1), (2, 3.0)]):
        same = LocalDiagonalMetric(data, np.float32(1.0), jnp.asarray(0.5))
        np.testing.assert_array_equal(same.tensor([1.0, 1.0]), plain.tensor([1.0, 1.0]))
