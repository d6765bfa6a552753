"""Metrics from a user's function, and what is said to one that does not fit."""

import jax.numpy as jnp
import numpy as np
import pytest

from land.metrics import FunctionMetric


def test_functions_run_in_double_precision():
    """Also where the caller's JAX is in single precision, as it is by default."""
    seen = []

    def fn(x):
        seen.append(x.dtype)
        return 1.0 / (1.0 + 1e-12 * x)

    metric = FunctionMetric(fn, dim=1)
    assert metric.tensor([1.0])[0, 0] == pytest.approx(1.0 - 1e-12, abs=1e-15)
    assert set(seen) == {np.dtype(np.float64)}


def test_constants_may_be_numpy_arrays_of_any_kind():
    for constant in (np.array([1, 4]), np.array([1, 4], np.float32), jnp.array([1, 4])):
        metric = FunctionMetric(lambda x, c=constant: c, dim=2)
        tensor = metric.tensor([0.3, 0.4])
        assert tensor.dtype == np.float64
        np.testing.assert_array_equal(tensor, np.diag([1.0, 4.0]))


@pytest.mark.parametrize(
    ("value", "came"),
    [
        (jnp.ones(3), r"\(3,\)"),
        (1.0, r"\(\)"),
        (jnp.ones((2, 1)), r"\(2, 1\)"),
        (jnp.ones((2, 3)), r"\(2, 3\)"),
        (jnp.ones((2, 2, 2)), r"\(2, 2, 2\)"),
    ],
    ids=["too-long", "scalar", "column", "not-square", "three-axes"],
)
def test_a_wrong_shape_is_refused_at_once(value, came):
    message = rf"fn must return shape \(2,\).* or \(2, 2\).*got {came}"
    with pytest.raises(ValueError, match=message):
        FunctionMetric(lambda x: value, dim=2)


def numpy_inside(x):
    return np.exp(np.asarray(x))


def branch_on_the_value(x):
    return x if x[0] > 0 else 2.0 * x


def broken(x):
    return x / undefined_name  # noqa: F821


def forgot_to_return(x):
    x + 1.0


@pytest.mark.parametrize(
    "fn", [numpy_inside, branch_on_the_value, broken, forgot_to_return]
)
def test_a_function_that_cannot_be_traced_is_refused_with_a_remedy(fn):
    with pytest.raises(ValueError, match=r"(?s)fn could not be traced.*jax\.numpy"):
        FunctionMetric(fn, dim=2)


@pytest.mark.parametrize("fn", [None, 3.0, np.eye(2), "metric"])
def test_what_is_no_function_is_refused(fn):
    with pytest.raises(ValueError, match="fn must be callable, got"):
        FunctionMetric(fn, dim=2)


@pytest.mark.parametrize(
    ("landmarks", "what"),
    [
        (np.ones((3, 3)), "landmarks must have 2 coordinates.*got 3"),
        (np.ones(2), "landmarks must have 2 axes.*shape"),
        (np.empty((0, 2)), "landmarks must not be empty"),
        ([[0.0, np.nan]], "landmarks must be finite, got 1"),
    ],
)
def test_bad_landmarks_are_refused(landmarks, what):
    with pytest.raises(ValueError, match=what):
        FunctionMetric(lambda x: jnp.ones(2), 2, landmarks=landmarks)
