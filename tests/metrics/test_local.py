"""Learned metrics against their formulas, written out in NumPy, and their laws."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import special_ortho_group

from land.metrics import DensityMetric, LocalDiagonalMetric, LocalFullMetric

KINDS = [LocalDiagonalMetric, LocalFullMetric, DensityMetric]
# Both ways to the derivative (third moments up to 6 dimensions, automatic above).
CASES = [(LocalDiagonalMetric, dim) for dim in (1, 3, 7, 50)]
CASES += [(LocalFullMetric, 2), (LocalFullMetric, 7), (DensityMetric, 2)]
SIGMA, RHO = 0.8, 1e-3

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def local_variances(kind, data, sigma, rho, points):
    """The inverse of the metric as full matrices, term by term."""
    offsets = data - points[:, None]
    weights = np.exp(-np.sum(offsets**2, axis=2) / (2.0 * sigma**2))
    eye = np.eye(data.shape[1])
    if kind is DensityMetric:
        return (sigma**2 * weights.sum(axis=1) + rho)[:, None, None] * eye
    found = np.einsum("pn,pni,pnj->pij", weights, offsets, offsets) + rho * eye
    return found * eye if kind is LocalDiagonalMetric else found


def tensors(metric, points):
    """The formula, inverted."""
    return np.linalg.inv(
        local_variances(type(metric), metric.data, metric.sigma, metric.rho, points)
    )


def assert_close(found, expected, relative):
    """Relative to the largest entry of each matrix."""
    error = np.abs(found - expected).max(axis=(-1, -2))
    assert (error <= relative * np.abs(expected).max(axis=(-1, -2))).all()


def cloud(n, dim=2, seed=6):
    return np.random.default_rng(seed).standard_normal((n, dim))


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0].__name__}-{case[1]}")
def example(request):
    """A metric and points at which it varies; N is no multiple of the padding."""
    kind, dim = request.param
    rng = np.random.default_rng(dim)
    spread = 1.0 / np.sqrt(dim)  # so that neighbours are within a few sigma
    data = 5.0 + spread * rng.standard_normal((90, dim))
    points = 5.0 + 1.5 * spread * rng.standard_normal((20, dim))
    return kind(data, SIGMA, RHO), points


def test_tensors_follow_the_formula(example):
    metric, points = example
    assert_close(metric.tensor(points), tensors(metric, points), 1e-10)


@jax.jit
def derivatives(metric, points, ways, seeds):
    """Forward and reverse mode, as the geodesic equation takes them."""
    _, change = jax.linearize(metric.tensor_batch, points)
    return change(ways), jax.linear_transpose(change, points)(seeds)[0]


def test_derivatives_are_those_of_finite_differences(example):
    """Also in line with the centre and the outermost datum, where sums are small."""
    metric, points = example
    centre = metric.data.mean(axis=0)
    outermost = metric.data[np.argmax(np.linalg.norm(metric.data - centre, axis=1))]
    points[:5] = outermost + np.linspace(0.1, 1.0, 5)[:, None] * (outermost - centre)
    rng = np.random.default_rng(2)
    ways = rng.standard_normal(points.shape)
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    seeds = rng.standard_normal(metric.host_tensors(points).shape)
    with jax.enable_x64(True):
        forward, reverse = map(np.asarray, derivatives(metric, points, ways, seeds))
    step = 1e-5
    after, before = (
        tensors(metric, points + way) for way in (step * ways, -step * ways)
    )
    expected = (after - before) / (2.0 * step)
    if forward.ndim == 2:
        expected = np.diagonal(expected, axis1=1, axis2=2)
    np.testing.assert_allclose(forward, expected, rtol=0, atol=1e-7 * np.ptp(expected))
    products = np.sum((seeds * forward).reshape(len(points), -1), axis=1)
    size = np.abs(products).max()
    np.testing.assert_allclose(
        np.sum(reverse * ways, axis=1), products, rtol=0, atol=1e-11 * size
    )


@pytest.mark.parametrize("distance", [50.0, 1e8, 1e100])
def test_far_away_nothing_is_left_but_rho(example, distance):
    """Exactly 1 / rho: what the expanded square loses must not show."""
    metric, points = example
    way = np.random.default_rng(3).standard_normal(points.shape)
    way *= distance * SIGMA / np.linalg.norm(way, axis=1, keepdims=True)
    expected = np.broadcast_to(np.eye(metric.dim) / RHO, (20, metric.dim, metric.dim))
    np.testing.assert_array_equal(metric.tensor(5.0 + way), expected)
    with jax.enable_x64(True):
        seeds = np.ones(metric.host_tensors(way).shape)
        slopes = derivatives(metric, 5.0 + way, way, seeds)
    for slope in slopes:
        np.testing.assert_array_equal(slope, 0.0)


@every_kind
def test_tails_keep_their_digits(kind):
    """A few sigma out, with a rho too small to hide what is lost there."""
    rng = np.random.default_rng(4)
    # The least eigenvalue of a full covariance loses digits as the others are larger.
    rho = 1e-10 if kind is LocalFullMetric else 1e-30
    metric = kind(rng.standard_normal((100, 2)), 0.5, rho)
    angles = rng.uniform(0.0, 2.0 * np.pi, 50)
    radii = rng.uniform(2.0, 6.0, 50)[:, None]
    points = radii * np.column_stack([np.cos(angles), np.sin(angles)])
    found = np.linalg.inv(metric.tensor(points))
    expected = local_variances(kind, metric.data, 0.5, rho, points)
    assert_close(found, expected, 1e-8)


@every_kind
@given(
    factor=st.floats(1e-6, 1e6),
    shift=arrays(float, 3, elements=st.floats(-100.0, 100.0)),
)
def test_units_and_origin_do_not_matter(kind, factor, shift):
    """Data, sigma in the same units, rho in their square: M scales by their inverse."""
    data, points = cloud(100, 3), cloud(20, 3, 7)
    plain = kind(data, SIGMA, RHO)
    moved = kind(factor * (data + shift), factor * SIGMA, factor**2 * RHO)
    found = moved.tensor(factor * (points + shift)) * factor**2
    assert_close(found, plain.tensor(points), 1e-9)


@pytest.mark.parametrize("kind", [LocalFullMetric, DensityMetric])
@pytest.mark.parametrize("dim", [2, 7])
def test_turning_the_data_turns_the_tensors(kind, dim):
    turn = special_ortho_group.rvs(dim, random_state=0)
    data, points = cloud(100, dim), cloud(20, dim, 7)
    plain, turned = kind(data, SIGMA, RHO), kind(data @ turn.T, SIGMA, RHO)
    expected = turn @ plain.tensor(points) @ turn.T
    assert_close(turned.tensor(points @ turn.T), expected, 1e-10)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65])
@every_kind
def test_padding_weighs_nothing(kind, n):
    metric, points = kind(cloud(n), SIGMA, RHO), cloud(10, 2, 7)
    assert_close(metric.tensor(points), tensors(metric, points), 1e-10)


def test_blocks_of_points_are_put_together_again():
    """So many data that a batch of points is cut into blocks."""
    metric, points = LocalDiagonalMetric(cloud(20_000), SIGMA, RHO), cloud(300, 2, 7)
    found = metric.tensor(points)
    for some in (slice(20), slice(-20, None)):
        assert_close(found[some], tensors(metric, points[some]), 1e-9)
