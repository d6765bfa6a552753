"""scikit-learn's own checks: all of them pass."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

import land

# A rho of the user's own: the metric is not compared with the flat one, and is smooth.
FAST = {"rho": 1.0, "n_samples": 100, "max_iter": 2}

# They fit in 4 to 30 dimensions, where the exact constant takes minutes. What they
# check happens before a method begins, and all of them check RiemannianKMeans.
MANY_DIMENSIONS = {
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_sample_weight_equivalence_on_dense_data",
}
# Runs where SCIPY_ARRAY_API is set; the estimators make no claim about such arrays.
NOT_CLAIMED = {"check_array_api_input"}


def expected_to_fail(estimator):
    if isinstance(estimator, land.LANDMixture):
        reason = "the first clusters are those of repeated rows, not of weighted ones"
        return {"check_sample_weight_equivalence_on_dense_data": reason}
    return {}


def checks(*estimators, many_dimensions=False):
    """Parametrise a test with estimators and checks that go together."""
    cases = []
    for estimator in estimators:
        failing = expected_to_fail(estimator)
        for case, check in estimator_checks_generator(estimator):
            name = check.func.__name__
            if name in NOT_CLAIMED or (name in MANY_DIMENSIONS) != many_dimensions:
                continue
            marks = [pytest.mark.xfail(reason=failing[name])] if name in failing else []
            options = ",".join(f"{k}={v}" for k, v in check.keywords.items())
            label = f"{type(estimator).__name__}-{estimator.method}-{name}({options})"
            cases.append(pytest.param(case, check, id=label, marks=marks))
    return pytest.mark.parametrize(("estimator", "check"), cases)


@pytest.mark.filterwarnings("ignore:the fit did not converge")
@checks(land.LAND(**FAST), land.LANDMixture(2, method="least_squares", **FAST))
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:the fit did not converge")
@checks(land.LAND(method="least_squares", **FAST), land.LANDMixture(2, **FAST))
def test_scikit_learn_by_the_other_method(estimator, check):
    check(estimator)


# The check of weights has more columns than rows, and a UserWarning is due.
@pytest.mark.filterwarnings("ignore:X has .* rows for:UserWarning")
@pytest.mark.nightly
@checks(
    land.LAND(method="least_squares", covariance_type="spherical", **FAST),
    land.LANDMixture(2, method="least_squares", covariance_type="spherical", **FAST),
    many_dimensions=True,
)
def test_scikit_learn_in_many_dimensions(estimator, check):
    check(estimator)
