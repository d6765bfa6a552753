"""scikit-learn's own checks: all of them pass."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import land

FAST = {"n_samples": 200, "max_iter": 2}

# They fit in 5 to 30 dimensions, where the exact constant takes minutes. What they
# check happens before a method begins, and all of them check RiemannianKMeans.
MANY_DIMENSIONS = {
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_sample_weight_equivalence_on_dense_data",
}


def expected_to_fail(estimator):
    if isinstance(estimator, land.LANDMixture):
        reason = "the first clusters are those of repeated rows, not of weighted ones"
        return {"check_sample_weight_equivalence_on_dense_data": reason}
    return {}


@pytest.mark.filterwarnings("ignore:the fit did not converge")
@parametrize_with_checks(
    [
        land.LAND(method="least_squares", **FAST),
        land.LAND(**FAST),
        land.LANDMixture(2, method="least_squares", **FAST),
    ],
    expected_failed_checks=expected_to_fail,
)
def test_scikit_learn(estimator, check):
    if check.func.__name__ in MANY_DIMENSIONS:
        pytest.skip("many dimensions; checked nightly")
    check(estimator)


# The check of weights has more columns than rows, and a UserWarning is due.
@pytest.mark.filterwarnings("ignore:X has .* rows for:UserWarning")
@pytest.mark.nightly
@parametrize_with_checks(
    [
        land.LAND(method="least_squares", covariance_type="spherical", **FAST),
        land.LANDMixture(
            2, method="least_squares", covariance_type="spherical", **FAST
        ),
    ],
    expected_failed_checks=expected_to_fail,
)
def test_scikit_learn_in_many_dimensions(estimator, check):
    if check.func.__name__ not in MANY_DIMENSIONS:
        pytest.skip("checked every time")
    check(estimator)
