"""Neighbours instead of all data, tables instead of sums: the same, only faster."""

import dataclasses
import functools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import land
from land.geodesics.equation import acceleration_and_tensor, jacobi_acceleration
from land.metrics import LocalDiagonalMetric, local_diagonal, neighbours
from land.metrics.table import VarianceTable

RNG = np.random.default_rng(0)
BOUND = 1e-10


def full(data, sigma, rho):
    """The metric as a sum over all data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_diagonal, "neighbour_blocks", lambda *_: None)
        return LocalDiagonalMetric(data, sigma, rho)


def nearby(data, sigma, rho):
    """The metric as a sum over neighbours, whether or not that pays."""
    with pytest.MonkeyPatch.context() as patch:
        no_few = dataclasses.replace(neighbours.device(), few_data=0)
        patch.setattr(neighbours, "device", lambda: no_few)
        patch.setattr(neighbours, "_COST", 0.0)
        metric = LocalDiagonalMetric(data, sigma, rho)
    assert isinstance(metric._sums, neighbours.Blocks)
    return metric


def tabulated(data, sigma, rho):
    """The metric with a table of the sums."""
    metric = full(data, sigma, rho).tabulated()
    if not metric.is_tabulated:  # some data sets with a wide sigma
        pytest.skip("there is no table for these")
    return metric


# For values, first and second derivatives; tables promise less (land.metrics.table).
BOUNDS = {nearby: (BOUND, BOUND, BOUND), tabulated: (1e-9, 1e-7, 1e-5)}
# For values on data that are not extreme: rounding, or what a table has.
CLOSE = {nearby: 1e-12, tabulated: 1e-9}
FORMS = pytest.mark.parametrize("form", [nearby, tabulated])


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


@jax.jit
def local_variances(metric, points):
    """The same from the metric, in forward mode."""

    def variances(points):
        return 1.0 / metric.tensor_batch(points)

    def derivatives(function, points):
        def along(way):
            ways = jnp.broadcast_to(metric.sigma * way, points.shape)
            return jax.jvp(function, (points,), (ways,))[1]

        return jax.vmap(along, out_axes=1)(jnp.eye(metric.dim))

    def slopes(points):
        return derivatives(variances, points)

    return variances(points), slopes(points), derivatives(slopes, points)


def errors(metric, points):
    """Errors of values and derivatives, relative to the local variance.

    Those of tables are relative to the largest one on the same polynomial, which is
    half a sigma wide.
    """
    expected = exactly(metric, points)
    size = expected[0]
    if isinstance(metric._source, VarianceTable):
        ways = 0.5 * metric.sigma * np.stack(np.meshgrid(*2 * [np.linspace(-1, 1, 5)]))
        around = points[:, None] + ways.reshape(2, -1).T
        sizes = exactly(metric, around.reshape(-1, 2))[0]
        size = sizes.reshape(len(points), -1).max(axis=1)[:, None]
    with jax.enable_x64(True):
        found = [np.asarray(part) for part in local_variances(metric, points)]
    sizes = (size, size[:, None], size[:, None, None])
    return [
        float(np.max(np.abs(part - exact) / size))
        for part, exact, size in zip(found, expected, sizes, strict=True)
    ]


def assert_within_bound(form, data, sigma, rho):
    """Values and derivatives are those of all data.

    Beyond the bound there is rounding, which must not be worse than in the full sum:
    where a rho far below the weights is all that is left, both lose digits.
    """
    points = places(data, sigma)
    metric, everything = form(data, sigma, rho), full(data, sigma, rho)
    found, rounding = errors(metric, points), errors(everything, points)
    allowed = np.maximum(BOUNDS[form], 3.0 * np.array(rounding))
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
PAIRS = [(nearby, name) for name in MAKERS]
PAIRS += [(tabulated, name) for name in FLAT_MAKERS]
# A curve and a sheet in space; each of the others takes programs of its own.
EVERY_TIME = [(nearby, "make_circle"), (nearby, "make_s_curve")]
EVERY_TIME += [(tabulated, "make_circle")]


@pytest.mark.parametrize("width", [0.01, nightly(0.1), nightly(0.5), nightly(3.0)])
@pytest.mark.parametrize(
    ("form", "maker"),
    [
        pytest.param(*pair, marks=[] if pair in EVERY_TIME else pytest.mark.nightly)
        for pair in PAIRS
    ],
)
def test_every_data_set(form, maker, width):
    """From a sigma that separates all data to one wider than all of them."""
    data = dataset(maker)
    sigma = width * np.ptp(data, axis=0).max()
    assert_within_bound(form, data, sigma, 1e-2 * sigma**2)


CLOUD = RNG.standard_normal((700, 2))
ADVERSARIAL = {
    "duplicates": np.repeat(CLOUD[:20], 35, axis=0),
    "one point": np.zeros((300, 2)),
    "one outlier": np.concatenate([0.1 * CLOUD, [[300.0, -400.0]]]),
    "many outliers": np.concatenate([0.1 * CLOUD, 100.0 * CLOUD]),
    "on a line": np.column_stack([np.linspace(0.0, 50.0, 900), np.zeros(900)]),
    "on a slanted line": np.linspace(0.0, 50.0, 900)[:, None] * [1.0, -1.0],
    "all within reach": 0.01 * CLOUD,
    "far from the origin": CLOUD + 1e3,
    "D = 1": 20.0 * RNG.standard_normal((500, 1)),
    "D = 3": 5.0 * RNG.standard_normal((900, 3)),
    "D = 5": 3.0 * RNG.standard_normal((900, 5)),
    "two blocks": CLOUD[:65],
    "one datum": CLOUD[:1],
}


NIGHTLY = {"D = 5"}


@pytest.mark.parametrize("rho", [1.0, nightly(1e-6), 1e-30])
@pytest.mark.parametrize(
    "name", [nightly(name) if name in NIGHTLY else name for name in ADVERSARIAL]
)
def test_adversarial_data_nearby(name, rho):
    """With a tiny rho the tails are all there is, many sigma away."""
    assert_within_bound(nearby, ADVERSARIAL[name], 0.7, rho)


@pytest.mark.parametrize(
    "name",
    [
        "one outlier",
        "two blocks",
        *map(nightly, ("duplicates", "one point", "all within reach")),
        *map(nightly, ("on a line", "on a slanted line")),
    ],
)
def test_adversarial_data_tabulated(name):
    """Those that have tables; each has a shape, and takes programs, of its own."""
    assert_within_bound(tabulated, ADVERSARIAL[name], 0.7, 1.0)


@functools.cache
def spread_out(form):
    """The metric of a cloud that is many sigma wide."""
    return form(10.0 * CLOUD, 0.5, 0.1)


# The metric is an argument: a table that is part of the program takes long to compile.
tensors = jax.jit(lambda metric, points: metric.tensor_batch(points))


@pytest.mark.parametrize("n", [1, 17, 511, 512, 530])
@FORMS
def test_any_number_of_points(form, n):
    metric = spread_out(form)
    points = 12.0 * np.random.default_rng(n).standard_normal((n, 2))
    with jax.enable_x64(True):
        found = np.asarray(tensors(metric, points))
    exact = exactly(metric, points)[0]
    np.testing.assert_allclose(1.0 / found, exact, rtol=CLOSE[form])


@FORMS
def test_what_is_not_finite_stays_alone(form):
    """A point that got lost is lost, and its neighbours in the batch are not."""
    metric = spread_out(form)
    points = 5.0 * np.random.default_rng(0).standard_normal((100, 2))
    expected = 1.0 / exactly(metric, points)[0]
    points[::7, 0], points[1::7, 1], points[2::7] = np.nan, np.inf, -np.inf
    lost = ~np.isfinite(points).all(axis=1)
    with jax.enable_x64(True):
        found = np.asarray(tensors(metric, points))
    assert np.isnan(found[lost]).any(axis=1).all()
    np.testing.assert_allclose(found[~lost], expected[~lost], rtol=CLOSE[form])


@pytest.mark.parametrize("distance", [50.0, 1e8, 1e100])
@FORMS
def test_far_away_nothing_is_left_but_rho(form, distance):
    metric = form(CLOUD, 0.5, 0.1)
    points = distance * np.random.default_rng(0).standard_normal((20, 2))
    np.testing.assert_array_equal(metric.host_tensors(points), 1.0 / 0.1)


def test_the_formula_for_one_point_takes_all_data():
    metric = nearby(10.0 * CLOUD[:99], 0.5, 0.1)
    points = 10.0 * CLOUD[:50]
    with jax.enable_x64(True):
        single = jax.jit(jax.vmap(metric.tensor_at))(points)
    np.testing.assert_allclose(metric.host_tensors(points), single, rtol=1e-12)


@given(
    n=st.integers(1, 10**9),
    log_sigma=st.floats(-200, 200),
    log_share=st.floats(-200, 60),
)
def test_the_cut_off_keeps_its_promise(n, log_sigma, log_share):
    """All N data just out of reach still add less than the tolerance."""
    sigma = np.exp(log_sigma)
    rho = sigma**2 * np.exp(log_share)
    r = neighbours.cut_off(n, sigma, rho)
    assert r >= 1.0
    tail = np.exp(-0.5 * r**2)
    for term in (r**2, r**3 + 2.0 * r, r**4 + 5.0 * r**2 + 2.0):
        left_out = n * np.exp(-log_share) * term * tail
        assert left_out <= (1.0 + 1e-9) * neighbours.TOLERANCE or r**2 > 1490.0


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_blocks_hold_the_data(dim):
    data = np.random.default_rng(dim).standard_normal((7001, dim))
    blocks = nearby(data, 0.1, 0.1)._sums
    with jax.enable_x64(True):
        held, present = (np.asarray(part) for part in blocks.all_data())
    scaled = (data - data.mean(axis=0)) / 0.1
    np.testing.assert_allclose(
        np.sort(held[present], axis=0), np.sort(scaled, axis=0), atol=1e-12
    )
    low, high = blocks.low.reshape(-1, dim), blocks.high.reshape(-1, dim)
    owner = np.arange(len(held)) // (len(held) // len(low))
    inside = (held >= low[owner] - 1e-9) & (held <= high[owner] + 1e-9)
    assert inside[present].all()


@pytest.mark.parametrize(("dim", "digits"), [(1, 8), (2, 8), (3, 4), (4, 3)])
def test_neighbours_along_the_curve_are_neighbours(monkeypatch, dim, digits):
    """Steps from cell to cell of a Hilbert curve through all cells have length one."""
    monkeypatch.setattr(neighbours, "_DIGITS", digits)
    cells = np.stack(np.meshgrid(*[np.arange(2**digits)] * dim), -1).reshape(-1, dim)
    with jax.enable_x64(True):
        order = jnp.argsort(neighbours._along_hilbert_curve(cells.astype(float)))
    steps = np.abs(np.diff(cells[np.asarray(order)], axis=0)).sum(axis=1)
    assert (steps == 1).all()


# Where it pays, and what comes of it.


def plane(n, dim=2, seed=0):
    """Uniform data, three in a cube as wide as sigma = 1."""
    rng = np.random.default_rng(seed)
    return (n / 3.0) ** (1.0 / dim) * rng.random((n, dim))


CHOICES = {
    "few data": (plane(1000), 1.0, False),
    "many data": (plane(20_000), 1.0, True),
    "wide kernel": (plane(20_000), 30.0, False),
    "line": (plane(20_000, dim=1), 1.0, True),
    "D = 5": (plane(20_000, dim=5), 1.0, False),
    "D = 5, curve": (np.linspace(0, 1000, 20_000)[:, None] * np.ones(5), 1.0, True),
    "D = 50": (plane(5000, dim=50), 1.0, False),
}


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES.keys())
def test_chosen_where_it_pays(choice):
    data, sigma, pays = choice
    metric = LocalDiagonalMetric(data, sigma, 1.0)
    assert isinstance(metric._sums, neighbours.Blocks) == pays
    assert metric.has_cheap_curvature == (not pays)


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


@pytest.mark.parametrize("center", [0.0, 1e4])
def test_copies_make_tables_of_their_own(center):
    metric = LocalDiagonalMetric(center + plane(1500), 1.0, 1.0)
    assert not pickle.loads(pickle.dumps(metric)).is_tabulated
    metric = metric.tabulated()
    copy = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(metric))))
    tables = metric.centred()[0]._table, copy.centred()[0]._table
    for own, other in zip(*tables, strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.fixture(scope="module", params=[nearby, tabulated])
def arc(request):
    """A metric of many data in full and in another form, and points on its arc."""
    data = land.datasets.make_half_ellipse(2000, n_centers=None, random_state=0)
    metrics = [make(data, 0.15, 0.01) for make in (full, request.param)]
    order = np.argsort(np.linalg.norm(data - [0.0, 1.5], axis=1))
    # Not far away: every doubling of the mesh is another compilation.
    return *metrics, data[order[0]], data[order[100:600:100]]


def test_the_equation_is_the_same(arc):
    everything, other, _, points = arc
    rng = np.random.default_rng(0)
    ways = rng.standard_normal(points.shape)
    fields, field_ways = rng.standard_normal((2, len(points), 2, 2))
    evaluate = jax.jit(jacobi_acceleration)
    with jax.enable_x64(True):
        expected = evaluate(everything, points, ways, fields, field_ways)
        found = evaluate(other, points, ways, fields, field_ways)
        tensors = jax.jit(acceleration_and_tensor)(other, points, ways)[1]
    slack = 1e-6 if other.is_tabulated else 1e-9  # fields need second derivatives
    for part, exact in zip(found, expected, strict=True):
        np.testing.assert_allclose(part, exact, rtol=slack, atol=slack)
    np.testing.assert_array_equal(tensors, found[2])


@pytest.mark.slow
def test_maps_are_the_same(arc):
    everything, other, base, points = arc
    logs = [land.log_map(metric, base, points) for metric in (everything, other)]
    for found in logs:
        assert found.converged.all()
    np.testing.assert_allclose(logs[1].lengths, logs[0].lengths, rtol=2e-6)
    exps = [
        land.exp_map(metric, base, 0.3 * logs[0].tangents)
        for metric in (everything, other)
    ]
    np.testing.assert_array_equal(exps[1].n_steps, exps[0].n_steps)
    np.testing.assert_allclose(exps[1].points, exps[0].points, rtol=0, atol=1e-8)


@pytest.mark.nightly
def test_constants_are_the_same(arc):
    everything, other, base, _ = arc
    values = [
        land.log_constant(metric, base, 0.05 * np.eye(2), n_samples=32, random_state=0)
        for metric in (everything, other)
    ]
    assert values[1].value == pytest.approx(values[0].value, abs=1e-8)


def test_similar_metrics_share_a_compilation(count_compilations):
    counts = count_compilations("""
for n, sigma in ((9000, 1.0), (9100, 1.1), (9500, 0.9)):
    data = (n / 3.0) ** 0.5 * np.random.default_rng(n).random((n, 2))
    metric = land.metrics.LocalDiagonalMetric(data, sigma, 1.0)
    assert type(metric._sums).__name__ == "Blocks"
    counts[n] = count(land.exp_map, metric, data[0], np.eye(2))
""")
    first, *others = (sum(each.values()) for each in counts.values())
    assert first >= 1
    assert others == [0, 0]
