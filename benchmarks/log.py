"""Logarithm maps: beside SciPy's boundary value solver, warm, and on hard data."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import land
from benchmarks import scipy_baseline, workload
from benchmarks.common import Column, Table, median_seconds, seconds
from benchmarks.workload import Array
from land.metrics import Metric

SIGMAS = (0.3, 0.15, 0.1)
# How SciPy's right-hand side is written.
STYLES = ("plain", "tuned")
SCIPY_TOLERANCE = 1e-3  # its default
REFERENCE_TOLERANCE = 1e-8
# A longer curve than this is another, worse geodesic.
LONGEST = 1.01
# How far the base moves, as a mean does in the last steps of a fit.
SMALL_STEP = 0.01
FIT_TOLERANCE = 1e-4


def run(quick: bool) -> list[Table]:
    """Time per map, failures, accuracy; then what a fit asks for, then hard data."""
    maps = Table(
        title="Logarithm maps, half-ellipse, 300 data points",
        columns=[
            Column("sigma", "sigma", "g"),
            Column("solver", "solver"),
            Column("maps", "maps"),
            Column("ms", "ms per map", ".3g"),
            Column("ratio", "× land", ".0f"),
            Column("failures", "failures"),
            Column("longer", "longer by > 1 %"),
            Column("error", "tangent error", ".0e"),
        ],
        notes=(
            "`land.log_map` to all data points, warm, against `solve_bvp` in a loop "
            "over some of the same targets at its default tolerance: plain, as the "
            "formulas read, with NumPy's own threads, and tuned, with land's algebra "
            "on one thread. Failures did not converge by the solver's own account. "
            "Errors are the largest among the maps that succeed, relative to the "
            f"length, against land at a tolerance of {REFERENCE_TOLERANCE:g}."
        ),
    )
    for sigma in SIGMAS[:1] if quick else SIGMAS:
        contest = _Contest.prepare(sigma, n_targets=10 if quick else 50)
        maps.rows += contest.run(passes=1 if quick else 2, chunk=5 if quick else 10)
    return [maps, _warm(quick), _hard(quick)]


class _Attempt(NamedTuple):
    """One of SciPy's boundary value problems."""

    seconds: float
    converged: bool
    length: float
    tangent: Array


@dataclass
class _Contest:
    """Both solvers on one metric."""

    metric: land.metrics.LocalDiagonalMetric
    base: Array
    points: Array
    chosen: Array  # indices of the points that SciPy is given
    reference: land.LogMap

    @classmethod
    def prepare(cls, sigma: float, n_targets: int) -> "_Contest":
        points = workload.half_ellipse()
        metric = workload.half_ellipse_metric(points, sigma)
        base = workload.top_of_arc(points)
        others = np.flatnonzero(np.any(points != base, axis=1))
        chosen = np.random.default_rng(1).choice(others, n_targets, replace=False)
        reference = land.log_map(metric, base, points, tol=REFERENCE_TOLERANCE)
        return cls(metric, base, points, chosen, reference)

    def run(self, passes: int, chunk: int) -> list[dict]:
        """Time both by turns, so that a noisy machine is noisy to both."""
        result = self.ours()  # compiles
        times = []
        attempts: dict[str, list[list[_Attempt]]] = {style: [] for style in STYLES}
        for _ in range(passes):
            for tried in attempts.values():
                tried.append([])
            for first in range(0, len(self.chosen), chunk):
                times.append(seconds(self.ours))
                for style, tried in attempts.items():
                    tried[-1] += [
                        self.scipys(index, style)
                        for index in self.chosen[first : first + chunk]
                    ]
        own = self.summarise_ours(result, times, attempts[STYLES[0]][0])
        rows = [own]
        rows += [self.summarise_scipys(*pair) for pair in attempts.items()]
        for row in rows:
            row["sigma"] = self.metric.sigma
            row["ratio"] = row["ms"] / own["ms"]
        return rows

    def ours(self) -> land.LogMap:
        return land.log_map(self.metric, self.base, self.points)

    def scipys(self, index: int, style: str) -> _Attempt:
        metric, target = self.metric, self.points[index]
        write, threads = {
            "plain": (scipy_baseline.broadcast_acceleration, None),
            "tuned": (scipy_baseline.meshwise_acceleration, 1),
        }[style]
        equation = write(metric.data, metric.sigma, metric.rho)
        problem = equation, self.base, target, SCIPY_TOLERANCE
        found = []
        # Newton's trial steps overflow; the solver copes.
        with threadpool_limits(threads), np.errstate(all="ignore"):
            took = seconds(lambda: found.append(scipy_baseline.log_map(*problem)))
        solution = found[0]
        return _Attempt(
            seconds=took,
            converged=solution.status == 0,
            length=_length(metric, solution.sol),
            tangent=solution.y[len(target) :, 0],
        )

    def summarise_ours(
        self, result: land.LogMap, times: list[float], rivals: list[_Attempt]
    ) -> dict:
        n = len(self.points)
        shortest = self.reference.lengths.copy()
        for index, rival in zip(self.chosen, rivals, strict=True):
            if rival.converged:
                shortest[index] = min(shortest[index], rival.length)
        moved = shortest > 0.0
        return {
            "solver": "land",
            "maps": n,
            "ms": 1e3 * float(np.median(times)) / n,
            "failures": int(np.sum(~result.converged)),
            "longer": int(np.sum(result.lengths > LONGEST * shortest)),
            "error": self.largest_error(result.tangents[moved], np.flatnonzero(moved)),
        }

    def summarise_scipys(self, style: str, passes: list[list[_Attempt]]) -> dict:
        tries = passes[0]  # all passes find the same
        times = [np.mean([attempt.seconds for attempt in tried]) for tried in passes]
        lengths = np.array([attempt.length for attempt in tries])
        converged = np.array([attempt.converged for attempt in tries])
        longer = converged & (lengths > LONGEST * self.reference.lengths[self.chosen])
        good = converged & ~longer
        found = np.stack([attempt.tangent for attempt in tries])
        return {
            "solver": f"solve_bvp, {style}",
            "maps": len(tries),
            "ms": 1e3 * float(np.median(times)),
            "failures": int(np.sum(~converged)),
            "longer": int(np.sum(longer)),
            "error": self.largest_error(found[good], self.chosen[good]),
        }

    def largest_error(self, tangents: Array, which: Array) -> float:
        """In the metric's norm, relative to the length."""
        off = tangents - self.reference.tangents[which]
        sizes = np.sqrt(self.metric.inner(self.base, off, off))
        return float(np.max(sizes / self.reference.lengths[which]))


def _length(metric: Metric, curve) -> float:
    """Metric length of one of SciPy's solutions."""
    times = np.linspace(0.0, 1.0, 2001)
    states = curve(times).T
    points, velocities = states[:, : metric.dim], states[:, metric.dim :]
    speeds = np.sqrt(metric.inner(points, velocities, velocities))
    return float(np.trapezoid(speeds, times))


def _warm(quick: bool) -> Table:
    table = Table(
        title="The same 300 maps from what is known already",
        columns=[
            Column("sigma", "sigma", "g"),
            Column("new", "anew, ms", ".0f"),
            Column("moved", "base moved, ms", ".0f"),
            Column("steps", "steps", ".1f"),
            Column("same", "base as before, ms", ".0f"),
            Column("failures", "failures"),
        ],
        notes=(
            "All 300 together, warm, as fits ask for them: with the sums over the data "
            f"from a table and a tolerance of {FIT_TOLERANCE:g}. From nothing; from "
            f"the geodesics of a base that was {SMALL_STEP:g} away; from the same "
            "geodesics. Steps are those of Newton's method, the mean over the maps "
            "from the base that has moved."
        ),
    )
    for sigma in SIGMAS[:1] if quick else SIGMAS:
        data = workload.half_ellipse()
        metric = workload.half_ellipse_metric(data, sigma).tabulated()
        base = workload.top_of_arc(data)
        moved = base + np.array([SMALL_STEP, 0.0])
        solve = partial(land.log_map, metric, points=data, tol=FIT_TOLERANCE)
        known = solve(base)
        found = solve(moved, curves=known)
        jobs = {
            "new": partial(solve, base),
            "moved": partial(solve, moved, curves=known),
            "same": partial(solve, base, curves=known),
        }
        times = {
            name: 1e3 * median_seconds(job, 3 if quick else 11)
            for name, job in jobs.items()
        }
        table.rows.append(
            {
                "sigma": sigma,
                **times,
                "steps": float(found.n_iter.mean()),
                "failures": int(np.sum(~found.converged)),
            }
        )
    return table


def _hard(quick: bool) -> Table:
    table = Table(
        title="Logarithm maps on hard data",
        columns=[
            Column("data", "data"),
            Column("dim", "D"),
            Column("maps", "maps"),
            Column("ms", "ms per map", ".2g"),
            Column("failures", "failures"),
        ],
        notes=(
            "From one of 300 points to all others and to points 1.5 and 2 times as far "
            "from the centre as the outermost ones; sigma three times the median "
            "distance to the nearest neighbour, rho 1 % of its square."
        ),
    )
    for name, data in workload.hard_data(quick):
        metric = workload.tight_metric(data)
        targets = np.concatenate([data[1:], workload.outside(data)])
        job = metric, data[0], targets
        found = land.log_map(*job)
        took = median_seconds(lambda job=job: land.log_map(*job), 1)
        table.rows.append(
            {
                "data": name,
                "dim": data.shape[1],
                "maps": len(targets),
                "ms": 1e3 * took / len(targets),
                "failures": int(np.sum(~found.converged)),
            }
        )
    return table
