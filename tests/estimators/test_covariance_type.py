"""Full, diagonal and spherical covariances against scikit-learn's, and in use."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.mixture import GaussianMixture

import land
from land.metrics import EuclideanMetric

FAST = {"n_samples": 500, "random_state": 0}
KINDS = ("full", "diag", "spherical")
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def clusters():
    """Two slanted clouds, far enough apart to have one best mixture of each type."""
    rng = np.random.default_rng(0)
    shapes = [[[1.0, 0.4], [0.0, 0.3]], [[0.4, 0.0], [0.3, 0.8]]]
    centers = [[0.0, 0.0], [4.0, 3.0]]
    return np.concatenate(
        [
            np.array(center) + rng.normal(size=(32, 2)) @ np.array(shape)
            for center, shape in zip(centers, shapes, strict=True)
        ]
    )


def as_matrices(gaussian):
    """Covariances of a Gaussian mixture, (K, D, D) for every type."""
    covariances = gaussian.covariances_
    if gaussian.covariance_type == "spherical":
        return covariances[:, None, None] * np.eye(gaussian.n_features_in_)
    if gaussian.covariance_type == "diag":
        return covariances[:, :, None] * np.eye(gaussian.n_features_in_)
    return covariances


def gaussian_mixture(data, count, kind):
    truth = GaussianMixture(
        count, covariance_type=kind, tol=1e-9, reg_covar=0.0, random_state=0
    )
    return truth.fit(data)


@each_kind
def test_one_in_flat_space_is_the_normal_distribution(cloud, kind):
    truth = gaussian_mixture(cloud, 1, kind)
    model = land.LAND(
        metric=EuclideanMetric(2), covariance_type=kind, tol=1e-6, **FAST
    ).fit(cloud)
    assert model.converged_
    np.testing.assert_allclose(model.mean_, truth.means_[0], atol=1e-3)
    np.testing.assert_allclose(model.covariance_, as_matrices(truth)[0], atol=1e-3)
    product = model.precision_ @ model.covariance_
    np.testing.assert_allclose(product, np.eye(2), atol=1e-12)
    assert model.score(cloud) == pytest.approx(truth.score(cloud), abs=1e-3)
    assert model.n_parameters_ == truth._n_parameters()
    assert model.bic(cloud) == pytest.approx(truth.bic(cloud), rel=1e-4)


@each_kind
def test_two_in_flat_space_are_the_gaussian_mixture(clusters, kind):
    truth = gaussian_mixture(clusters, 2, kind)
    model = land.LANDMixture(
        2, metric=EuclideanMetric(2), covariance_type=kind, tol=1e-9, **FAST
    ).fit(clusters)
    assert model.converged_
    order, mine = np.argsort(truth.means_[:, 0]), np.argsort(model.means_[:, 0])
    np.testing.assert_allclose(model.means_[mine], truth.means_[order], atol=1e-3)
    np.testing.assert_allclose(model.weights_[mine], truth.weights_[order], atol=1e-3)
    np.testing.assert_allclose(
        model.covariances_[mine], as_matrices(truth)[order], atol=1e-3
    )
    assert model.score(clusters) == pytest.approx(truth.score(clusters), abs=1e-3)
    assert model.n_parameters_ == truth._n_parameters()
    assert model.aic(clusters) == pytest.approx(truth.aic(clusters), rel=1e-4)


def test_fewer_parameters_fit_no_better_on_a_learned_metric(smooth_model, arc):
    objectives = [smooth_model.objective_]
    for kind in KINDS[1:]:
        model = clone(smooth_model).set_params(covariance_type=kind).fit(arc)
        assert model.converged_
        objectives.append(model.objective_)
    slack = 3.0 * smooth_model.log_constant_stderr_ + 1e-3
    assert objectives[0] <= objectives[1] + slack
    assert objectives[1] <= objectives[2] + slack
