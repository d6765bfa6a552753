"""Weighted means of tensors: the formula, closed forms, and laws of geodesics."""

import copy
import pickle

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import special_ortho_group

import land
from land.metrics import MixtureMetric

COUNT, SIGMA = 6, 0.7


def make(dim=2, full=True, seed=0):
    """Tensors whose axes have costs between 0.2 and 5 or so."""
    rng = np.random.default_rng(seed)
    frames = special_ortho_group.rvs(dim, COUNT, random_state=seed)
    costs = np.exp(rng.uniform(-1.6, 1.6, (COUNT, dim)))
    tensors = np.einsum("kij,kj,klj->kil", frames, costs, frames) if full else costs
    return MixtureMetric(1.5 * rng.standard_normal((COUNT, dim)), tensors, SIGMA)


def points_for(dim, n=30):
    return 2.0 * np.random.default_rng(1).standard_normal((n, dim))


@pytest.fixture(scope="module")
def plane():
    return make()


@pytest.fixture(scope="module")
def logs(plane):
    points = points_for(2)
    found = land.log_map(plane, points[0], points[1:])
    assert found.converged.all()
    return found


@pytest.mark.parametrize(("dim", "full"), [(1, True), (2, False), (3, True)])
def test_tensors_and_derivatives_are_those_of_weighted_means(dim, full, monkeypatch):
    metric, points = make(dim, full), points_for(dim)

    def formula(x):
        squares = jax.numpy.sum((x - metric.centers) ** 2, axis=1)
        weights = jax.numpy.exp(-squares / (2.0 * SIGMA**2))
        return jax.numpy.tensordot(weights / weights.sum(), metric.tensors, axes=1)

    @jax.jit
    def derivatives(points):
        slopes, bends = jax.jacfwd(formula), jax.jacfwd(jax.jacfwd(formula))
        return [jax.vmap(each)(points) for each in (formula, slopes, bends)]

    monkeypatch.setattr(MixtureMetric, "_at_once", 100)  # jets in several runs
    with jax.enable_x64(True):
        found = jax.jit(metric.jet_batch)(points)
        for order, (own, expected) in enumerate(
            zip(found, derivatives(points), strict=True)
        ):
            axes = range(-order, 0), range(1, 1 + order)
            expected = np.moveaxis(expected, *axes)
            np.testing.assert_allclose(own, expected, rtol=1e-10, atol=1e-11)
    tensors = np.asarray(found[0])
    tensors = tensors if full else tensors[:, :, None] * np.eye(dim)
    np.testing.assert_allclose(metric.tensor(points), tensors, rtol=1e-12)


def test_far_from_all_it_is_the_nearest(plane):
    way = plane.centers[0] - plane.centers[1:].mean(axis=0)
    far = 1e4 * way
    nearest = np.argmin(np.sum((plane.centers - far) ** 2, axis=1))
    np.testing.assert_array_equal(plane.tensor(far), plane.tensors[nearest])


@pytest.mark.parametrize("full", [False, True])
def test_one_tensor_makes_straight_lines(full):
    """Distances and geodesics of a constant metric are known."""
    other = make(2, full)
    metric = MixtureMetric(other.centers[:1], other.tensors[:1], SIGMA)
    base, *points = points_for(2)
    tensor = metric.tensor(base)
    logs = land.log_map(metric, base, points)
    ways = points - base
    expected = np.sqrt(np.einsum("ni,ij,nj->n", ways, tensor, ways))
    np.testing.assert_allclose(logs.lengths, expected, rtol=1e-10)
    np.testing.assert_allclose(logs.tangents, ways, rtol=0, atol=1e-9)
    ends = land.exp_map(metric, base, ways).points
    np.testing.assert_allclose(ends, points, rtol=0, atol=1e-9)
    dets = land.exp_log_det(metric, base, ways)
    np.testing.assert_allclose(dets, 0.0, rtol=0, atol=1e-9)


def test_geodesics_keep_their_speed(plane, logs):
    base = points_for(2)[0]
    times = np.linspace(0.0, 1.0, 9)[1:]
    speeds = []
    for time in times:
        there = land.exp_map(plane, base, time * logs.tangents)
        squares = plane.inner(there.points, there.velocities, there.velocities)
        speeds.append(np.sqrt(squares) / time)
    np.testing.assert_allclose(speeds, np.tile(logs.lengths, (8, 1)), rtol=1e-5)


def test_geodesics_have_the_least_energy(plane, logs):
    """Of polylines of 400 steps: another curve, without the geodesic equation."""
    base, *points = points_for(2)
    times = np.linspace(0.0, 1.0, 401)[:, None]

    def energy(inner, start, end):
        curve = jax.numpy.concatenate([start[None], inner.reshape(-1, 2), end[None]])
        steps = curve[1:] - curve[:-1]
        tensors = plane.tensor_batch(0.5 * (curve[1:] + curve[:-1]))
        products = jax.numpy.einsum("ti,tij,tj->", steps, tensors, steps)
        return 0.5 * len(steps) * products

    with jax.enable_x64(True):
        of_curve = jax.jit(jax.value_and_grad(energy))
        for k in range(0, len(points), 7):
            curve = land.geodesic(plane, base, points[k])(times[:, 0])
            start = curve[1:-1] + 0.05 * np.sin(5.0 * np.pi * times[1:-1])
            found = minimize(
                of_curve,
                start.ravel(),
                args=(base, points[k]),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": 5000, "maxfun": 5000, "ftol": 1e-15, "gtol": 1e-9},
            )
            assert found.fun == pytest.approx(0.5 * logs.lengths[k] ** 2, rel=2e-4)
            other = found.x.reshape(-1, 2)
            np.testing.assert_allclose(other, curve[1:-1], rtol=0, atol=5e-3)


@settings(max_examples=8)
@given(
    angle=st.floats(0.0, 2.0 * np.pi),
    factor=st.floats(1e-3, 1e3),
    shift=st.tuples(st.floats(-1e5, 1e5), st.floats(-1e5, 1e5)),
)
def test_turned_scaled_and_moved_nothing_changes(plane, logs, angle, factor, shift):
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])

    def moved(points):
        return factor * (points @ turn.T + shift)

    tensors = turn @ plane.tensors @ turn.T / factor**2
    other = MixtureMetric(moved(plane.centers), tensors, factor * SIGMA)
    base, *points = points_for(2)
    found = land.log_map(other, moved(base), moved(np.array(points)))
    np.testing.assert_allclose(found.lengths, logs.lengths, rtol=1e-6)
    expected = factor * logs.tangents @ turn.T
    size = np.abs(expected).max()
    np.testing.assert_allclose(found.tangents, expected, rtol=0, atol=1e-4 * size)


def test_diagonal_and_full_storage_agree():
    diagonal = make(3, full=False)
    full = MixtureMetric(
        diagonal.centers, diagonal.tensors[:, :, None] * np.eye(3), SIGMA
    )
    base, *points = points_for(3, 10)
    found, expected = (
        land.log_map(metric, base, points).lengths for metric in (diagonal, full)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_copies_are_equal(plane):
    points = points_for(2)
    assert repr(plane) == "MixtureMetric(6 centers, dim=2, sigma=0.7)"
    for other in (copy.deepcopy(plane), pickle.loads(pickle.dumps(plane))):
        np.testing.assert_array_equal(other.tensor(points), plane.tensor(points))


def test_a_model_brings_it_along_in_its_file(plane, tmp_path):
    X = points_for(2, 40)
    quick = {"method": "least_squares", "n_samples": 200, "random_state": 0}
    model = land.LAND(metric=plane, **quick).fit(X)
    model.save(tmp_path / "model")
    loaded = land.load(tmp_path / "model")
    assert isinstance(loaded.metric, MixtureMetric)
    expected = model.score_samples(X)
    np.testing.assert_array_equal(loaded.score_samples(X), expected)
    with pytest.raises(land.ModelFileError, match="leave out metric="):
        land.load(tmp_path / "model", metric=plane)


EYES = np.array([np.eye(2), np.eye(2)])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"centers": [[0.0, np.nan], [1.0, 1.0]]}, "centers must be finite"),
        ({"centers": [0.0, 1.0]}, "centers must have 2 axes"),
        ({"tensors": EYES[:1]}, r"tensors must have shape \(2, 2\) for diagonal ones"),
        ({"tensors": np.ones((2, 3))}, "tensors must have 2 coordinates"),
        ({"tensors": [[1.0, 1.0], [1.0, 0.0]]}, "tensors must be positive, got 0"),
        (
            {"tensors": EYES - [[[0, 0], [0, 0]], [[0, 2], [2, 0]]]},
            r"tensors\[1\] must",
        ),
        (
            {"tensors": np.add(EYES, [[0, 1], [0, 0]])},
            r"tensors\[0\] must be symmetric",
        ),
        ({"sigma": 0.0}, "sigma must be positive"),
    ],
)
def test_bad_input(changed, words):
    good = {"centers": [[0.0, 0.0], [1.0, 1.0]], "tensors": EYES, "sigma": 1.0}
    with pytest.raises(ValueError, match=words):
        MixtureMetric(**good | changed)
