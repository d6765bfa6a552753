"""Whatever a user hands to the maps by mistake is answered by a ValueError.

It names the argument, what was expected and what came. What makes an array of points is
looked at in `test_validation.py`; here, that every argument is.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import land
from land.metrics import EuclideanMetric, FunctionMetric

PLANE, ZERO, ROWS = EuclideanMetric(2), np.zeros(2), np.ones((3, 2))
MAPS = {
    land.exp_map: "tangents",
    land.exp_log_det: "tangents",
    land.exp_jacobian: "tangents",
    land.log_map: "points",
}
each_map = pytest.mark.parametrize("map_", MAPS, ids=lambda map_: map_.__name__)
BAD_ROWS = [
    (np.ones((3, 3)), "must have 2 coordinates.*got 3"),
    ([[0.0, np.inf], [-np.inf, 0.0]], "must be finite, got 2 NaN"),
    (1.0, r"must have at least one axis.*got shape \(\)"),
]


@each_map
@pytest.mark.parametrize(("value", "what"), BAD_ROWS)
def test_bad_rows(map_, value, what):
    with pytest.raises(ValueError, match=f"^{MAPS[map_]} {what}"):
        map_(PLANE, ZERO, value)
    with pytest.raises(ValueError, match=f"^base {what}"):
        map_(PLANE, value, ROWS)


@each_map
def test_arguments_that_do_not_go_together(map_):
    name = MAPS[map_]
    with pytest.raises(ValueError, match=rf"base .*{name} \(4, 2\), got \(3, 2\)"):
        map_(PLANE, np.zeros((3, 2)), np.zeros((4, 2)))
    with pytest.raises(ValueError, match=r"^base must not be empty"):
        map_(PLANE, np.empty((0, 2)), ROWS)
    for tol in (0.0, np.nan, "small"):
        with pytest.raises(ValueError, match=r"^tol must be .*positive.*, got"):
            map_(PLANE, ZERO, ROWS, tol=tol)
    for metric in (None, EuclideanMetric, lambda x: x):
        with pytest.raises(ValueError, match=r"^metric must be an instance of"):
            map_(metric, ZERO, ROWS)


@pytest.mark.parametrize("count", [0, 2.5, "many", True])
def test_bad_counts(count):
    for map_ in (land.exp_map, land.exp_log_det, land.exp_jacobian):
        with pytest.raises(ValueError, match=r"^max_steps must be .*, got"):
            map_(PLANE, ZERO, ROWS, max_steps=count)
    for name in ("max_iter", "n_segments"):
        with pytest.raises(ValueError, match=f"^{name} must be .*, got"):
            land.log_map(PLANE, ZERO, ROWS, **{name: count})
    with pytest.raises(ValueError, match=r"^max_iter must be .*, got"):
        land.geodesic(PLANE, ZERO, ROWS[0], max_iter=count)


@pytest.mark.parametrize("times", [[-0.1, 0.5], [1.1], [np.nan], [[0.5]], 0.5, []])
def test_bad_times(times):
    with pytest.raises(ValueError, match=r"^times must"):
        land.exp_map(PLANE, ZERO, ROWS, times=times)
    if times in ([-0.1, 0.5], [1.1], [np.nan]):
        with pytest.raises(ValueError, match=r"^times must"):
            land.geodesic(PLANE, ZERO, ROWS[0])(times)


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
        land.log_map(PLANE, ZERO, ROWS, curves=curves)


@pytest.mark.parametrize("name", ["start", "end"])
def test_bad_ends(name):
    for value, what in ((np.ones(3), "2 coord.*got 3"), (ROWS[:1], "1 axes.*shape")):
        arguments = {"start": ZERO, "end": np.ones(2)} | {name: value}
        with pytest.raises(ValueError, match=f"^{name} must have {what}"):
            land.geodesic(PLANE, **arguments)


def indefinite(x):
    """Positive definite for |x_0| < 1 only."""
    return jnp.array([1.0, 1.0 - x[0] ** 2])


def indefinite_matrix(x):
    return jnp.array([[1.0, x[0]], [x[0], 1.0]])


def undefined(x):
    return jnp.sqrt(1.0 - x[0] ** 2) * jnp.ones(2)


@pytest.mark.parametrize("fn", [indefinite, indefinite_matrix, undefined])
def test_places_without_a_metric_are_refused(fn):
    """There is a metric at the origin, and none at (2, 0)."""
    metric, good, bad = FunctionMetric(fn, dim=2), ZERO, np.array([2.0, 0.0])
    for map_ in MAPS:
        with pytest.raises(ValueError, match=r"definite, but at base\[0\] = \[2"):
            map_(metric, bad, [good])
    with pytest.raises(ValueError, match=r"positive definite, but at points\[1\]"):
        land.log_map(metric, good, [good, bad])
    with pytest.raises(ValueError, match=r"positive definite, but at start\b"):
        land.geodesic(metric, bad, good)
    with pytest.raises(ValueError, match=r"positive definite, but at end\b"):
        land.geodesic(metric, good, bad)


@each_map
def test_a_tensor_that_is_not_symmetric_is_refused(map_):
    metric = FunctionMetric(lambda x: jnp.array([[1.0, 0.5], [0.0, 1.0]]), dim=2)
    with pytest.raises(ValueError, match="symmetric"):
        map_(metric, ZERO, ROWS)
