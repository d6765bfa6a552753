"""Bootstrap regions and permutation tests against closed forms, levels, and power."""

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

import land
from land.inference import bootstrap, goodness_of_fit, two_sample_test
from land.metrics import EuclideanMetric

FLAT = EuclideanMetric(2)


@pytest.fixture(scope="module")
def resampled(flat, cloud):
    return bootstrap(flat, cloud, 200, random_state=0)


def test_flat_space_gives_weighted_means_and_covariances(flat, cloud, resampled):
    rng = np.random.default_rng(0)
    rng.integers(2**31)  # which the points of constants take, where space is curved
    weights = rng.multinomial(60, np.full(60, 1 / 60), size=200) / 60
    means = weights @ cloud
    # Where less than the tolerance would be gained, no step is taken.
    close = {"rtol": 0.0, "atol": 6e-3}
    np.testing.assert_allclose(resampled.means, means, **close)
    np.testing.assert_allclose(resampled.offsets, means - cloud.mean(axis=0), **close)
    centred = cloud - means[7]
    moment = (weights[7][:, None] * centred).T @ centred
    np.testing.assert_allclose(resampled.covariances[7], moment, atol=1e-5)


def test_flat_regions_are_ellipses_with_their_share(flat, resampled):
    curve = resampled.mean_region(0.9)
    np.testing.assert_allclose(curve[0], curve[-1])
    offsets = curve - flat.mean_
    shape = resampled.offsets.T @ resampled.offsets / 200
    radii = np.einsum("ni,ij,nj->n", offsets, np.linalg.inv(shape), offsets)
    np.testing.assert_allclose(radii, radii[0])
    # Nearly the ellipse of Hotelling's T² for 60 rows.
    hotelling = 2 * 60 / 58 * stats.f(2, 58).ppf(0.9)
    assert radii[0] == pytest.approx(hotelling, rel=0.2)
    np.testing.assert_allclose(shape, flat.covariance_ / 60, rtol=0.25, atol=2e-3)
    inside = flat.mean_ + 0.99 * offsets
    assert resampled.contains(inside, 0.9).all()
    assert not resampled.contains(flat.mean_ + 1.01 * offsets, 0.9).any()
    wider = hotelling / stats.chi2(2).ppf(0.9)
    offsets = resampled.offsets
    lengths = np.einsum("ni,ij,nj->n", offsets, np.linalg.inv(shape), offsets)
    assert np.mean(wider * lengths <= radii[0]) == pytest.approx(0.9)
    low, high = resampled.covariance_interval(0.9)
    assert np.all(low < flat.covariance_)
    assert np.all(flat.covariance_ < high)


def test_refits_are_those_of_weighted_rows(smooth_model, arc):
    found = bootstrap(smooth_model, arc, 3, random_state=0)
    rng = np.random.default_rng(0)
    rng.integers(2**31)
    weights = rng.multinomial(60, np.full(60, 1 / 60), size=3)
    spread = bootstrap(smooth_model, arc, 8, random_state=1).offsets.std(axis=0)
    root = land.fitting.normal_frame(smooth_model.metric_, smooth_model.mean_)[0]
    options = {"metric": smooth_model.metric_, "tol": 1e-5, "n_samples": 500}
    start = {"init": smooth_model.mean_, "random_state": 0}
    even = land.LAND(**options, **start).fit(arc)
    for own, offset in zip(weights, found.offsets, strict=True):
        fitted = land.LAND(**options, **start).fit(arc, sample_weight=own)
        moved = even.tangents(fitted.mean_[None])[0] @ root
        np.testing.assert_array_less(np.abs(moved - offset), 0.35 * spread)
    region = found.mean_region(0.5, 20)
    assert region.shape == (20, 2)
    assert np.isfinite(region).all()


def test_energy_statistic_is_the_energy_distance():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(17, 2)) + 0.5
    found = two_sample_test(X, Y, metric=FLAT, random_state=0)
    within = cdist(X, X).mean() + cdist(Y, Y).mean()
    energy = 12 * 17 / 29 * (2 * cdist(X, Y).mean() - within)
    assert found.statistic == pytest.approx(energy)
    assert found.pvalue == np.mean(np.append(found.null, np.inf) >= found.statistic)
    swapped = two_sample_test(Y, X, metric=FLAT, random_state=0)
    assert swapped.statistic == pytest.approx(energy)


def test_likelihood_ratio_is_that_of_normal_distributions():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 2)), 2.0 * rng.normal(size=(17, 2)) + 0.5
    found = two_sample_test(X, Y, "likelihood_ratio", metric=FLAT, random_state=0)

    def fitted(rows):
        shape = np.cov(rows.T, ddof=0)
        return stats.multivariate_normal(rows.mean(axis=0), shape).logpdf(rows).sum()

    both = fitted(np.concatenate([X, Y]))
    ratio = 2.0 * (fitted(X) + fitted(Y) - both)
    assert found.statistic == pytest.approx(ratio, rel=1e-4)


@pytest.mark.parametrize("statistic", ["energy", "likelihood_ratio"])
def test_p_values_are_uniform_if_there_is_no_difference(statistic):
    rng = np.random.default_rng(3)
    values = []
    for seed in range(400):
        X, Y = rng.exponential(size=(2, 8, 2))
        options = {"n_permutations": 99, "random_state": seed, "metric": FLAT}
        values.append(two_sample_test(X, Y, statistic, **options).pvalue)
    assert stats.kstest(np.array(values) - 0.005, "uniform").pvalue > 0.001
    assert (
        stats.binomtest(int(np.sum(np.array(values) <= 0.05)), 400, 0.05).pvalue > 0.01
    )


def test_equal_samples_are_never_told_apart():
    X = land.datasets.make_half_ellipse(8, random_state=0)
    same = two_sample_test(X, X, random_state=0)
    assert same.statistic == pytest.approx(0.0, abs=1e-5)
    assert same.pvalue == 1.0
    constant = two_sample_test(np.zeros((4, 2)), np.zeros((4, 2)), metric=FLAT)
    assert constant.pvalue == 1.0


def test_goodness_of_fit_sees_what_is_wrong(smooth_model):
    draws, _ = smooth_model.sample(30, random_state=5)
    options = {"n_draws": 30, "n_permutations": 199, "random_state": 0}
    right = goodness_of_fit(smooth_model, draws, **options)
    wrong = goodness_of_fit(smooth_model, draws + np.array([0.0, 2.0]), **options)
    assert right.pvalue > 0.05
    assert wrong.pvalue <= 0.01


def test_mixtures_have_a_goodness_of_fit(moons_mixture, moons):
    options = {"n_draws": 20, "n_permutations": 99, "random_state": 0}
    far = moons[:20] + np.array([0.0, 2.0])
    assert goodness_of_fit(moons_mixture, far, **options).pvalue <= 0.02


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((5, 2)), np.zeros((5, 3))), "same number of columns, got 2 and 3"),
        ((np.zeros((5, 2)), np.zeros((2, 2))), "more rows than columns, 2, got 5 and"),
        ((np.zeros((5, 2)), np.zeros(2)), "Y must have 2 axes"),
        ((np.eye(4), np.eye(5)[:, :4], "mean"), "statistic must be 'energy' or"),
    ],
)
def test_bad_samples(arguments, message):
    with pytest.raises(ValueError, match=message):
        two_sample_test(*arguments)


def test_bad_models(flat, arc_means, arc, cloud, resampled):
    with pytest.raises(
        ValueError, match=r"model must be a land\.LAND with method='ml'"
    ):
        bootstrap(arc_means, arc)
    with pytest.raises(ValueError, match="n_boot must be at least 3"):
        bootstrap(flat, cloud, 2)
    with pytest.raises(ValueError, match=r"model must be a land\.LAND or"):
        goodness_of_fit(land.RiemannianKMeans(2), cloud)
    with pytest.raises(ValueError, match="level must be between 0 and 1, got 1"):
        resampled.contains(cloud, 1.0)
    with pytest.raises(ValueError, match="X has 3 features"):
        goodness_of_fit(flat, np.zeros((5, 3)))


def test_regions_of_three_dimensions_have_no_curve():
    data = np.random.default_rng(0).normal(size=(40, 3))
    model = land.LAND(metric=EuclideanMetric(3)).fit(data)
    found = bootstrap(model, data, 50, random_state=0)
    assert found.contains(model.mean_[None], 0.5).tolist() == [True]
    with pytest.raises(ValueError, match="mean_region needs a model of 2 columns"):
        found.mean_region()
