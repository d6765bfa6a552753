"""scikit-learn's own checks: all of them pass."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import land

FAST = {"n_samples": 200, "max_iter": 2}

# They fit the same way in 5 to 30 dimensions, where maximum likelihood takes minutes;
# what they check happens before either method begins.
TOO_LONG = {
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


# The check of weights has more columns than rows, and a UserWarning is due.
@pytest.mark.filterwarnings("ignore:X has .* rows for:UserWarning")
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
    if estimator.method == "ml" and check.func.__name__ in TOO_LONG:
        pytest.skip("many dimensions; checked with method='least_squares'")
    check(estimator)
