"""The normalisation constant against closed forms and brute force."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf

import land
from land.metrics import EuclideanMetric, FunctionMetric, LocalDiagonalMetric

HYPERBOLIC = FunctionMetric(lambda x: 4.0 / (1.0 - x @ x) ** 2 + 0.0 * x, dim=2)
SPHERE = FunctionMetric(lambda x: 4.0 / (1.0 + x @ x) ** 2 + 0.0 * x, dim=2)


def hyperbolic_constant(scale, volume):
    """Log C at the origin of the Poincaré disk for covariance scale^2 / 4 I."""
    if volume == "exact":
        factor = 2.0 * np.pi * np.sqrt(np.pi / 2.0) * scale
        return np.log(factor * np.exp(scale**2 / 2.0) * erf(scale / np.sqrt(2.0)))

    def integrand(r):
        return 32.0 * np.pi * r * np.cosh(r) ** 4 * np.exp(-2.0 * (r / scale) ** 2)

    return np.log(quad(integrand, 0.0, 20.0 * scale)[0])


def sphere_constant(scale, volume):
    """Log C at the pole: a tangent of length r leads to tan(r), twice that far."""

    def integrand(r):
        gauss = np.exp(-2.0 * (r / scale) ** 2)
        if volume == "exact":  # area element of the sphere, up to the other pole
            return 4.0 * np.pi * max(np.sin(2.0 * r), 0.0) * gauss * (r < np.pi / 2.0)
        return 32.0 * np.pi * r * np.cos(r) ** 4 * gauss

    return np.log(quad(integrand, 0.0, 10.0 * scale, limit=500)[0])


def linearly_changed(metric, change):
    """The same manifold in the coordinates y = A x."""
    back = np.linalg.inv(change)

    def tensor(y):
        return back.T @ jnp.diag(metric.tensor_at(back @ y)) @ back

    return FunctionMetric(tensor, dim=2)


# Of each metric one object: what was compiled for it serves all tests.
CHANGE = np.array([[2.0, 0.3], [-0.4, 0.5]])
MOVED = linearly_changed(HYPERBOLIC, CHANGE)


@pytest.mark.parametrize("volume", ["paper", "exact"])
@pytest.mark.parametrize(
    ("metric", "truth", "scale"),
    [
        (HYPERBOLIC, hyperbolic_constant, 0.6),
        # A larger one sends rays past the antipode, which the coordinates do not have.
        (SPHERE, sphere_constant, 0.4),
    ],
    ids=["hyperbolic", "sphere"],
)
def test_closed_forms(metric, truth, scale, volume):
    covariance = scale**2 / 4.0 * np.eye(2)
    found = land.log_constant(metric, [0, 0], covariance, volume, random_state=1)
    error = found.value - truth(scale, volume)
    assert abs(error) < 3.0 * found.stderr + 1e-6
    assert abs(error) < 0.005
    # Of the lattice, a few points lie beyond the edge of the disk.
    assert found.n_failed < 0.02 * found.n_nodes


@pytest.mark.parametrize("volume", ["paper", "exact"])
def test_constants_after_a_linear_change_of_coordinates(volume):
    """Eq. 6 is an integral over the manifold, and knows nothing of coordinates.

    Eq. 7 in normal coordinates has sqrt|M(Exp v)| left, which is not a scalar: log C
    falls by log|det A|, the same for all means, so that no fit depends on it.
    """
    covariance = np.array([[0.02, 0.004], [0.004, 0.01]])
    shift = 0.0 if volume == "exact" else -np.log(np.abs(np.linalg.det(CHANGE)))
    for mean in np.array([[0.1, -0.05], [-0.2, 0.1]]):
        here = land.log_constant(HYPERBOLIC, mean, covariance, volume, random_state=0)
        there = land.log_constant(
            MOVED,
            CHANGE @ mean,
            CHANGE @ covariance @ CHANGE.T,
            volume,
            random_state=0,
        )
        assert there.value - here.value == pytest.approx(shift, abs=1e-5)


@pytest.mark.parametrize("metric", [HYPERBOLIC, SPHERE], ids=["hyperbolic", "sphere"])
def test_where_all_points_are_alike_the_exact_constant_is_too(metric):
    """Only coordinates tell the points of these manifolds apart.

    Eq. 7 sees the coordinates: its constant is larger where the tensor is, far from
    data for a learned metric. This is what keeps means on the data.
    """
    means = np.array([[0.0, 0.0], [0.25, 0.1]])
    constants = {
        volume: [
            land.log_constant(
                metric,
                mean,
                0.02 * np.linalg.inv(metric.tensor(mean)),
                volume,
                random_state=0,
            ).value
            for mean in means
        ]
        for volume in ("exact", "paper")
    }
    assert np.ptp(constants["exact"]) < 1e-6
    rise = metric.log_volume(means[1]) - metric.log_volume(means[0])
    assert abs(rise) > 0.1
    assert np.diff(constants["paper"])[0] == pytest.approx(rise, abs=0.01)


def test_a_cylinder_counts_its_far_side_once():
    """Flat, without conjugate points: only log maps tell that tangents go round it."""
    radius = 0.3

    def wound(x):
        # The plane's exponential coordinates: circles all have the same length.
        return radius**2 / (x @ x + 1e-12) + 0.0 * x

    metric = FunctionMetric(wound, dim=2)
    covariance = np.diag([0.01, 1.0])  # wide enough to go all the way round
    found = land.log_constant(
        metric, [1.0, 0.0], covariance, n_samples=3000, random_state=0
    )
    along = np.sqrt(2.0 * np.pi) * 0.1 * radius
    round_it = quad(lambda a: radius * np.exp(-0.5 * a**2), -np.pi, np.pi)[0]
    assert found.value == pytest.approx(np.log(along * round_it), abs=0.001)
    whole = radius * np.sqrt(2.0 * np.pi)
    assert np.log(whole / round_it) > 0.001  # what is counted twice can be seen


def test_flat_space_is_the_normal_distribution():
    covariance = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 0.5]])
    found = land.log_constant(EuclideanMetric(3), np.ones(3), covariance)
    truth = 1.5 * np.log(2.0 * np.pi) + 0.5 * np.linalg.slogdet(covariance)[1]
    assert found.value == pytest.approx(truth, abs=1e-12)
    assert found.stderr == 0.0
    plain = land.log_constant(
        EuclideanMetric(3), np.ones(3), covariance, random_state=0, method="monte_carlo"
    )
    assert plain.value == pytest.approx(truth, abs=1e-6)


def test_on_a_line():
    """Arc length straightens any metric on the line."""
    metric = FunctionMetric(lambda x: jnp.exp(2.0 * x), dim=1)
    found = land.log_constant(metric, [0.0], [[0.04]], random_state=0)
    assert found.value == pytest.approx(0.5 * np.log(0.08 * np.pi), abs=1e-5)


@pytest.fixture(scope="module")
def arc():
    data = land.datasets.make_half_ellipse(random_state=0)
    metric = LocalDiagonalMetric(data, sigma=0.3, rho=0.1).tabulated()
    mean = data[np.argmin(np.linalg.norm(data - [0.0, 1.5], axis=1))]
    return metric, mean, np.diag([0.64, 0.0225])


@pytest.mark.parametrize("volume", ["paper", "exact"])
def test_lattices_agree_with_plain_monte_carlo(arc, volume):
    found = land.log_constant(*arc, volume, random_state=0)
    plain = land.log_constant(*arc, volume, 1000, random_state=0, method="monte_carlo")
    assert abs(found.value - plain.value) < 4.0 * np.hypot(plain.stderr, found.stderr)
    assert 0.001 < plain.stderr < 0.05


def test_same_seed_same_value(arc):
    values = [
        land.log_constant(*arc, n_samples=300, random_state=seed).value
        for seed in (3, 3, 4)
    ]
    assert values[0] == values[1] != values[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"covariance": np.diag([1.0, -1.0])}, "covariance must be positive definite"),
        ({"covariance": np.array([[1.0, 0.5], [0.0, 1.0]])}, "must be symmetric"),
        ({"covariance": np.eye(3)}, "covariance must"),
        ({"mean": [0.0]}, "mean must"),
        ({"volume": "riemann"}, "volume must be"),
        ({"method": "guess"}, "method must be"),
        ({"n_samples": 0}, "n_samples must be"),
    ],
)
def test_bad_input(change, message):
    arguments = {"mean": np.zeros(2), "covariance": np.eye(2)} | change
    with pytest.raises(ValueError, match=message):
        land.log_constant(EuclideanMetric(2), **arguments)


def test_a_covariance_beyond_all_geodesics(arc):
    metric, mean, _ = arc
    with pytest.raises(ValueError, match="covariance is too large for the metric"):
        land.log_constant(metric, mean, 1e100 * np.eye(2), random_state=0)


STEP = FunctionMetric(lambda x: jnp.where(x[0] > 0.0, 100.0, 1.0) + 0.0 * x, 2)


@pytest.mark.parametrize("method", ["lattice", "monte_carlo"])
def test_a_metric_that_is_not_smooth_is_refused(method):
    """To find out for all points would take minutes."""
    model = STEP, [0.1, 0.0], 0.2 * np.eye(2)
    with pytest.raises(ValueError, match=r"^metric must be smooth .* of 32 points"):
        land.log_constant(*model, method=method, random_state=0)


def test_the_limit_of_iterations_is_an_argument():
    """With too few of them this smooth metric is out of reach as well."""
    metric = FunctionMetric(lambda x: 1.0 + x[0] ** 2 + 0.0 * x, 2)
    model = metric, [0.1, 0.0], 0.2 * np.eye(2)
    assert land.log_constant(*model, n_samples=200, random_state=0).n_failed == 0
    with pytest.raises(ValueError, match=r"geodesics to .* were not found"):
        land.log_constant(*model, n_samples=200, random_state=0, max_iter=1)
    with pytest.raises(ValueError, match="max_iter must be at least 1"):
        land.log_constant(*model, max_iter=0)


def test_any_number_of_draws_in_many_dimensions():
    """Beyond five dimensions points are draws; SciPy is not to warn of their number."""
    data = np.random.default_rng(0).normal(size=(30, 6))
    metric = land.metrics.LocalDiagonalMetric(data, sigma=5.0, rho=10.0)
    mean, covariance = np.zeros(6), 0.01 * np.eye(6)
    found = land.log_constant(metric, mean, covariance, n_samples=100, random_state=0)
    # The metric hardly changes within the distribution.
    expected = 0.5 * np.linalg.slogdet(2.0 * np.pi * covariance)[1]
    expected += metric.log_volume(mean)
    assert abs(found.value - expected) < 3.0 * found.stderr < 1.5
