"""`import land` is quick and leaves the process as it was; geometry is in float64."""

import json

# Prints every setting of JAX, then what importing and using land did to them.
SETTINGS = """
import json, logging, sys, warnings
import jax
import numpy as np
import sklearn, scipy.sparse.csgraph, scipy.spatial, scipy.integrate

def settings():
    return {
        "jax": {name: repr(value) for name, value in sorted(jax.config.values.items())},
        "x64": jax.config.jax_enable_x64,
        "warnings": [repr(entry) for entry in warnings.filters],
        "handlers": [repr(handler) for handler in logging.root.handlers],
        "level": logging.root.level,
        "numpy": np.geterr(),
        "random": repr(np.random.get_state()),
    }

before = settings()
import land
imported = settings()
data = land.datasets.make_half_ellipse(random_state=0)
metric = land.metrics.LocalDiagonalMetric(data, sigma=1.0, rho=1.0)  # smooth, quick
log = land.log_map(metric, data[0], data[1:2])
exp = land.exp_map(metric, data[0], log.tangents)
det = land.exp_log_det(metric, data[0], log.tangents)
curve = land.geodesic(metric, data[0], data[1])
used = settings()
dtypes = [
    str(array.dtype)
    for array in (
        metric.tensor(data), metric.log_volume(data), log.tangents, log.lengths,
        log.curves, exp.points, exp.velocities, det, curve(0.5),
    )
]

# The user's own JAX code is in single precision, as it was.
import jax.numpy as jnp
total = jax.jit(lambda x: jnp.sum(jnp.sin(x)))(jnp.arange(3.0))
grad = jax.grad(lambda x: jnp.sum(x ** 2))(jnp.ones(3))
print(json.dumps({
    "before": before, "imported": imported, "used": used, "dtypes": dtypes,
    "user": [str(total.dtype), str(grad.dtype), str(jnp.ones(2).dtype)],
}))
"""


def test_no_setting_changes_and_results_are_float64(run_fresh):
    process = json.loads(run_fresh(SETTINGS))
    before = process["before"]
    assert before["x64"] is False
    assert len(before["jax"]) > 50  # that is, they were looked at
    assert before == process["imported"] == process["used"]
    assert set(process["dtypes"]) == {"float64"}
    assert set(process["user"]) == {"float32"}


def test_import_starts_nothing(run_fresh):
    """No device is taken, no plotting is loaded, and nothing is printed."""
    program = """
import sys
import land
from jax._src import xla_bridge
print(xla_bridge.backends_are_initialized(), "matplotlib" in sys.modules)
"""
    assert run_fresh(program) == "False False\n"


def test_everything_in_all_exists():
    import land

    for name in land.__all__:
        assert hasattr(land, name), name


def test_what_is_public_is_shown():
    import land

    assert {"callbacks", "plotting", "report", *land.__all__} == set(dir(land))
