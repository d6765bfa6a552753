"""A new number of targets, or a new metric of similar size, compiles nothing new.

Solvers run on the host. The device evaluates metrics, with three programs: tensors,
the geodesic equation and its derivatives, each for two sizes of blocks.
"""

import pytest

PROGRAMS = {"jit(_tensor_batch)", "jit(_forces)", "jit(_linearised)"}

SHARED = """
rng = np.random.default_rng(0)
data = land.datasets.make_half_ellipse(180, n_centers=None, random_state=0)
metric = land.metrics.LocalDiagonalMetric(data, sigma=0.4, rho=0.1)
base = np.array([0.1, 1.5])
others = land.datasets.make_half_ellipse(190, n_centers=None, random_state=1)
similar = land.metrics.LocalDiagonalMetric(others, sigma=0.41, rho=0.11)
tangents = 0.5 * rng.standard_normal((3000, 2))
"""

MAPS = """
counts["log"] = count(land.log_map, metric, base, data)
counts["exp"] = count(land.exp_map, metric, base, tangents)
counts["few"] = count(land.log_map, metric, base, data[:1])
for n in (181, 17, 2):
    counts[n] = count(land.log_map, metric, base, data[rng.integers(0, 180, n)])
    counts[n, "exp"] = count(land.exp_map, metric, base, tangents[:n])
counts["similar"] = count(land.log_map, similar, base, data)
counts["tol"] = count(land.log_map, metric, base, data[:17], tol=2e-6, max_iter=400)
counts["det"] = count(land.exp_log_det, metric, base, tangents[:300])
counts["one"] = count(lambda: jax.jit(lambda x: x + 1)(base))
counts = {str(name): value for name, value in counts.items()}
"""

FIT = """
smooth = {"sigma": 0.4, "rho": 1.0, "n_samples": 100}
model = land.LAND(**smooth, random_state=0)
counts["fit"] = count(model.fit, data[:110])
counts["second"] = count(land.LAND(**smooth, random_state=1).fit, others[:115])
counts["score"] = count(model.score_samples, others)
counts["sample"] = count(model.sample, 50)
"""


@pytest.fixture(scope="module")
def counted(count_compilations):
    """Count what one of the programs above compiles, in a process of its own."""
    return lambda calls: count_compilations(SHARED + calls)


def total(*counts):
    return sum(sum(count.values()) for count in counts)


def test_maps_share_three_programs(counted):
    counts = counted(MAPS)
    assert total(counts.pop("one")) >= 1  # or else the listener would be deaf
    first = [counts[name] for name in ("log", "exp", "few")]
    names = {name for count in counts.values() for name in count}
    assert names <= PROGRAMS
    assert 3 <= total(*first) <= 6
    rest = [counts[name] for name in counts if name not in ("log", "exp", "few")]
    assert total(*rest) == 0


def test_a_first_fit_compiles_at_most_eight_programs(counted):
    counts = counted(FIT)
    assert 3 <= total(counts["fit"]) <= 8
    assert total(counts["second"], counts["score"], counts["sample"]) <= 2
