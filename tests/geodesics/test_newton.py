"""Newton's method, DExp along known curves, and geodesics that follow neighbours."""

import dataclasses
from functools import partial

import numpy as np
import pytest

import land
from land._device import in_lockstep
from land.geodesics.collocation import fit_polylines
from land.geodesics.equation import linearised
from land.geodesics.newton import finish_curves

SMALLEST = 1e-6


@pytest.fixture(scope="module")
def metric(half_ellipse_metric):
    return half_ellipse_metric(0.3)


@pytest.fixture(scope="module")
def many():
    return land.datasets.make_half_ellipse(300, n_centers=None, random_state=7)


@pytest.fixture(params=[(1, 2, "diagonal"), (-1, 3, "full"), (1, 2, "sheared")])
def space(request, space_form):
    return space_form(*request.param)


def test_determinants_are_those_of_the_formula(space):
    rng = np.random.default_rng(3)
    base = space.draw_base(rng)
    tangents = space.draw_tangents(rng, base, 20)
    logs = land.log_map(space.metric, base, space.exp(base, tangents))
    found = logs.log_dets
    np.testing.assert_allclose(np.exp(found), space.exp_det(base, tangents), rtol=1e-5)


def test_determinants_are_those_of_integration(metric, on_the_arc, half_ellipse):
    """Integration needs the tangents to more digits than a log map gives by default."""
    logs = land.log_map(metric, on_the_arc, half_ellipse)
    exact = land.log_map(metric, on_the_arc, half_ellipse, curves=logs, tol=1e-11)
    expected = land.exp_log_det(metric, on_the_arc, exact.tangents, tol=1e-11)
    assert logs.converged.all()
    np.testing.assert_allclose(logs.log_dets, expected, atol=1e-4)


def test_determinants_keep_the_axes_and_know_of_rest_and_failure(metric, half_ellipse):
    targets = half_ellipse[:4].reshape(2, 2, 2)
    logs = land.log_map(metric, half_ellipse[0], targets)
    assert logs.log_dets.shape == (2, 2)
    assert logs.log_dets[0, 0] == pytest.approx(0.0, abs=1e-12)  # the base itself
    logs._solution.converged[3] = False
    failed = dataclasses.replace(logs).log_dets
    np.testing.assert_array_equal(np.isnan(failed), [[False, False], [False, True]])


def test_conjugate_points_are_seen(space_form):
    """Around the sphere the long way is a geodesic, but not the shortest."""
    space = space_form(1, 2, "diagonal")
    base, way = np.array([0.6, 0.0]), np.array([0.0, 1.0])
    length = np.pi + 0.5
    way = way * length / space.norm(base, way)
    times = np.linspace(0.0, 1.0, 65)
    curve = np.concatenate([base[None], space.exp(base, times[1:, None] * way)])
    logs = land.log_map(
        space.metric, base, curve[-1:], curves=curve[None], max_iter=1, n_segments=8
    )
    rates, widths = fit_polylines(curve[None], times[None], 8)
    done = finish(space.metric, base[None], curve[-1:], rates, widths)
    assert done.found.all()
    np.testing.assert_allclose(done.tangents[0], way, rtol=1e-6, atol=1e-9)
    assert not done.minimal.any()
    assert not (logs.converged & (logs.lengths > 3.2)).any()


def finish(metric, bases, targets, rates, widths):
    solver = finish_curves(bases, targets, rates, widths, SMALLEST)
    return in_lockstep(partial(linearised, metric), [solver])[0]


def test_geodesics_of_several_bases_are_each_in_its_place(metric, many):
    """In any order."""
    two, targets, count = many[[7, 3]], many, len(many)
    which = np.random.default_rng(0).permutation(np.repeat([0, 1], count))
    places = np.concatenate([np.flatnonzero(which == k) for k in (0, 1)])
    order = np.empty(2 * count, dtype=int)
    order[places] = np.tile(np.arange(count), 2)
    mixed = land.log_map(metric, two[which], targets[order])
    for k in (0, 1):
        alone = land.log_map(metric, two[k], targets)
        own = mixed.lengths[which == k]
        np.testing.assert_allclose(own, alone.lengths, rtol=1e-2)


def test_a_neighbour_that_knows_a_shorter_way_is_heard():
    """Two ways around a circle: where one ends, the other begins."""
    data = land.datasets.make_circle(300, random_state=0)
    metric = land.metrics.LocalDiagonalMetric(data, sigma=0.3, rho=1e-2)
    angles = np.linspace(0.8 * np.pi, 1.2 * np.pi, 81)
    targets = np.column_stack([np.cos(angles), np.sin(angles)])
    base = np.array([1.0, 0.0])
    found = land.log_map(metric, base, targets)
    assert found.converged.all()
    # Each as long as the shorter of the two ways, which are tried one by one.
    both = []
    for side in (1.0, -1.0):
        turns = np.linspace(0.0, 1.0, 33)[:, None]
        ends = angles if side > 0 else angles - 2.0 * np.pi
        arcs = turns * ends
        curves = np.stack([np.cos(arcs), np.sin(arcs)], axis=-1).transpose(1, 0, 2)
        both.append(land.log_map(metric, base, targets, curves=curves).lengths)
    np.testing.assert_allclose(found.lengths, np.minimum(*both), rtol=3e-3)


def test_a_small_move_takes_one_step(metric, on_the_arc, half_ellipse):
    """The Jacobi fields predict where the geodesics go; Newton's method confirms it."""
    before = land.log_map(metric, on_the_arc, half_ellipse)
    moved = on_the_arc + np.array([1e-3, -1e-3])
    after = land.log_map(metric, moved, half_ellipse, curves=before)
    assert after.converged.all()
    assert np.mean(after.n_iter == 1) > 0.9
    fresh = land.log_map(metric, moved, half_ellipse, tol=1e-9)
    np.testing.assert_allclose(after.lengths, fresh.lengths, rtol=2e-6)
    errors = np.linalg.norm(after.tangents - fresh.tangents, axis=1)
    assert np.all(errors <= 1e-5 * np.linalg.norm(fresh.tangents, axis=1))


@pytest.mark.parametrize("end", ["base", "target"])
def test_fields_are_derivatives_of_the_curves(metric, on_the_arc, half_ellipse, end):
    targets = half_ellipse[np.argsort(half_ellipse[:, 0])[[0, 100, 290]]]
    first = land.log_map(metric, on_the_arc, targets, tol=1e-9)
    exact = land.log_map(metric, on_the_arc, targets, tol=1e-9, curves=first)
    step = 1e-4 * np.array([1.0, -0.7])
    shift = {"base": (step, 0.0), "target": (0.0, step)}[end]
    bases = np.tile(on_the_arc + shift[0], (3, 1))
    later = land.log_map(metric, bases[0], targets + shift[1], curves=exact, tol=1e-9)
    for (which, curves), (again, others) in zip(
        exact._solution.final_meshes(), later._solution.final_meshes(), strict=True
    ):
        np.testing.assert_array_equal(which, again)
        predicted = curves.moved(bases[which], (targets + shift[1])[which])
        change = np.abs(others.rates - curves.rates).max()
        assert np.abs(predicted - others.rates).max() < 1e-2 * change
