"""Logarithm maps of the half-ellipse against SciPy's boundary value solver."""

from dataclasses import dataclass

import jax
import numpy as np
from threadpoolctl import threadpool_limits

import land
from benchmarks import scipy_baseline, workload
from benchmarks.common import Column, Table, best_and_median, seconds
from benchmarks.workload import Array
from land.metrics import Metric

SIGMAS = (0.3, 0.15, 0.1)
# How the right-hand side is written, and SciPy's tolerance: its default, and the one at
# which its tangents are as accurate as ours.
VARIANTS = (("plain", 1e-3), ("tuned", 1e-3), ("tuned", 1e-4))
REFERENCE_TOLERANCE = 1e-8
# A longer curve than this is another, worse geodesic.
LONGEST = 1.01
# Gauss points that the solver evaluates together.
KERNEL_POINTS = 2048


def run(quick: bool) -> list[Table]:
    """Time per map, failures, accuracy; then the kernel below it."""
    maps = Table(
        title="Logarithm maps, half-ellipse, 300 data points",
        columns=[
            Column("sigma", "sigma", "g"),
            Column("solver", "solver"),
            Column("maps", "maps"),
            Column("median_ms", "ms per map", ".3g"),
            Column("best_ms", "best", ".3g"),
            Column("ratio", "× land", ".1f"),
            Column("successful_ms", "ms where it succeeds", ".3g"),
            Column("failures", "failures"),
            Column("longer", "longer by > 1 %"),
            Column("iterations", "iterations", ".1f"),
            Column("tangent_error", "tangent error", ".0e"),
            Column("length_error", "length error", ".0e"),
        ],
        notes=(
            "`land.log_map` to all data points, warm, against `solve_bvp` in a loop "
            "over some of the same targets: plain, as the formulas read, with NumPy's "
            "own threads, and tuned, with land's algebra on one thread. Failures did "
            "not converge by the solver's own account. Iterations are L-BFGS steps for "
            "land, mesh refinements for `solve_bvp`. Errors are the largest among the "
            "maps that succeed, relative "
            f"to the length, against land at a tolerance of {REFERENCE_TOLERANCE:g}."
        ),
    )
    kernel = Table(
        title="The kernel below them: metric tensors and their derivatives",
        columns=[
            Column("sigma", "sigma", "g"),
            Column("points", "points"),
            Column("land_ns", "land, ns per pair", ".2f"),
            Column("numpy_ns", "NumPy, ns per pair", ".2f"),
        ],
        notes=(
            "Time per (point, datum) pair on points along the geodesics; NumPy is the "
            "right-hand side given to `solve_bvp`, on one thread and 100 points."
        ),
    )
    sigmas = SIGMAS[:1] if quick else SIGMAS
    for sigma in sigmas:
        contest = _Contest.prepare(sigma, n_targets=10 if quick else 50)
        maps.rows += contest.run(passes=1 if quick else 3, chunk=5 if quick else 10)
        kernel.rows.append(contest.kernel(repeats=20))
    return [maps, kernel]


@dataclass
class _Attempt:
    """One of SciPy's boundary value problems."""

    seconds: float
    converged: bool
    length: float
    tangent: Array
    iterations: int


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
        attempts: dict[tuple[str, float], list[list[_Attempt]]] = {
            variant: [] for variant in VARIANTS
        }
        for _ in range(passes):
            for tried in attempts.values():
                tried.append([])
            for first in range(0, len(self.chosen), chunk):
                times.append(seconds(self.ours))
                for variant, tried in attempts.items():
                    tried[-1] += [
                        self.scipys(index, *variant)
                        for index in self.chosen[first : first + chunk]
                    ]
        own = self.summarise_ours(result, times, attempts[VARIANTS[0]][0])
        rows = [own]
        rows += [self.summarise_scipys(*pair) for pair in attempts.items()]
        for row in rows:
            row["sigma"] = self.metric.sigma
            row["ratio"] = row["median_ms"] / own["median_ms"]
        return rows

    def ours(self) -> land.LogMap:
        return land.log_map(self.metric, self.base, self.points)

    def scipys(self, index: int, style: str, tol: float) -> _Attempt:
        metric, target = self.metric, self.points[index]
        write, threads = {
            "plain": (scipy_baseline.broadcast_acceleration, None),
            "tuned": (scipy_baseline.meshwise_acceleration, 1),
        }[style]
        equation = write(metric.data, metric.sigma, metric.rho)
        found = []

        def solve() -> None:
            found.append(scipy_baseline.log_map(equation, self.base, target, tol))

        # Newton's trial steps overflow; the solver copes.
        with threadpool_limits(threads), np.errstate(all="ignore"):
            elapsed = seconds(solve)
        solution = found[0]
        return _Attempt(
            seconds=elapsed,
            converged=solution.status == 0,
            length=_length(metric, solution.sol),
            tangent=solution.y[len(target) :, 0],
            iterations=solution.niter,
        )

    def summarise_ours(
        self, result: land.LogMap, times: list[float], rivals: list[_Attempt]
    ) -> dict:
        n = len(self.points)
        best, median = best_and_median(times)
        shortest = self.reference.lengths.copy()
        for index, rival in zip(self.chosen, rivals, strict=True):
            if rival.converged:
                shortest[index] = min(shortest[index], rival.length)
        longer = result.lengths > LONGEST * shortest
        moved = shortest > 0.0
        errors = self.tangent_errors(result.tangents, np.arange(n))[moved]
        return {
            "solver": "land",
            "maps": n,
            "best_ms": 1e3 * best / n,
            "median_ms": 1e3 * median / n,
            "successful_ms": 1e3 * median / n,
            "failures": int(np.sum(~result.converged)),
            "longer": int(np.sum(longer)),
            "iterations": float(result.n_iter[moved].mean()),
            "most_iterations": int(result.n_iter.max()),
            "tangent_error": float(errors.max()),
            "length_error": _largest_error(
                result.lengths[moved], self.reference.lengths[moved]
            ),
        }

    def summarise_scipys(
        self, variant: tuple[str, float], passes: list[list[_Attempt]]
    ) -> dict:
        tries = passes[0]  # all passes find the same
        n = len(tries)
        times = np.array([[attempt.seconds for attempt in tried] for tried in passes])
        best, median = best_and_median(times.mean(axis=1))
        lengths = np.array([attempt.length for attempt in tries])
        converged = np.array([attempt.converged for attempt in tries])
        shortest = self.reference.lengths[self.chosen]
        longer = converged & (lengths > LONGEST * shortest)
        good = converged & ~longer
        found = np.stack([attempt.tangent for attempt in tries])
        errors = self.tangent_errors(found, self.chosen)[good]
        return {
            "solver": "solve_bvp {}, tol {:g}".format(*variant),
            "maps": n,
            "best_ms": 1e3 * best,
            "median_ms": 1e3 * median,
            "successful_ms": float(1e3 * np.median(times[:, good].mean(axis=1))),
            "failures": int(np.sum(~converged)),
            "longer": int(np.sum(longer)),
            "iterations": float(np.mean([attempt.iterations for attempt in tries])),
            "tangent_error": float(errors.max()),
            "length_error": _largest_error(lengths[good], shortest[good]),
        }

    def tangent_errors(self, tangents: Array, which: Array) -> Array:
        """Errors in the metric's norm, relative to the length."""
        off = tangents - self.reference.tangents[which]
        sizes = np.sqrt(self.metric.inner(self.base, off, off))
        return sizes / np.maximum(self.reference.lengths[which], 1e-300)

    def kernel(self, repeats: int) -> dict:
        """Nanoseconds per pair of what both solvers spend most of their time in."""
        metric = self.metric
        curves = self.reference.curves.reshape(-1, metric.dim)
        rng = np.random.default_rng(0)
        points = curves[rng.integers(len(curves), size=KERNEL_POINTS)]
        with jax.enable_x64(True):
            ours = [
                seconds(lambda: jax.block_until_ready(_kernel(metric, points, points)))
                for _ in range(repeats)
            ]
        equation = scipy_baseline.meshwise_acceleration(
            metric.data, metric.sigma, metric.rho
        )
        mesh = np.ascontiguousarray(points[:100].T)
        with threadpool_limits(1):
            theirs = [seconds(lambda: equation(mesh, mesh)) for _ in range(repeats)]
        n = len(metric.data)
        return {
            "sigma": metric.sigma,
            "points": len(points),
            "land_ns": 1e9 * float(np.median(ours[1:])) / (len(points) * n),
            "numpy_ns": 1e9 * float(np.median(theirs[1:])) / (100 * n),
        }


@jax.jit
def _kernel(metric: Metric, points: jax.Array, cotangents: jax.Array) -> tuple:
    tensors, pull_back = jax.vjp(metric.tensor_batch, points)
    return tensors, pull_back(cotangents)


def _largest_error(values: Array, truth: Array) -> float:
    return float(np.max(np.abs(values / truth - 1.0)))


def _length(metric: Metric, curve) -> float:
    """Metric length of one of SciPy's solutions."""
    times = np.linspace(0.0, 1.0, 2001)
    states = curve(times).T
    points, velocities = states[:, : metric.dim], states[:, metric.dim :]
    speeds = np.sqrt(metric.inner(points, velocities, velocities))
    return float(np.trapezoid(speeds, times))
