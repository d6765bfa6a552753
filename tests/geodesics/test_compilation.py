"""A new number of targets, or a new metric of similar size, compiles nothing new.

The log map has one kernel (`relax_curves`), compiled once for each mesh size that
occurs; the exponential map one (`advance_rays`), for two block sizes; both evaluate
metrics on the host (`_tensor_batch`, small), for two block sizes. The targets of
smaller calls are among those of the first one and so meet no mesh that it did not meet.
"""

import pytest

SHARED = """
rng = np.random.default_rng(0)
data = land.datasets.make_half_ellipse(300, n_centers=None, random_state=0)
metric = land.metrics.LocalDiagonalMetric(data, sigma=0.3, rho=1e-3)
base = np.array([0.1, 1.5])
others = land.datasets.make_half_ellipse(310, n_centers=None, random_state=1)
similar = land.metrics.LocalDiagonalMetric(others, sigma=0.31, rho=1.1e-3)
"""

LOG = """
points = data[rng.integers(0, 300, 301)]
points[:300] = data
for n in (300, 301, 17, 1, 2, 100, 299):
    counts[n] = count(land.log_map, metric, base, points[:n])
counts["similar"] = count(land.log_map, similar, base, points[:300])
counts["tol"] = count(land.log_map, metric, base, points[:17], tol=2e-6, max_iter=400)
counts["warm"] = count(
    land.log_map, metric, base, points[:300],
    curves=land.log_map(metric, base, points[:300]).curves,
)
"""

EXP = """
tangents = 0.5 * rng.standard_normal((3000, 2))
for n in (300, 301, 17, 1, 64, 65, 3000):
    counts[n] = count(land.exp_map, metric, base, tangents[:n])
counts["similar"] = count(land.exp_map, similar, base, tangents[:300])
counts["tol"] = count(land.exp_map, metric, base, tangents[:17], tol=1e-5, max_steps=99)
"""

DET = """
tangents = 0.5 * rng.standard_normal((301, 2))
for n in (300, 301, 17, 1):
    counts[n] = count(land.exp_log_det, metric, base, tangents[:n])
counts["similar"] = count(land.exp_log_det, similar, base, tangents[:300])
"""


@pytest.fixture(scope="module")
def counted(count_compilations):
    """Count what one of the programs above compiles, in a process of its own."""
    return lambda calls: count_compilations(SHARED + calls)


def total(*counts):
    return sum(sum(count.values()) for count in counts)


def test_listener_hears_compilations(counted):
    """Otherwise every other test here would pass by deafness."""
    heard = counted("counts['one'] = count(lambda: jax.jit(lambda x: x + 1)(base))")
    assert total(heard["one"]) >= 1


def test_log_map(counted):
    counts = counted(LOG)
    first = counts["300"]
    assert first["jit(relax_curves)"] >= 1
    assert total(counts["301"]) == 0
    # 17 and 1 use the smaller block: at most one further shape per kernel and mesh.
    for name, number in {**counts["17"], **counts["1"]}.items():
        assert name in first
        assert counts["17"].get(name, 0) + counts["1"].get(name, 0) <= first[name]
        assert number <= first[name]
    # At most twice per kernel and mesh in all, whatever the number of targets.
    for name, number in first.items():
        sizes = ("300", "301", "17", "1", "2", "100", "299")
        assert sum(counts[n].get(name, 0) for n in sizes) <= 2 * number
    assert total(counts["similar"], counts["tol"], counts["warm"]) == 0


@pytest.mark.parametrize("calls", [EXP, DET], ids=["exp_map", "exp_log_det"])
def test_exp_map_and_determinants(counted, calls):
    counts = counted(calls)
    assert counts["300"]["jit(advance_rays)"] == 1
    assert total(counts["301"]) == 0
    assert counts["17"].get("jit(advance_rays)", 0) == 0  # the same block serves
    assert total(counts["1"], counts["similar"]) == 0
    kernels = {"jit(advance_rays)": 2, "jit(_tensor_batch)": 2}
    for name in {name for count in counts.values() for name in count}:
        assert sum(count.get(name, 0) for count in counts.values()) <= kernels[name]
