"""Fits against what is known: flat space, moments, and the paper's own optimizer."""

import numpy as np
import pytest

import land
from land.fitting import (
    FitProblem,
    fit_as_in_paper,
    fit_least_squares,
    fit_maximum_likelihood,
)
from land.fitting.precision import solve_precision
from land.metrics import EuclideanMetric, LocalDiagonalMetric


def problem_for(metric, data, **settings):
    weights = np.full(len(data), 1.0 / len(data))
    defaults = {"volume": "paper", "n_samples": 1000, "seed": 0} | settings
    return FitProblem(metric, data, weights, **defaults)


@pytest.fixture(scope="module")
def flat():
    shape, center = np.array([[1.0, 0.3], [0.0, 0.5]]), np.array([3.0, -1.0])
    data = center + np.random.default_rng(0).normal(size=(60, 2)) @ shape
    return problem_for(EuclideanMetric(2), data)


def test_least_squares_in_flat_space_is_mean_and_covariance(flat):
    estimate, converged = fit_least_squares(flat, np.zeros(2), 100, 1e-8)
    assert converged
    np.testing.assert_allclose(estimate.mean, flat.data.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(estimate.covariance, np.cov(flat.data.T), rtol=1e-4)


def test_maximum_likelihood_in_flat_space_is_the_normal_distribution(flat):
    start = flat.profile(np.zeros(2))
    estimate, converged = fit_maximum_likelihood(flat, [start], 50, 1e-8)
    assert converged
    np.testing.assert_allclose(estimate.mean, flat.data.mean(axis=0), atol=0.01)
    truth = np.cov(flat.data.T, bias=True)
    np.testing.assert_allclose(estimate.covariance, truth, rtol=1e-3, atol=1e-4)


@pytest.fixture(scope="module")
def arc():
    data = land.datasets.make_half_ellipse(random_state=0)
    return problem_for(LocalDiagonalMetric(data, sigma=0.3, rho=1e-3), data)


def test_precision_step_matches_moments_from_any_start(arc):
    mean = np.array([0.0, 1.4])
    best = arc.profile(mean)
    terms = best.nodes.log_weights + best.nodes.log_volumes
    vectors = best.nodes.tangents
    terms = terms - 0.5 * np.einsum("ni,ij,nj->n", vectors, best.precision, vectors)
    weights = np.exp(terms - terms.max())
    model = (weights[:, None] * vectors).T @ vectors / weights.sum()
    data = arc.second_moment(best.logs)
    np.testing.assert_allclose(model, data, rtol=1e-5, atol=1e-6)
    for scale in (0.1, 10.0):
        other = solve_precision(data, best.nodes, scale * best.precision)
        np.testing.assert_allclose(other, best.precision, rtol=1e-5)


@pytest.mark.slow
def test_default_is_no_worse_than_the_paper(arc):
    start, _ = fit_least_squares(arc, arc.data.mean(axis=0), 50, 1e-3)
    paper, _ = fit_as_in_paper(arc, start, 30, 1e-8)
    improved = arc.profile(start.mean, near=start.logs)
    ours, _ = fit_maximum_likelihood(arc, [improved], 30, 1e-4)
    assert paper.objective < start.objective
    assert ours.objective <= paper.objective + 1e-3
    objectives = [step.objective for step in arc.history[-5:]]
    assert np.all(np.isfinite(objectives))


def test_steps_of_the_default_never_increase_the_objective(arc):
    arc.history.clear()
    fit_maximum_likelihood(arc, [arc.profile(np.array([1.0, 1.35]))], 4, 1e-4)
    objectives = [step.objective for step in arc.history]
    assert len(objectives) > 1
    assert np.all(np.diff(objectives) <= 0.0)
