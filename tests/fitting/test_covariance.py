"""Types of covariances as linear spaces, and the precision step within them."""

from dataclasses import replace

import numpy as np
import pytest

import land
from land.fitting import COVARIANCE_TYPES, FitProblem
from land.fitting.profile import components_at, evaluate, profile, verify
from land.metrics import LocalDiagonalMetric

SIZES = {"full": 10, "diag": 4, "spherical": 1}
each_kind = pytest.mark.parametrize("name", SIZES)
MEAN = np.array([0.6, 1.35])


@pytest.fixture(scope="module")
def moment():
    """A positive definite matrix in four dimensions."""
    draws = np.random.default_rng(0).normal(size=(4, 9))
    return draws @ draws.T


@each_kind
def test_entries_are_coordinates(name, moment):
    kind = COVARIANCE_TYPES[name]
    entries = kind.entries(moment)
    assert len(entries) == kind.n_entries(4) == SIZES[name]
    member = kind.matrix(entries, 4)
    np.testing.assert_array_equal(kind.entries(member), entries)
    np.testing.assert_array_equal(kind.restrict(member), member)
    vectors = np.random.default_rng(1).normal(size=(7, 4))
    forms = np.einsum("ni,ij,nj->n", vectors, member, vectors)
    np.testing.assert_allclose(kind.products(vectors) @ entries, forms)


@pytest.fixture(scope="module", params=["full", "diag"])
def profiled(request):
    """The best covariance of a type at a mean on a learned metric."""
    data = land.datasets.make_half_ellipse(60, random_state=0)
    metric = LocalDiagonalMetric(data, sigma=0.5, rho=0.3)
    weights = np.full(60, 1.0 / 60)
    kind = COVARIANCE_TYPES[request.param]
    settings = {"covariance_type": kind, "n_samples": 3000, "tail": 1e-5}
    problem = FitProblem(metric, data, **settings)
    (estimate,) = profile(problem, components_at(problem, [MEAN], [weights]))
    return problem, estimate


def test_profiled_covariances_are_members(profiled):
    problem, estimate = profiled
    for matrix in (estimate.covariance, estimate.precision):
        np.testing.assert_array_equal(problem.covariance_type.restrict(matrix), matrix)


def test_no_member_nearby_has_a_lower_objective(profiled):
    problem, best = profiled
    kind = problem.covariance_type
    neighbours = []
    for row in np.eye(kind.n_entries(2)):
        for size in (0.1, -0.1):
            step = kind.matrix(size * row, 2)
            factor = np.linalg.cholesky(best.covariance)
            covariance = factor @ (np.eye(2) + step) @ factor.T
            neighbours.append(replace(best, covariance=covariance))
    # Second order in the step: curvatures are of order one.
    others = evaluate(problem, neighbours)
    rises = [other.objective - best.objective for other in others]
    assert min(rises) > 1e-4


def test_objective_is_that_of_the_public_constant(profiled):
    """The objective from log maps and `log_constant`, without a restricted moment."""
    problem, rough = profiled
    (best,) = verify(problem, [rough])
    constant = land.log_constant(
        problem.metric, MEAN, best.covariance, random_state=0, n_samples=6000
    )
    tangents = land.log_map(problem.metric, MEAN, problem.data).tangents
    forms = np.einsum("ni,ij,nj->n", tangents, best.precision, tangents)
    truth = 0.5 * best.weights @ forms + constant.value
    assert best.objective == pytest.approx(truth, abs=1e-3)
