"""Fits against what is known: flat space, moments, differences of the objective."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import land
from land.fitting import (
    COVARIANCE_TYPES,
    FitProblem,
    FitSettings,
    climb,
    fit_one,
    maximum_likelihood,
)
from land.fitting.covariance import solve_precision
from land.fitting.descent import Search, descend
from land.fitting.least_squares import Variance
from land.fitting.likelihood import Likelihood, local_model
from land.fitting.profile import (
    assemble,
    components_at,
    evaluate,
    move,
    profile,
    second_moment,
    verify,
)
from land.metrics import EuclideanMetric, FunctionMetric, LocalDiagonalMetric
from land.metrics.bandwidth import automatic_rho, automatic_sigma


def problem_for(metric, data, **settings):
    defaults = {"n_samples": 1000, "seed": 0} | settings
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
    data = land.datasets.make_half_ellipse(100, random_state=0)
    metric = LocalDiagonalMetric(data, sigma=0.4, rho=0.05).tabulated()
    return problem_for(metric, data)


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


def intrinsic_mean(problem, start, tol):
    variance = Variance(problem, uniform(problem))
    (spot,) = variance.evaluate([start], [])
    search = Search(spot, radius=0.5)
    descend(variance, [search], 100, tol, lambda spot: None)
    return search


def test_the_intrinsic_mean_is_where_tangents_cancel_and_found_in_few_steps(arc):
    search = intrinsic_mean(arc, np.array([2.5, 0.8]), 5e-6)
    assert search.converged
    weights, mean, logs = uniform(arc), search.spot.mean, search.spot.logs
    balance = weights @ logs.tangents
    spread = np.sqrt(weights @ logs.lengths**2)
    assert np.sqrt(arc.metric.inner(mean, balance, balance)) < 1e-5 * spread
    assert arc.work.log_maps <= 10 * len(arc.data)
    nearby = mean + 0.02 * np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    for other in arc.log_maps(list(nearby)):
        assert weights @ other.lengths**2 > spread**2


@pytest.mark.parametrize(("n", "sizes"), [(9000, (2000,)), (101_000, (2000, 50_000))])
def test_least_squares_of_many_data_begins_with_samples(n, sizes):
    data = np.random.default_rng(0).normal(size=(n, 2)) @ np.diag([2.0, 0.5])
    problem = problem_for(EuclideanMetric(2), data)
    settings, rng = FitSettings(method="least_squares"), np.random.default_rng(1)
    start = np.array([1.0, 1.0])
    estimate, converged = fit_one(problem, uniform(problem), start, settings, rng)
    assert converged
    np.testing.assert_allclose(estimate.mean, data.mean(axis=0), atol=1e-6)
    # Two evaluations of each sample, and two of all data.
    assert problem.work.log_maps == 2 * sum(sizes) + 2 * n


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
    (best,) = profile(arc, components_at(arc, [np.array([0.0, 1.4])], [uniform(arc)]))
    terms = best.nodes.log_weights + best.nodes.log_volumes
    vectors = best.nodes.tangents
    terms = terms - 0.5 * np.einsum("ni,ij,nj->n", vectors, best.precision, vectors)
    weights = np.exp(terms - terms.max())
    model = (weights[:, None] * vectors).T @ vectors / weights.sum()
    data = second_moment(arc, best.logs, uniform(arc))
    np.testing.assert_allclose(model, data, rtol=1e-5, atol=1e-6)
    for scale in (0.1, 10.0):
        other = solve_precision(
            data, best.nodes, scale * best.precision, COVARIANCE_TYPES["full"]
        )
        np.testing.assert_allclose(other, best.precision, rtol=1e-5)


def curved(dim, full):
    """A smooth metric, diagonal or with all its entries."""
    mix = np.eye(dim) + 0.2 * (np.ones((dim, dim)) - np.eye(dim))

    def tensor(x):
        wave = 1.0 + 0.3 * jnp.sin(x) + 0.1 * x @ x
        return mix * (1.0 + 0.1 * x @ x) + jnp.diag(wave) if full else wave

    return FunctionMetric(tensor, dim=dim)


def learned(data):
    sigma = automatic_sigma(data)
    return LocalDiagonalMetric(data, sigma, automatic_rho(data, sigma)), data


def gradient_and_differences(metric, data, n_samples, law="riemannian"):
    """The gradient, differences of the objective, and the maps the former took.

    In units of standard deviations of the model.
    """
    problem = problem_for(metric, data, n_samples=n_samples, tol=1e-8, law=law)
    weights = np.random.default_rng(2).uniform(size=len(data))
    weights /= weights.sum()
    middle = data[np.argmin(np.sum((data - data.mean(axis=0)) ** 2, axis=1))]
    mean = middle + 0.1 * data.std(axis=0)
    (at,) = profile(problem, components_at(problem, [mean], [weights]))
    before = problem.work.log_maps
    _, gradient = local_model(problem, at)(np.zeros(len(mean)))
    maps = problem.work.log_maps - before
    frame, step, slopes = np.linalg.cholesky(at.covariance), 2e-3, []
    for column in frame.T:
        ends = [mean + step * column, mean - step * column]
        ahead, behind = (
            assemble(problem, moved).objective
            for moved in move(problem, ends, [at, at])
        )
        slopes.append((ahead - behind) / (2.0 * step))
    return frame.T @ gradient, np.array(slopes), maps


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("half_ellipse", "riemannian"),
        ("circle", "lebesgue"),
        pytest.param("spiral", "riemannian", marks=pytest.mark.nightly),
        pytest.param("two_moons", "riemannian", marks=pytest.mark.nightly),
    ],
)
def test_the_gradient_is_that_of_the_objective_and_takes_no_maps(name, law):
    data = getattr(land.datasets, f"make_{name}")(150, random_state=0)
    data = data[0] if isinstance(data, tuple) else data
    gradient, slopes, maps = gradient_and_differences(*learned(data), 3000, law)
    assert np.linalg.norm(gradient - slopes) < 1e-4 * np.linalg.norm(slopes)
    assert np.linalg.norm(slopes) > 0.02  # a gradient of zero would be no test
    assert maps == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dim", "full"),
    [
        pytest.param(2, True, id="2-full"),
        pytest.param(3, False, id="3-diagonal"),
        pytest.param(5, True, id="5-full", marks=pytest.mark.nightly),
    ],
)
def test_the_gradient_in_any_dimension_for_any_metric(dim, full):
    rng = np.random.default_rng(0)
    data = 0.3 * rng.normal(size=(40, dim)) + 0.2
    gradient, slopes, maps = gradient_and_differences(curved(dim, full), data, 2000)
    assert np.linalg.norm(gradient - slopes) < 1e-4 * np.linalg.norm(slopes)
    assert maps == 0


@pytest.mark.nightly
def test_the_gradient_of_the_paper_is_that_of_its_objective(arc):
    gradient, slopes, _ = gradient_and_differences(
        arc.metric, arc.data[:100], 6000, law="paper"
    )
    # The constant's part is a difference of its own, with another step.
    np.testing.assert_allclose(gradient, slopes, rtol=0.01, atol=0.005)


def test_the_model_of_the_objective_is_right_beyond_its_gradient():
    """It foresees most of what a linear model gets wrong."""
    data = 0.3 * np.random.default_rng(0).normal(size=(40, 2)) + 0.2
    problem = problem_for(curved(2, True), data, tol=1e-8)
    likelihood = Likelihood(problem)
    mean = data.mean(axis=0) + 0.1
    (search,) = likelihood.searches(components_at(problem, [mean], [uniform(problem)]))
    model = likelihood.local_model(search)
    _, gradient = model(np.zeros(2))
    step = -0.3 * np.linalg.cholesky(search.spot.covariance) @ np.array([0.6, 0.8])
    (after,) = likelihood.evaluate([search.spot.mean + step], [search])
    change = after.objective - search.spot.objective
    value, _ = model(step)
    assert abs(value - change) < 0.2 * abs(gradient @ step - change)
    assert abs(gradient @ step - change) > 0.01


def test_a_closed_curve_is_counted_once():
    """Half-way round a circle, every point is reached on two ways."""
    data = land.datasets.make_circle(80, random_state=0)
    sigma = automatic_sigma(data, 2)
    metric = LocalDiagonalMetric(data, sigma, 0.3 * automatic_rho(data, sigma))
    problem = problem_for(metric, data, law="lebesgue", n_samples=3000)
    at_datum = components_at(problem, [data[0]], [uniform(problem)])
    (verified,) = verify(problem, profile(problem, at_datum))
    # By a fine grid of log maps.
    steps = np.linspace(-2.8, 2.8, 71)
    grid = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    tangents = land.log_map(metric, data[0], grid, tol=1e-4).tangents
    squares = np.einsum("ni,ij,nj->n", tangents, verified.precision, tangents)
    truth = np.log(np.exp(-0.5 * squares).sum() * (steps[1] - steps[0]) ** 2)
    error = verified.log_constant.value - truth
    assert abs(error) < max(0.003, 3.0 * verified.log_constant.stderr)
    assert verified.log_constant.stderr < 0.01


def test_a_fit_goes_on_where_geodesics_computed_anew_differ(arc):
    """One that is longer than it should be is noticed."""
    weights = uniform(arc)
    state = {"mean": arc.data[0], "covariance": np.eye(2), "radius": 1.0}
    model = maximum_likelihood._Descent(arc, weights, state)
    assert climb._agree(arc, model)
    search = model.search
    tangents = search.spot.logs.tangents.copy()
    tangents[np.argmax(np.linalg.norm(tangents, axis=1))] *= 1.5
    logs = dataclasses.replace(search.spot.logs, tangents=tangents)
    search.spot = assemble(arc, dataclasses.replace(search.spot, logs=logs))
    assert not climb._agree(arc, model)


def test_a_component_of_a_single_row_has_its_constant(arc):
    """Its data have no extent: without the model's, log C was -700."""
    alone, covariance = np.eye(100)[3], 0.01 * np.eye(2)
    (component,) = components_at(arc, [arc.data[3]], [alone])
    component = dataclasses.replace(component, covariance=covariance)
    (found,) = evaluate(arc, [component])
    model = arc.metric, arc.data[3], covariance
    truth = land.log_constant(*model, n_samples=20_000, random_state=0)
    assert found.log_constant.value == pytest.approx(truth.value, abs=0.01)
