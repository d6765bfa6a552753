"""Tables instead of sums: the same, only faster."""

import functools

import jax
import numpy as np
import pytest

import land
from land.metrics import LocalDiagonalMetric

RNG = np.random.default_rng(0)
# For values, first and second derivatives (land.metrics.table).
BOUNDS = (1e-9, 1e-7, 1e-5)


def tabulated(data, sigma, rho):
    """The metric with a table of the sums."""
    metric = LocalDiagonalMetric(data, sigma, rho).tabulated()
    if not metric.is_tabulated:  # some data sets with a wide sigma
        pytest.skip("there is no table for these")
    return metric


def exactly(metric, points):
    """h, its first and its second derivatives from differences, in units of sigma.

    All data are taken, and nothing is expanded.
    """
    values, firsts, seconds = [], [], []
    eye = np.eye(metric.dim)
    for point in points:
        u = (metric.data - point) / metric.sigma
        w = np.exp(-0.5 * np.sum(u**2, axis=1))
        square, skew = w @ u**2, np.einsum("n,nd,nj->dj", w, u, u**2)
        both = np.einsum("n,nd,ne->de", w, u, u)
        values.append(square)
        firsts.append(skew - 2.0 * np.diag(w @ u))
        seconds.append(
            np.einsum("n,ne,nd,nj->edj", w, u, u, u**2)
            - eye[:, :, None] * square
            - 2.0 * np.einsum("ej,dj->edj", eye, both)
            - 2.0 * np.einsum("dj,ed->edj", eye, both)
            + 2.0 * np.einsum("dj,ed->edj", eye, eye) * w.sum()
        )
    scale = metric.sigma**2
    return (
        scale * np.array(values) + metric.rho,
        scale * np.array(firsts),
        (scale * np.array(seconds)),
    )


def local_variances(metric, points):
    """The same from the metric M = 1 / h."""
    with jax.enable_x64(True):
        jets = jax.jit(type(metric).jet_batch)(metric, points)
    tensors, slopes, bends = (np.asarray(part) for part in jets)
    h, sigma = 1.0 / tensors, metric.sigma
    first = -(h[:, None] ** 2) * slopes
    second = 2.0 * first[:, :, None] * first[:, None] / h[:, None, None]
    second -= h[:, None, None] ** 2 * bends
    return h, sigma * first, sigma**2 * second


def errors(metric, points):
    """Errors of values and derivatives, relative to the local variance.

    Those of tables are relative to the largest one within half a sigma.
    """
    expected = exactly(metric, points)
    size = expected[0]
    if metric.is_tabulated:
        ways = 0.5 * metric.sigma * np.stack(np.meshgrid(*2 * [np.linspace(-1, 1, 5)]))
        around = points[:, None] + ways.reshape(2, -1).T
        sizes = exactly(metric, around.reshape(-1, 2))[0]
        size = sizes.reshape(len(points), -1).max(axis=1)[:, None]
    found = local_variances(metric, points)
    sizes = (size, size[:, None], size[:, None, None])
    return [
        float(np.max(np.abs(part - exact) / size))
        for part, exact, size in zip(found, expected, sizes, strict=True)
    ]


def assert_within_bound(data, sigma, rho):
    """Values and derivatives are those of all data.

    Beyond the bound there is rounding, which must not be worse than in the full sum:
    where a rho far below the weights is all that is left, both lose digits.
    """
    points = places(data, sigma)
    metric = tabulated(data, sigma, rho)
    everything = LocalDiagonalMetric(data, sigma, rho)
    found, rounding = errors(metric, points), errors(everything, points)
    allowed = np.maximum(BOUNDS, 3.0 * np.array(rounding))
    assert (np.array(found) <= allowed).all()
    expected = -0.5 * np.sum(np.log(exactly(metric, points)[0]), axis=1)
    volumes = metric.log_volume(points)
    slack = metric.dim * allowed[0] + 1e-13 * np.abs(expected)
    assert (np.abs(volumes - expected) <= slack).all()


def places(data, sigma, n=40):
    """Points on the data, beside them, beyond them and far away from them."""
    rng = np.random.default_rng(1)
    some = data[rng.integers(0, len(data), n)]
    steps = rng.standard_normal(some.shape)
    extent = np.ptp(data, axis=0).max() + sigma
    return np.concatenate(
        [some, some + sigma * steps, some + 6.0 * sigma * steps, some + extent * steps]
    )


@functools.cache
def dataset(name):
    made = getattr(land.datasets, name)(random_state=0)
    return np.asarray(made[0] if isinstance(made, tuple) else made, dtype=float)


def nightly(value):
    return pytest.param(value, marks=pytest.mark.nightly)


MAKERS = sorted(name for name in dir(land.datasets) if name.startswith("make_"))


FLAT_MAKERS = [name for name in MAKERS if name != "make_s_curve"]  # tables are flat


@pytest.mark.parametrize("width", [0.01, nightly(0.5)])
@pytest.mark.parametrize(
    "maker", [name if name == "make_circle" else nightly(name) for name in FLAT_MAKERS]
)
def test_every_data_set(maker, width):
    """From a sigma that separates all data to one wider than all of them."""
    data = dataset(maker)
    sigma = width * np.ptp(data, axis=0).max()
    assert_within_bound(data, sigma, 1e-2 * sigma**2)


CLOUD = RNG.standard_normal((700, 2))
ADVERSARIAL = {
    "duplicates": np.repeat(CLOUD[:20], 35, axis=0),
    "one point": np.zeros((300, 2)),
    "one outlier": np.concatenate([0.1 * CLOUD, [[300.0, -400.0]]]),
    "on a line": np.column_stack([np.linspace(0.0, 50.0, 900), np.zeros(900)]),
    "all within reach": 0.01 * CLOUD,
    "far from the origin": CLOUD + 1e3,
    "few data": CLOUD[:65],
}


@pytest.mark.parametrize(
    "name",
    [
        "one outlier",
        "few data",
        "far from the origin",
        *map(nightly, ("duplicates", "one point", "all within reach", "on a line")),
    ],
)
def test_adversarial_data(name):
    """Those that have tables; each has a shape, and takes programs, of its own."""
    assert_within_bound(ADVERSARIAL[name], 0.7, 1.0)


@functools.cache
def spread_out():
    """The metric of a cloud that is many sigma wide."""
    return tabulated(10.0 * CLOUD, 0.5, 0.1)


# The metric is an argument: a table that is part of the program takes long to compile.
tensors = jax.jit(lambda metric, points: metric.tensor_batch(points))


@pytest.mark.parametrize("n", [1, 530])
def test_any_number_of_points(n):
    metric = spread_out()
    points = 12.0 * np.random.default_rng(n).standard_normal((n, 2))
    with jax.enable_x64(True):
        found = np.asarray(tensors(metric, points))
    exact = exactly(metric, points)[0]
    np.testing.assert_allclose(1.0 / found, exact, rtol=BOUNDS[0])


def test_what_is_not_finite_stays_alone():
    """A point that got lost is lost, and its neighbours in the batch are not."""
    metric = spread_out()
    points = 5.0 * np.random.default_rng(0).standard_normal((100, 2))
    expected = 1.0 / exactly(metric, points)[0]
    points[::7, 0], points[1::7, 1], points[2::7] = np.nan, np.inf, -np.inf
    lost = ~np.isfinite(points).all(axis=1)
    with jax.enable_x64(True):
        found = np.asarray(tensors(metric, points))
    assert np.isnan(found[lost]).any(axis=1).all()
    np.testing.assert_allclose(found[~lost], expected[~lost], rtol=BOUNDS[0])


@pytest.mark.parametrize("distance", [50.0, 1e8, 1e100])
def test_far_away_nothing_is_left_but_rho(distance):
    metric = tabulated(CLOUD, 0.5, 0.1)
    points = distance * np.random.default_rng(0).standard_normal((20, 2))
    np.testing.assert_array_equal(metric.host_tensors(points), 1.0 / 0.1)


def plane(n, dim=2, seed=0):
    """Uniform data, three in a cube as wide as sigma = 1."""
    rng = np.random.default_rng(seed)
    return (n / 3.0) ** (1.0 / dim) * rng.random((n, dim))


TABLES = {
    "few data": (plane(10), 1.0, True),
    "many data": (plane(1500), 1.0, True),
    "a huge plane": (plane(2000), 1e-3, False),
    "many cells": (100.0 * plane(1500), 1.0, False),
    "D = 3": (plane(2000, dim=3), 1.0, False),
}


@pytest.mark.parametrize("choice", TABLES.values(), ids=TABLES.keys())
def test_tabulated_where_that_is_possible(choice):
    data, sigma, possible = choice
    metric = LocalDiagonalMetric(data, sigma, 1.0)
    before = metric.tensor(data)
    other = metric.tabulated()
    assert other.is_tabulated == possible
    assert (other is metric) == (not possible)
    assert not metric.is_tabulated  # metrics do not change
    np.testing.assert_array_equal(metric.tensor(data), before)
    assert other.tabulated() is other


def test_no_table_where_it_would_lose_digits():
    """Far in the tails the kernel falls by orders of magnitude within a cell."""
    assert not LocalDiagonalMetric(plane(1500), 1.0, 1e-30).tabulated().is_tabulated


@pytest.mark.parametrize("form", ["metric", "metric.tabulated()"])
def test_similar_metrics_share_a_compilation(count_compilations, form):
    counts = count_compilations(f"""
data = 22.0 * np.random.default_rng(0).random((1500, 2))
for n, sigma in ((1490, 1.0), (1491, 1.001), (1500, 1.0)):
    metric = land.metrics.LocalDiagonalMetric(data[:n], sigma, 1.0)
    counts[n] = count({form}.host_tensors, data[:5])
""")
    first, *others = (sum(each.values()) for each in counts.values())
    assert first >= 1
    assert others == [0, 0]
