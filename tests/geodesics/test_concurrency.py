"""Full metrics need D x D algebra in every step; it must not hang the thread pool.

LAPACK calls on batches, made by XLA from inside a compiled program, wait for helpers
from the same pool of threads that runs the program. Two at once can take every thread
of a small machine and wait for ever: `jnp.linalg.inv` and `solve` in the kernels hung
`land.log_map` on two cores within some ten calls of 1000 targets in 5 dimensions. What
hangs by chance makes a poor test, so this one looks for the calls themselves.
"""

import json

PROGRAM = """
import json, os, pathlib, tempfile

folder = tempfile.TemporaryDirectory()
os.environ["XLA_FLAGS"] = f"--xla_dump_to={folder.name} --xla_dump_hlo_as_text"

import jax
import jax.numpy as jnp
import numpy as np
import land

axes = np.eye(3) + 0.1
metric = land.metrics.FunctionMetric(
    lambda z: 4.0 / (1.0 - z @ z) ** 2 * axes.T @ axes, dim=3
)
points = np.random.default_rng(0).uniform(-0.3, 0.3, (10, 3))
log = land.log_map(metric, np.zeros(3), points)
land.exp_log_det(metric, np.zeros(3), log.tangents)

def calls(kernel):
    "Names of the functions outside XLA that a compiled kernel calls."
    programs = pathlib.Path(folder.name).glob(f"*{kernel}*after_optimizations.txt")
    lines = [line for path in programs for line in path.read_text().splitlines()]
    targets = [line.split('custom_call_target="')[1].split('"')[0]
               for line in lines if "custom_call_target=" in line]
    return len(lines), targets

jax.jit(jnp.linalg.inv)(np.tile(np.eye(3), (10, 1, 1))).block_until_ready()
names = ["relax_curves", "advance_rays", "inv"]
print(json.dumps({name: calls(name) for name in names}))
folder.cleanup()
"""


def test_kernels_for_full_metrics_make_no_lapack_calls(run_fresh):
    found = json.loads(run_fresh(PROGRAM, compiles=True))
    # The search finds what it looks for where it is.
    assert any("lapack" in target for target in found["inv"][1])
    for kernel in ("relax_curves", "advance_rays"):
        lines, targets = found[kernel]
        assert lines > 100
        assert not [target for target in targets if "lapack" in target]
