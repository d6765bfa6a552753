"""Fits against what is known: flat space, moments, differences of the objective."""

import dataclasses

import numpy as np
import pytest

import land
from land.fitting import COVARIANCE_TYPES, FitProblem, FitSettings, fit_one
from land.fitting import descent as fitting_descent
from land.fitting import gradient as fitting_gradient
from land.fitting import problem as fitting_problem
from land.fitting.descent import MeanSearch, advance
from land.fitting.gradient import mean_gradients
from land.fitting.least_squares import intrinsic_mean
from land.fitting.precision import solve_precision
from land.metrics import EuclideanMetric, FunctionMetric, LocalDiagonalMetric


def problem_for(metric, data, **settings):
    defaults = {"volume": "paper", "n_samples": 1000, "seed": 0} | settings
    return FitProblem(metric, data, **defaults)


def uniform(problem):
    return np.full(len(problem.data), 1.0 / len(problem.data))


@pytest.fixture
def flat():
    shape, center = np.array([[1.0, 0.3], [0.0, 0.5]]), np.array([3.0, -1.0])
    data = center + np.random.default_rng(0).normal(size=(60, 2)) @ shape
    return problem_for(EuclideanMetric(2), data)


@pytest.fixture
def arc():
    data = land.datasets.make_half_ellipse(random_state=0)
    return problem_for(LocalDiagonalMetric(data, sigma=0.3, rho=1e-3), data)


@pytest.mark.parametrize("weighted", [False, True])
def test_least_squares_in_flat_space_is_mean_and_covariance(flat, weighted):
    rng = np.random.default_rng(1)
    weights = rng.uniform(size=60) if weighted else np.ones(60)
    weights /= weights.sum()
    settings = FitSettings(method="least_squares", tol=1e-8)
    estimate, converged = fit_one(flat, weights, np.zeros(2), settings, rng)
    assert converged
    mean = weights @ flat.data
    np.testing.assert_allclose(estimate.mean, mean, atol=1e-6)
    truth = np.cov(flat.data.T, aweights=weights)
    np.testing.assert_allclose(estimate.covariance, truth, rtol=1e-4, atol=1e-5)


def test_the_intrinsic_mean_is_where_tangents_cancel_and_found_in_few_steps(arc):
    """Steps of the mean tangent alone, shortened where they fail, take twenty."""
    start, weights = np.array([2.5, 0.8]), uniform(arc)
    mean, logs, converged = intrinsic_mean(arc, weights, start, 100, 1e-5)
    assert converged
    balance = weights @ logs.tangents
    spread = np.sqrt(weights @ logs.lengths**2)
    assert np.sqrt(arc.metric.inner(mean, balance, balance)) < 1e-5 * spread
    assert arc.work.log_maps <= 10 * len(arc.data)
    nearby = mean + 0.02 * np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    for rival in arc.log_maps(list(nearby)):
        assert weights @ rival.lengths**2 > spread**2


def test_the_intrinsic_mean_is_found_to_more_digits_than_lengths_have(arc):
    """The fall of the variance is hidden by errors of lengths; the gradient is not."""
    start, weights = np.array([2.5, 0.8]), uniform(arc)
    *_, converged = intrinsic_mean(arc, weights, start, 100, 1e-6)
    assert converged
    assert arc.work.log_maps <= 12 * len(arc.data)


@pytest.mark.parametrize("sizes", [(100,), (100, 200), (100, 300)])
def test_least_squares_of_many_data_begins_with_samples(monkeypatch, sizes):
    data = np.random.default_rng(0).normal(size=(500, 2)) @ np.diag([2.0, 0.5])
    monkeypatch.setattr(fitting_problem, "_MANY_DATA", 300)
    monkeypatch.setattr(fitting_problem, "_THINNED_DATA", sizes)
    problem = problem_for(EuclideanMetric(2), data)
    settings, rng = FitSettings(method="least_squares"), np.random.default_rng(1)
    start = np.array([1.0, 1.0])
    estimate, converged = fit_one(problem, uniform(problem), start, settings, rng)
    assert converged
    np.testing.assert_allclose(estimate.mean, data.mean(axis=0), atol=1e-6)
    # Two evaluations of each sample, and two of all data; half of them is no sample.
    assert problem.work.log_maps == 2 * sum({*sizes} - {300}) + 2 * 500


@pytest.mark.parametrize("init", ["least_squares", "random", np.zeros(2)])
def test_maximum_likelihood_in_flat_space_is_the_normal_distribution(flat, init):
    rng = np.random.default_rng(1)
    weights = rng.uniform(size=60)
    weights /= weights.sum()
    estimate, converged = fit_one(flat, weights, init, FitSettings(tol=1e-8), rng)
    assert converged
    np.testing.assert_allclose(estimate.mean, weights @ flat.data, atol=1e-3)
    truth = np.cov(flat.data.T, aweights=weights, bias=True)
    np.testing.assert_allclose(estimate.covariance, truth, rtol=1e-3, atol=1e-4)


def test_precision_step_matches_moments_from_any_start(arc):
    (best,) = arc.profile([np.array([0.0, 1.4])], [uniform(arc)])
    terms = best.nodes.log_weights + best.nodes.log_volumes
    vectors = best.nodes.tangents
    terms = terms - 0.5 * np.einsum("ni,ij,nj->n", vectors, best.precision, vectors)
    weights = np.exp(terms - terms.max())
    model = (weights[:, None] * vectors).T @ vectors / weights.sum()
    data = arc.second_moment(best.logs, uniform(arc))
    np.testing.assert_allclose(model, data, rtol=1e-5, atol=1e-6)
    for scale in (0.1, 10.0):
        other = solve_precision(
            data, best.nodes, scale * best.precision, COVARIANCE_TYPES["full"]
        )
        np.testing.assert_allclose(other, best.precision, rtol=1e-5)


FULL = FunctionMetric(
    lambda x: np.array([[2.0, 0.5], [0.5, 1.0]]) * (1.0 + 0.2 * x @ x), dim=2
)


@pytest.mark.parametrize("kind", ["learned", "full"])
def test_mean_gradient_is_the_derivative_of_the_objective(arc, kind):
    mean = np.array([0.6, 1.35])
    if kind == "learned":
        problem = problem_for(arc.metric, arc.data, n_samples=6000, tol=1e-7)
    else:
        problem = problem_for(FULL, 0.3 * arc.data, n_samples=6000, tol=1e-7)
    weights = np.random.default_rng(2).uniform(size=len(arc.data))
    weights /= weights.sum()
    (at,) = problem.profile([mean], [weights])
    (gradient,), (frame,) = mean_gradients(problem, [at], [weights])
    step = 2e-3
    for k, column in enumerate(frame.T):
        ends = [mean + step * column, mean - step * column]
        logs = problem.log_maps(ends, [at.logs, at.logs])
        ahead, behind = problem.evaluate(ends, 2 * [at.covariance], 2 * [weights], logs)
        slope = (ahead.objective - behind.objective) / (2.0 * step)
        # Both are differences: their steps allow one per cent.
        assert gradient[k] == pytest.approx(slope, rel=0.01, abs=0.005)
        assert abs(slope) > 0.02  # a gradient of zero would be no test


def test_several_searches_do_not_disturb_each_other(arc):
    weights = uniform(arc)
    means = [np.array([0.6, 1.35]), np.array([-1.0, 1.3])]
    together = [MeanSearch(each, weights) for each in arc.profile(means, 2 * [weights])]
    advance(arc, together, 1e-4)
    for mean, search in zip(means, together, strict=True):
        alone = MeanSearch(arc.profile([mean], [weights])[0], weights)
        advance(arc, [alone], 1e-4)
        np.testing.assert_allclose(alone.estimate.mean, search.estimate.mean, atol=1e-3)


def test_gradients_are_the_same_a_few_curves_at_a_time(arc, monkeypatch):
    weights = uniform(arc)
    estimates = arc.profile([np.array([1.0, 1.35])], [weights])
    (expected,), _ = mean_gradients(arc, estimates, [weights])
    monkeypatch.setattr(fitting_gradient, "_AT_ONCE", 130)
    (found,), _ = mean_gradients(arc, estimates, [weights])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_a_search_that_cannot_move_asks_for_its_gradient_once(arc, monkeypatch):
    weights, calls, trials = uniform(arc), [], []

    def count(*arguments):
        calls.append(arguments)
        return mean_gradients(*arguments)

    def uphill(problem, searches, steps):
        trials.append(steps)
        at = searches[0].estimate
        return [(dataclasses.replace(at, objective=at.objective + 1e6), np.eye(2))]

    monkeypatch.setattr(fitting_descent, "mean_gradients", count)
    monkeypatch.setattr(fitting_descent, "_try_steps", uphill)
    search = MeanSearch(arc.profile([np.array([1.0, 1.35])], [weights])[0], weights)
    search.fresh = False  # it believes to know the curvature
    advance(arc, [search], 1e-4)
    assert not search.converged
    advance(arc, [search], 1e-4)
    assert search.converged
    assert len(calls) == 1
    # Two trials that leave nothing to hope for, and not all that are allowed.
    assert len(trials) == 4 < 2 * arc.trials


def test_steps_of_the_default_never_increase_the_objective(arc):
    weights = uniform(arc)
    search = MeanSearch(arc.profile([np.array([1.0, 1.35])], [weights])[0], weights)
    objectives = [search.estimate.objective]
    for _ in range(4):
        advance(arc, [search], 1e-4)
        objectives.append(search.estimate.objective)
    assert np.all(np.diff(objectives) <= 0.0)
    assert objectives[-1] < objectives[0] - 0.1
