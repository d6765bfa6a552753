"""Full metrics need D x D algebra in every step; it must not hang the thread pool.

LAPACK calls that XLA makes from inside a compiled loop wait for helpers in the same
pool of threads; two of them at once can take all threads of a small machine and wait
for ever. A hang cannot be caught from inside, so this runs in its own process.
"""

import pytest

PROGRAM = """
import jax.numpy as jnp
import numpy as np
import land

DIM = 5
axes = np.eye(DIM) + 0.1


def tensor(point):
    x = axes @ point
    return 4.0 / (1.0 - x @ x) ** 2 * axes.T @ axes


metric = land.metrics.FunctionMetric(tensor, DIM)
rng = np.random.default_rng(0)
base = 0.1 * rng.standard_normal(DIM)
points = rng.uniform(-0.25, 0.25, (1000, DIM))
for _ in range(50):
    log = land.log_map(metric, base, points)
    exp = land.exp_map(metric, base, log.tangents)
    assert log.converged.all() and exp.converged.all()
print("done")
"""


@pytest.mark.slow
def test_full_metrics_do_not_hang(run_fresh):
    assert run_fresh(PROGRAM, timeout=60.0).strip() == "done"
