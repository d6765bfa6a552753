"""What holds for every maker: shapes, seeds, noise and refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from land import datasets

DIMENSIONS = {
    "make_circle": 2,
    "make_half_ellipse": 2,
    "make_s_curve": 3,
    "make_spiral": 2,
    "make_two_moons": 2,
    "make_wave_and_arc": 2,
}
WITH_CLASSES = {"make_two_moons", "make_wave_and_arc"}

every_maker = pytest.mark.parametrize("name", DIMENSIONS)


def make(name, *args, **kwargs):
    """Call the maker and return its points alone."""
    made = getattr(datasets, name)(*args, **kwargs)
    return made[0] if name in WITH_CLASSES else made


@every_maker
@given(n_samples=st.integers(2, 50), seed=st.integers(0, 2**32))
def test_points_are_finite_floats_of_the_promised_shape(name, n_samples, seed):
    X = make(name, n_samples, random_state=seed)
    assert X.shape == (n_samples, DIMENSIONS[name])
    assert X.dtype == np.float64
    assert np.isfinite(X).all()


@pytest.mark.parametrize("name", sorted(WITH_CLASSES))
@pytest.mark.parametrize(("n_samples", "sizes"), [(600, [300, 300]), (7, [4, 3])])
def test_classes_are_balanced_integers(name, n_samples, sizes):
    X, y = getattr(datasets, name)(n_samples, random_state=0)
    assert y.shape == (len(X),)
    assert np.issubdtype(y.dtype, np.integer)
    assert np.bincount(y).tolist() == sizes


@every_maker
@pytest.mark.parametrize(
    "seeded",
    [
        lambda seed: seed,
        np.int64,
        np.random.RandomState,
        np.random.default_rng,
    ],
    ids=["int", "numpy int", "RandomState", "Generator"],
)
def test_same_seed_same_points(name, seeded):
    first = make(name, 20, random_state=seeded(3))
    np.testing.assert_array_equal(make(name, 20, random_state=seeded(3)), first)
    assert not np.allclose(make(name, 20, random_state=seeded(4)), first)


@every_maker
def test_no_seed_gives_new_points_and_leaves_the_global_state_alone(name):
    before = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    assert not np.allclose(make(name, 20), make(name, 20))
    after = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    np.testing.assert_array_equal(after["key"], before["key"])
    assert after["pos"] == before["pos"]


@every_maker
def test_noise_is_the_standard_deviation_in_every_direction(name):
    n_samples, noise = 20_000, 0.3
    clean = make(name, n_samples, noise=0.0, random_state=0)
    residual = make(name, n_samples, noise=noise, random_state=0) - clean
    covariance = np.cov(residual.T)
    # Entries of a sample covariance have standard errors of at most
    # noise^2 sqrt(2 / n), here 1 % of the variance.
    np.testing.assert_allclose(
        covariance, noise**2 * np.eye(DIMENSIONS[name]), atol=0.05 * noise**2
    )
    np.testing.assert_allclose(residual.mean(axis=0), 0.0, atol=0.01)


@every_maker
@pytest.mark.parametrize("n_samples", [0, -1, 2.0, True, "10", None, np.nan])
def test_bad_n_samples(name, n_samples):
    with pytest.raises(
        ValueError, match=r"n_samples must be (an integer|at least \d), got"
    ):
        make(name, n_samples)


@every_maker
@pytest.mark.parametrize("noise", [-0.1, np.nan, np.inf, None, "0.1", True, 1j])
def test_bad_noise(name, noise):
    with pytest.raises(ValueError, match=r"noise must be .*zero or positive.*, got"):
        make(name, noise=noise)


@every_maker
@pytest.mark.parametrize("random_state", [-1, 0.5, "0", [1, 2]])
def test_bad_random_state(name, random_state):
    with pytest.raises(ValueError, match="random_state must be None, an integer"):
        make(name, random_state=random_state)


@pytest.mark.parametrize("n_turns", [0, -1.0, np.inf, "2"])
def test_bad_n_turns(n_turns):
    with pytest.raises(ValueError, match=r"n_turns must be .*positive.*, got"):
        datasets.make_spiral(n_turns=n_turns)
