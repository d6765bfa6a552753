"""Fitted models against what is known: flat space, identities, scale."""

import numpy as np
import pytest
from sklearn.base import clone

import land
from land.metrics import EuclideanMetric

FAST = {"n_samples": 500, "random_state": 0}


def test_a_line_gives_mean_and_variance(cloud):
    line = cloud[:, :1]
    model = land.LAND(metric=EuclideanMetric(1), tol=1e-6, **FAST).fit(line)
    np.testing.assert_allclose(model.mean_, line.mean(axis=0), atol=1e-4)
    np.testing.assert_allclose(model.covariance_, np.cov(line.T, bias=True), rtol=1e-4)


@pytest.mark.parametrize("method", ["ml", "least_squares"])
def test_weights_are_repetitions_where_the_metric_is_given(cloud, method):
    weights = np.random.default_rng(1).integers(0, 4, size=len(cloud))
    model = land.LAND(metric=EuclideanMetric(2), method=method, tol=1e-6, **FAST)
    weighted = model.fit(cloud, sample_weight=weights)
    mean, covariance = weighted.mean_, weighted.covariance_
    repeated = model.fit(np.repeat(cloud, weights, axis=0))
    np.testing.assert_allclose(mean, repeated.mean_, atol=1e-4)
    if method == "ml":
        np.testing.assert_allclose(covariance, repeated.covariance_, rtol=1e-4)
    assert np.abs(mean - cloud.mean(axis=0)).max() > 0.01  # the weights matter


def test_objective_is_the_mean_negative_log_density(arc_model, smooth_model, arc):
    """With respect to the reference, which is dx unless told otherwise."""
    assert arc_model.objective_ == pytest.approx(-arc_model.score(arc), abs=1e-3)
    other = clone(smooth_model).set_params(reference="riemannian").fit(arc)
    score = other.score_samples(arc, "riemannian").mean()
    assert other.objective_ == pytest.approx(-score, abs=1e-3)


@pytest.mark.parametrize("measure", ["lebesgue", "riemannian"])
def test_information_criteria_sum_the_scores(arc_model, arc, measure):
    total = arc_model.score_samples(arc, measure).sum()
    aic, bic = arc_model.aic(arc, measure), arc_model.bic(arc, measure)
    assert aic == pytest.approx(2 * 5 - 2 * total)
    assert bic == pytest.approx(5 * np.log(len(arc)) - 2 * total)


def test_tangents_lead_from_the_mean_to_the_points(arc_model, arc):
    tangents = arc_model.tangents(arc)
    arrivals = land.exp_map(arc_model.metric_, arc_model.mean_, tangents)
    np.testing.assert_allclose(arrivals.points, arc, atol=1e-3)


def test_least_squares_covariance_is_that_of_the_tangents(arc_means, arc):
    model = arc_means
    tangents = model.tangents(arc)
    moment = tangents.T @ tangents / (len(arc) - 1)
    np.testing.assert_allclose(model.covariance_, moment, rtol=1e-3, atol=1e-3)
    # The intrinsic mean is where the tangents average out.
    spread = np.sqrt(np.trace(moment))
    assert np.linalg.norm(tangents.mean(axis=0)) < 1e-3 * spread


@pytest.mark.parametrize(
    "name", ["arc_means", pytest.param("arc_model", marks=pytest.mark.nightly)]
)
def test_model_scales_with_the_data(name, arc, request):
    model, c = request.getfixturevalue(name), 1e6
    scaled = clone(model).fit(c * arc)
    assert scaled.sigma_ == pytest.approx(c * model.sigma_, rel=1e-9)
    assert scaled.rho_ == pytest.approx(c**2 * model.rho_, rel=1e-9)
    np.testing.assert_allclose(scaled.mean_, c * model.mean_, rtol=1e-3)
    np.testing.assert_allclose(scaled.covariance_, c**2 * model.covariance_, rtol=1e-3)
    np.testing.assert_allclose(
        scaled.score_samples(c * arc),
        model.score_samples(arc) - 2.0 * np.log(c),
        atol=1e-3,
    )


def test_model_moves_with_the_data(smooth_model, arc):
    model, offset = smooth_model, 1e8
    moved = clone(model).fit(arc + offset)
    # Numbers near 1e8 have seven decimals; the optimum is flat to about 1e-3.
    np.testing.assert_allclose(moved.mean_ - offset, model.mean_, atol=5e-3)
    np.testing.assert_allclose(moved.covariance_, model.covariance_, atol=2e-2)
    assert moved.score(arc + offset) == pytest.approx(model.score(arc), abs=1e-3)
