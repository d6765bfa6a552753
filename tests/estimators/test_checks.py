"""scikit-learn's own checks: all of them pass, in flat space of any dimension."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import land
from land.metrics import EuclideanMetric


class Flat:
    """Learns a metric, and then uses another, for which nothing has to be compiled."""

    def _learn_metric(self, data):
        super()._learn_metric(data)
        return EuclideanMetric(data.shape[1])


class FlatLAND(Flat, land.LAND): ...


class FlatMixture(Flat, land.LANDMixture): ...


class FlatKMeans(Flat, land.RiemannianKMeans): ...


class FlatPCA(Flat, land.GeodesicPCA): ...


class FlatClassifier(land.LANDClassifier):
    """Its distributions are given the metric."""

    def fit(self, X, y):
        given = self.metric
        try:
            return super().fit(X, y)
        finally:
            self.metric = given

    def _check_priors(self, shares):
        self.metric = EuclideanMetric(self.n_features_in_)  # the columns are known now
        return super()._check_priors(shares)


QUICK = {"n_samples": 100, "rho": 1.0}
FLAT = [
    FlatLAND(**QUICK),
    FlatMixture(2, **QUICK),
    FlatMixture(3, prune=True, **QUICK),
    FlatKMeans(2, max_iter=2),
    FlatPCA(1, rho=1.0),
    FlatClassifier(covariance="diag"),
]


def expected_to_fail(estimator):
    if isinstance(estimator, (land.LANDMixture, land.RiemannianKMeans)):
        reason = "the first clusters are those of repeated rows, not of weighted ones"
        return {"check_sample_weight_equivalence_on_dense_data": reason}
    return {}


# Some checks have more columns than rows, or more clusters than there are.
@pytest.mark.filterwarnings("ignore:X has .* rows for:UserWarning")
@pytest.mark.filterwarnings("ignore:X is constant in column:UserWarning")
@pytest.mark.filterwarnings("ignore:.* clusters are empty:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:.* have lost their data:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:.* did not converge within")
@parametrize_with_checks(FLAT, expected_failed_checks=expected_to_fail)
def test_scikit_learn(estimator, check):
    check(estimator)
