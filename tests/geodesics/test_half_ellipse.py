"""The paper's workload: 300 log maps along a half-ellipse, rho = 1e-3."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial import KDTree

import land

TOL = 1e-6  # the default of log_map, stated because the tests below reckon with it


@pytest.fixture(
    scope="module",
    params=[pytest.param(0.3, marks=pytest.mark.nightly), 0.1],
    ids="sigma={}".format,
)
def solved(request, half_ellipse, half_ellipse_metric, on_the_arc):
    """All targets from one base: as a user gets them, and much refined."""
    metric = half_ellipse_metric(request.param)
    found = land.log_map(metric, on_the_arc, half_ellipse)
    refined = land.log_map(metric, on_the_arc, half_ellipse, tol=1e-8)
    return SimpleNamespace(
        metric=metric,
        base=on_the_arc,
        targets=half_ellipse,
        found=found,
        refined=refined,
    )


def test_lengths_and_tangents_agree_with_a_refined_solution(solved):
    assert solved.found.converged.all()
    assert solved.refined.converged.all()
    np.testing.assert_allclose(
        solved.found.lengths, solved.refined.lengths, rtol=1e-4, atol=0.0
    )
    errors = np.linalg.norm(solved.found.tangents - solved.refined.tangents, axis=1)
    # The tolerance holds for an estimate of the error; grant the estimate a factor.
    sizes = np.linalg.norm(solved.refined.tangents, axis=1)
    assert np.max(errors / sizes) < 5 * TOL


def test_no_other_start_finds_a_curve_one_percent_shorter(solved):
    best = solved.found.lengths.copy()
    for curves in other_starts(solved):
        other = land.log_map(solved.metric, solved.base, solved.targets, curves=curves)
        # Lengths count only where they are those of a geodesic to this target.
        best[other.converged] = np.minimum(best, other.lengths)[other.converged]
        assert other.converged.mean() > 0.9
    assert np.max(solved.found.lengths / best) < 1.01


def other_starts(solved):
    """Straight lines, and the curves to the three nearest targets."""
    times = np.linspace(0.0, 1.0, 33)[:, None]
    yield solved.base + times * (solved.targets - solved.base)[:, None]
    _, nearest = KDTree(solved.targets).query(solved.targets, k=4)
    for rank in (1, 2, 3):
        yield solved.found.curves[nearest[:, rank]]


def test_exp_returns_where_log_came_from_wherever_that_is_well_conditioned(solved):
    """Exp(Log(x)) = x to 1e-3, as far as the tangent determines the point.

    A tangent is right to TOL relative, so Exp may miss by about
    TOL |v| |DExp(v)|: where that is below a quarter of 1e-3 we call the
    geodesic well-conditioned. DExp is the norm that `exp_jacobian` gives.
    """
    found = solved.found
    miss, expected = miss_and_bound(solved, found.tangents, TOL, exp_tol=1e-7)
    well = expected < 0.25e-3
    # Not an empty statement, even where neighbouring geodesics part by 1e4.
    assert well.sum() > 100
    assert np.max(miss[well]) < 1e-3
    # Nor is the criterion: elsewhere too the miss is what conditioning allows.
    assert np.all(miss < 5 * expected + 1e-6)


def test_exp_returns_everywhere_when_the_tangents_are_sharper(solved):
    """A hundred times sharper, every one of the 300 geodesics is well-conditioned."""
    tangents = solved.refined.tangents
    miss, expected = miss_and_bound(solved, tangents, 0.01 * TOL, exp_tol=1e-9)
    assert np.max(expected) < 5e-3
    assert np.max(miss) < 1e-3


def miss_and_bound(solved, tangents, tol, exp_tol):
    """Distances from Exp(v) to the targets, and what an error of `tol` explains."""
    arrived = land.exp_map(solved.metric, solved.base, tangents, tol=exp_tol)
    assert arrived.converged.all()
    # The size of DExp decides, a few digits of it suffice.
    rough = land.exp_jacobian(solved.metric, solved.base, tangents, tol=1e-4)
    assert rough.converged.all()
    stretch = np.linalg.norm(rough.jacobians, ord=2, axis=(1, 2))
    miss = np.linalg.norm(arrived.points - solved.targets, axis=1)
    return miss, tol * np.linalg.norm(tangents, axis=1) * stretch
