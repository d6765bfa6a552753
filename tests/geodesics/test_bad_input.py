"""Whatever a user hands to the maps by mistake is answered by a ValueError.

It names the argument, what was expected and what came.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import land
from land.metrics import EuclideanMetric, FunctionMetric

PLANE = EuclideanMetric(2)
MAPS = {
    "tangents": [land.exp_map, land.exp_log_det, land.exp_jacobian],
    "points": [land.log_map],
}
EVERY = [(map_, name) for name, maps in MAPS.items() for map_ in maps]


@pytest.fixture(params=EVERY, ids=lambda pair: pair[0].__name__)
def map_and_name(request):
    """A map, and the name of its third argument."""
    return request.param


BAD_ROWS = [
    (np.ones((3, 3)), "must have 2 coordinates.*got 3"),
    (np.ones((3, 1)), "must have 2 coordinates.*got 1"),
    ([[np.nan, 0.0]], "must be finite, got 1 NaN"),
    ([[0.0, np.inf], [-np.inf, 0.0]], "must be finite, got 2 NaN"),
    (1.0, r"must have at least one axis.*got shape \(\)"),
    ([["a", "b"]], "must be an array of real numbers"),
]


@pytest.mark.parametrize(("value", "what"), BAD_ROWS)
def test_bad_rows(map_and_name, value, what):
    map_, name = map_and_name
    with pytest.raises(ValueError, match=f"^{name} {what}"):
        map_(PLANE, np.zeros(2), value)


@pytest.mark.parametrize(
    ("value", "what"), [*BAD_ROWS, (np.empty((0, 2)), "must not be empty")]
)
def test_bad_base(map_and_name, value, what):
    map_, _ = map_and_name
    with pytest.raises(ValueError, match=f"^base {what}"):
        map_(PLANE, value, np.zeros((3, 2)))


def test_bases_must_pair_with_rows(map_and_name):
    map_, name = map_and_name
    with pytest.raises(ValueError, match=rf"base .*{name} \(4, 2\), got \(3, 2\)"):
        map_(PLANE, np.zeros((3, 2)), np.zeros((4, 2)))


@pytest.mark.parametrize("tol", [0.0, -1e-6, np.nan, np.inf, "small", None])
def test_bad_tolerance(map_and_name, tol):
    map_, _ = map_and_name
    with pytest.raises(ValueError, match=r"^tol must be .*positive.*, got"):
        map_(PLANE, np.zeros(2), np.ones((3, 2)), tol=tol)


@pytest.mark.parametrize("count", [0, 2.5, "many", True])
@pytest.mark.parametrize(
    ("map_", "name"),
    [
        (land.exp_map, "max_steps"),
        (land.log_map, "max_iter"),
        (land.log_map, "n_segments"),
        (land.geodesic, "max_iter"),
    ],
)
def test_bad_counts(map_, name, count):
    ends = np.ones(2) if map_ is land.geodesic else np.ones((3, 2))
    with pytest.raises(ValueError, match=f"^{name} must be .*, got"):
        map_(PLANE, np.zeros(2), ends, **{name: count})


@pytest.mark.parametrize(
    "times", [[-0.1, 0.5], [0.5, 1.1], [np.nan], [[0.5]], 0.5, [], ["half"]]
)
def test_bad_times(times):
    with pytest.raises(ValueError, match=r"^times must"):
        land.exp_map(PLANE, np.zeros(2), np.ones((3, 2)), times=times)


@pytest.mark.parametrize("metric", [None, "flat", EuclideanMetric, lambda x: x])
def test_no_metric_at_all(map_and_name, metric):
    map_, _ = map_and_name
    with pytest.raises(ValueError, match=r"^metric must be an instance of"):
        map_(metric, np.zeros(2), np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"^metric must be an instance of"):
        land.geodesic(metric, np.zeros(2), np.ones(2))
    with pytest.raises(ValueError, match=r"^metric must be an instance of"):
        land.log_constant(metric, np.zeros(2), np.eye(2))


@pytest.mark.parametrize(
    ("curves", "what"),
    [
        (np.ones((3, 1, 2)), r"curves must have shape .*got \(3, 1, 2\)"),
        (np.ones((5, 2)), r"curves must have shape .*got \(5, 2\)"),
        (np.ones((3, 5, 3)), "curves must have 2 coordinates.*got 3"),
        (np.full((3, 5, 2), np.nan), "curves must be finite, got 30"),
    ],
)
def test_bad_curves(curves, what):
    with pytest.raises(ValueError, match=what):
        land.log_map(PLANE, np.zeros(2), np.ones((3, 2)), curves=curves)


@pytest.mark.parametrize("name", ["start", "end"])
@pytest.mark.parametrize(
    ("value", "what"),
    [
        (np.ones(3), "must have 2 coordinates.*got 3"),
        (np.ones((1, 2)), r"must have 1 axes.*got shape \(1, 2\)"),
        ([0.0, np.nan], "must be finite, got 1"),
    ],
)
def test_bad_ends(name, value, what):
    arguments = {"start": np.zeros(2), "end": np.ones(2)} | {name: value}
    with pytest.raises(ValueError, match=f"^{name} {what}"):
        land.geodesic(PLANE, **arguments)


def indefinite(x):
    """Positive definite for |x_0| < 1 only."""
    return jnp.array([1.0, 1.0 - x[0] ** 2])


def indefinite_matrix(x):
    return jnp.array([[1.0, x[0]], [x[0], 1.0]])


@pytest.fixture(
    params=[indefinite, indefinite_matrix],
    ids=lambda fn: fn.__name__,
)
def half_a_metric(request):
    """A metric at the origin, none at (2, 0)."""
    return FunctionMetric(request.param, dim=2)


def lopsided(x):
    return jnp.array([[1.0, 0.5], [0.0, 1.0]])


def test_a_tensor_that_is_not_symmetric_is_refused(map_and_name):
    map_, _ = map_and_name
    with pytest.raises(ValueError, match="symmetric"):
        map_(FunctionMetric(lopsided, dim=2), np.zeros(2), np.ones((3, 2)))


GOOD, BAD = np.zeros(2), np.array([2.0, 0.0])


def test_a_base_without_a_metric_is_refused(half_a_metric, map_and_name):
    map_, _ = map_and_name
    with pytest.raises(ValueError, match=r"positive definite, but at base\[0\] = \[2"):
        map_(half_a_metric, BAD, [GOOD])


def test_a_target_without_a_metric_is_refused(half_a_metric):
    # Named by its place among the points.
    with pytest.raises(ValueError, match=r"positive definite, but at points\[1\]"):
        land.log_map(half_a_metric, GOOD, [GOOD, BAD])
    with pytest.raises(ValueError, match=r"positive definite, but at start\b"):
        land.geodesic(half_a_metric, BAD, GOOD)
    with pytest.raises(ValueError, match=r"positive definite, but at end\b"):
        land.geodesic(half_a_metric, GOOD, BAD)
