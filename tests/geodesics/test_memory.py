"""Memory is bounded by blocks: it does not grow with the number of targets.

Measured as the peak of the resident memory of a process for each call. It never sinks,
so the small call comes first, and twice, for the allocator to find its level. The case
of 100,000 targets and 10,000 data is a benchmark.
"""

import json

PROGRAM = """
import json, os, resource
import numpy as np
import land

def peak():
    "Peak resident memory so far, in MiB."
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

rng = np.random.default_rng(0)
data = land.datasets.make_half_ellipse(4000, n_centers=None, random_state=0)
# A large rho makes the metric nearly flat and every geodesic cheap.
metric = land.metrics.LocalDiagonalMetric(data, sigma=0.3, rho=100.0)
base = np.array([0.1, 1.5])
rows = base + 0.05 * rng.standard_normal((60_000, 2))
# Call, few rows, many rows.
cases = [
    (lambda n: metric.log_volume(rows[:n]), 8192, 60_000),
    (lambda n: land.exp_map(metric, base, rows[:n] - base), 1100, 9000),
    (lambda n: land.log_map(metric, base, rows[:n]), 300, 1300),
]
for call, few, many in cases:
    child = os.fork()  # nothing has taken the device yet
    if child == 0:
        peaks = [peak()]
        for n in (few, few, many):
            call(n)
            peaks.append(peak())
        print(json.dumps(peaks), flush=True)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

# The MiB that the kernel weights of all pairs would take at once: a curve of the log
# map has at least 16 points.
UNBOUNDED = (1800, 270, 630)


def test_peak_does_not_grow_with_the_number_of_targets(run_fresh):
    lines = run_fresh(PROGRAM).splitlines()
    for line, unbounded in zip(lines, UNBOUNDED, strict=True):
        start, _, few, many = json.loads(line)
        assert few - start < 400.0
        assert many - few < 0.25 * unbounded
