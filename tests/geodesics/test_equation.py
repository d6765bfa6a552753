"""The geodesic equation: ours against the one that is printed in the paper (Eq. 3).

    printed:  M v' = -1/2 grad_x (v^T M v)
    correct:  M v' =  1/2 grad_x (v^T M v) - (dM/dt) v

The printed one lacks a term (and with it the sign). It conserves speed all the same,
and it is right along straight lines from a centre of symmetry: these tests leave it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import land
from land.geodesics.equation import (
    accelerations,
    christoffel_symbols,
    linearised,
)


def printed_equation(metric, x, v):
    """Eq. 3 as printed: v' = -1/2 M^-1 [d vec M / dx]^T (v kron v)."""
    tensor, slopes = full_tensor_and_slopes(metric, x)
    columns = slopes.transpose(1, 0, 2).reshape(-1, len(x))  # d vec M / dx, (D^2, D)
    return -0.5 * np.linalg.solve(tensor, columns.T @ np.kron(v, v))


def complete_equation(metric, x, v):
    """The same pieces with the term that is missing."""
    tensor, slopes = full_tensor_and_slopes(metric, x)
    force = 0.5 * np.einsum("i,ijd,j->d", v, slopes, v)
    return np.linalg.solve(tensor, force - np.einsum("ijd,d,j->i", slopes, v, v))


def full_tensor_and_slopes(metric, x):
    """M at a point and its derivatives, (D, D) and (D, D, D), the last axis is dx."""
    with jax.enable_x64(True):
        tensor, slopes = _full_tensor_and_slopes(metric, x)
        return np.asarray(tensor), np.asarray(slopes)


@jax.jit
def _full_tensor_and_slopes(metric, x):
    def full(point):
        tensor = metric.tensor_at(point)
        return jnp.diag(tensor) if tensor.ndim == 1 else tensor

    return full(x), jax.jacfwd(full)(x)


def integrate(equation, metric, base, tangent):
    """Points and velocities at 33 times, by SciPy, to near rounding."""
    dim = len(base)

    def rates(_, state):
        x, v = state[:dim], state[dim:]
        return np.concatenate([v, equation(metric, x, v)])

    solved = solve_ivp(
        rates,
        (0.0, 1.0),
        np.concatenate([base, tangent]),
        method="DOP853",
        rtol=1e-9,
        atol=1e-11,
        t_eval=np.linspace(0.0, 1.0, 33),
    )
    assert solved.success
    return solved.y[:dim].T, solved.y[dim:].T


@pytest.fixture(
    params=[(1, 2, "diagonal"), (-1, 3, "sheared")], ids=["sphere", "sheared"]
)
def journey(request, space_form):
    """A space, a base off its centre, and a tangent across the line to the centre."""
    space = space_form(*request.param)
    rng = np.random.default_rng(3)
    base = space.draw_base(rng)
    tangent = rng.standard_normal(space.dim)
    inner = space.metric.inner
    tangent -= inner(base, tangent, base) / inner(base, base, base) * base
    return space, base, tangent / space.norm(base, tangent)


def test_the_printed_equation_misses_where_ours_arrives(journey):
    space, base, tangent = journey
    expected = space.exp(base, tangent)
    way = np.linalg.norm(expected - base)
    printed, _ = integrate(printed_equation, space.metric, base, tangent)
    complete, _ = integrate(complete_equation, space.metric, base, tangent)
    ours = land.exp_map(space.metric, base, [tangent]).points[0]
    assert np.linalg.norm(printed[-1] - expected) > 0.05 * way
    assert np.linalg.norm(complete[-1] - expected) < 1e-6 * way
    assert np.linalg.norm(ours - expected) < 1e-6 * way


def test_the_printed_equation_misses_on_a_learned_metric(half_ellipse_metric):
    metric = half_ellipse_metric(0.3)
    base, target = np.array([0.1, 1.5]), np.array([2.0, 1.2])
    tangent = land.log_map(metric, base, [target]).tangents[0]
    printed, velocities = integrate(printed_equation, metric, base, tangent)
    complete, _ = integrate(complete_equation, metric, base, tangent)
    assert np.linalg.norm(complete[-1] - target) < 1e-4
    assert np.linalg.norm(printed[-1] - target) > 0.05
    speeds = np.sqrt(metric.inner(printed, velocities, velocities))
    np.testing.assert_allclose(speeds, speeds[0], rtol=1e-5)


def test_accelerations_of_a_batch_are_those_of_the_equation(
    space_form, half_ellipse_metric
):
    rng = np.random.default_rng(5)
    for metric in (space_form(-1, 3, "sheared").metric, half_ellipse_metric(0.3)):
        points = 0.3 * rng.standard_normal((7, metric.dim))
        velocities = rng.standard_normal((7, metric.dim))
        found = accelerations(metric, points, velocities)
        expected = [
            complete_equation(metric, x, v)
            for x, v in zip(points, velocities, strict=True)
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_derivatives_of_the_equation_are_those_of_differences(
    space_form, half_ellipse_metric
):
    rng = np.random.default_rng(6)
    for metric in (space_form(-1, 3, "sheared").metric, half_ellipse_metric(0.3)):
        x = 0.3 * rng.standard_normal((5, metric.dim))
        v = rng.standard_normal((5, metric.dim))
        found = linearised(metric, x, v)
        direct = accelerations(metric, x, v)
        np.testing.assert_allclose(found.acceleration, direct, rtol=1e-9, atol=1e-9)
        for way, step in enumerate(1e-6 * np.eye(metric.dim)):
            for name, ahead, behind in (
                ("in_position", (x + step, v), (x - step, v)),
                ("in_velocity", (x, v + step), (x, v - step)),
            ):
                change = accelerations(metric, *ahead) - accelerations(metric, *behind)
                column = getattr(found, name)[:, :, way]
                scale = np.abs(getattr(found, name)).max()
                np.testing.assert_allclose(column, change / 2e-6, atol=1e-6 * scale)


def test_christoffel_symbols_make_accelerations(space_form):
    metric = space_form(-1, 3, "sheared").metric
    rng = np.random.default_rng(7)
    x, v = 0.3 * rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    symbols = christoffel_symbols(metric, x)
    np.testing.assert_allclose(symbols, symbols.swapaxes(2, 3), atol=1e-12)
    found = -np.einsum("nkij,ni,nj->nk", symbols, v, v)
    np.testing.assert_allclose(found, accelerations(metric, x, v), rtol=1e-9, atol=1e-9)
