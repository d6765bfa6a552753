"""The logarithm map: initial velocities of the geodesics to given points."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from land._precision import in_float64
from land._validation import check_count, check_points, check_positive
from land.geodesics.collocation import (
    ORDER,
    PiecewiseCurves,
    fit_polylines,
    split_elements,
)
from land.geodesics.graph import Polylines, shortest_paths
from land.geodesics.problem import check_metric, pair_up
from land.geodesics.relaxation import Boundary, empty_state, relax_curves
from land.geodesics.slots import Indices, Mask, run_in_slots, slot_count
from land.metrics import Metric

Array = NDArray[np.float64]

# Gauss points advanced together: enough to keep the matrix products efficient, few
# enough that stragglers waste little. At least `_SMALL_BLOCK` curves.
_BLOCK_POINTS = 2048
_SMALL_BLOCK = 8
_FEWEST_ELEMENTS, _MOST_ELEMENTS = 2, 128
# First mesh: Gauss points at most this far apart, in units of the metric's resolution.
_SPACING = 0.75
MAX_ITER = 500


@dataclass(frozen=True)
class LogMap:
    """Result of `land.log_map`; leading axes follow the points handed in.

    Attributes
    ----------
    tangents : ndarray of shape (..., D)
        Log(x): velocities at the base of the geodesics that reach x in unit time.
    lengths : ndarray of shape (...)
        Lengths of the geodesics, the distances.
    curves : ndarray of shape (..., n_segments + 1, D)
        The geodesics at equally spaced times, base first.
    converged : ndarray of shape (...)
        Whether length and tangent meet the tolerance. Where they do not, the other
        fields hold the best curve that was found.
    end_velocities : ndarray of shape (..., D)
        Velocities on arrival.
    n_iter : ndarray of shape (...)
        Iterations spent.
    """

    tangents: Array
    lengths: Array
    curves: Array
    converged: NDArray[np.bool_]
    end_velocities: Array
    n_iter: NDArray[np.int64]


@in_float64
def log_map(
    metric: Metric,
    base: ArrayLike,
    points: ArrayLike,
    *,
    curves: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = MAX_ITER,
    n_segments: int = 32,
) -> LogMap:
    """Geodesics from `base` to `points`, all in one batch.

    Shortest paths through the metric's landmarks are relaxed to locally shortest
    curves, on meshes that are refined until length and tangent meet the tolerance.

    Parameters
    ----------
    metric : Metric
        The metric.
    base : array_like of shape (D,) or (..., D)
        Where the geodesics start; one point for all, or one for each of `points`.
    points : array_like of shape (..., D)
        Where they end.
    curves : array_like of shape (..., k + 1, D), optional
        First guesses at equally spaced times, such as the `curves` of an earlier
        result. Their ends are moved to `base` and `points`.
    tol : float
        Relative error allowed in lengths and tangents.
    max_iter : int
        Iterations allowed on each mesh.
    n_segments : int
        Number of segments in which the curves are returned.

    Returns
    -------
    LogMap
        Tangents, lengths, curves and a verdict for each point.

    Examples
    --------
    >>> import land
    >>> flat = land.metrics.EuclideanMetric(2)
    >>> result = land.log_map(flat, [1.0, 0.0], [[1.0, 2.0]])
    >>> result.lengths.round(9).tolist(), result.converged.tolist()
    ([2.0], [True])
    """
    dim = metric.dim
    base_points = check_points("base", base, dim)
    ends = check_points("points", points, dim, allow_empty=True)
    tol = check_positive("tol", tol)
    max_iter = check_count("max_iter", max_iter)
    n_segments = check_count("n_segments", n_segments)
    bases, targets, shape = pair_up("base", base_points, "points", ends)
    check_metric(metric, base=base_points, points=ends)
    if curves is None:
        guesses = shortest_paths(metric, bases, targets)
    else:
        guesses = _given_curves(curves, bases, targets, shape)
    solution = connect(metric, bases, targets, guesses, tol, max_iter)
    times = np.linspace(0.0, 1.0, n_segments + 1)
    return LogMap(
        tangents=solution.tangents.reshape(*shape, dim),
        lengths=solution.lengths.reshape(shape),
        curves=solution.sample(times).reshape(*shape, n_segments + 1, dim),
        converged=solution.converged.reshape(shape),
        end_velocities=solution.end_velocities.reshape(*shape, dim),
        n_iter=solution.n_iter.reshape(shape),
    )


@dataclass
class Connections:
    """Solved boundary value problems, with their curves grouped by mesh."""

    bases: Array
    tangents: Array
    end_velocities: Array
    lengths: Array
    converged: NDArray[np.bool_]
    n_iter: NDArray[np.int64]
    meshes: list[tuple[Indices, PiecewiseCurves]]

    @classmethod
    def at_rest(cls, bases: Array) -> Connections:
        """Geodesics that stay where they are."""
        n = len(bases)
        return cls(
            bases=bases,
            tangents=np.zeros_like(bases),
            end_velocities=np.zeros_like(bases),
            lengths=np.zeros(n),
            converged=np.ones(n, dtype=bool),
            n_iter=np.zeros(n, dtype=np.int64),
            meshes=[],
        )

    def sample(self, times: Array) -> Array:
        """Points of all curves at `times`: (k,) -> (n, k, D)."""
        points = np.repeat(self.bases[:, None], len(times), axis=1)
        for which, curves in self.meshes:
            points[which] = curves.positions(times)
        return points


def connect(
    metric: Metric,
    bases: Array,
    targets: Array,
    guesses: Polylines,
    tol: float,
    max_iter: int,
) -> Connections:
    """Solve boundary value problems from first guesses, refining meshes as needed."""
    solution = Connections.at_rest(bases)
    tasks = _Tasks.start(metric, bases, targets, guesses)
    elements = _FEWEST_ELEMENTS
    while tasks and elements <= _MOST_ELEMENTS:
        now = [task for task in tasks if task.rates.shape[1] == elements]
        tasks = [task for task in tasks if task.rates.shape[1] != elements]
        if now:
            task = _Tasks.merge(now)
            unresolved = _solve_on_mesh(
                metric, bases, targets, task, solution, tol, max_iter
            )
            if len(unresolved.which) and elements < _MOST_ELEMENTS:
                rates, widths = split_elements(unresolved.rates, unresolved.widths)
                tasks.append(replace(unresolved, rates=rates, widths=widths))
        elements *= 2
    return solution


@dataclass(frozen=True)
class _Tasks:
    """Problems to be solved on meshes of one size."""

    which: Indices
    rates: Array
    widths: Array

    @staticmethod
    def start(
        metric: Metric, bases: Array, targets: Array, guesses: Polylines
    ) -> list[_Tasks]:
        """First guesses on meshes fine enough to see the metric's features."""
        steps = np.linalg.norm(np.diff(guesses.vertices, axis=1), axis=2)
        elements = np.full(len(bases), _FEWEST_ELEMENTS)
        if metric.resolution is not None:
            cells = steps.sum(axis=1) / (_SPACING * metric.resolution * ORDER)
            levels = np.ceil(np.log2(np.maximum(cells / _FEWEST_ELEMENTS, 1.0)))
            elements = _FEWEST_ELEMENTS * 2 ** levels.astype(int)
        elements = np.minimum(elements, _MOST_ELEMENTS // 2)
        elements[np.all(bases == targets, axis=1)] = 0  # nothing to do
        tasks = []
        for size in np.unique(elements[elements > 0]):
            which = np.flatnonzero(elements == size)
            # Long problems first: stragglers then share the block with others.
            which = which[np.argsort(-guesses.lengths[which], kind="stable")]
            rates, widths = fit_polylines(
                guesses.vertices[which], guesses.times[which], int(size)
            )
            tasks.append(_Tasks(which, rates, widths))
        return tasks

    @staticmethod
    def merge(tasks: list[_Tasks]) -> _Tasks:
        return _Tasks(
            np.concatenate([task.which for task in tasks]),
            np.concatenate([task.rates for task in tasks]),
            np.concatenate([task.widths for task in tasks]),
        )


def _solve_on_mesh(
    metric: Metric,
    bases: Array,
    targets: Array,
    task: _Tasks,
    solution: Connections,
    tol: float,
    max_iter: int,
) -> _Tasks:
    """Relax on one mesh, store the results, return what needs a finer mesh."""
    inverse_base = _inverse_tensors(metric, bases[task.which])
    inverse_end = _inverse_tensors(metric, targets[task.which])
    n = len(task.which)
    block = max(_SMALL_BLOCK, _BLOCK_POINTS // (ORDER * task.rates.shape[1]))
    n_slots = slot_count(n, _SMALL_BLOCK, block)
    state = empty_state(n_slots, task.rates.shape[1], inverse_base.shape[1:])
    rates = np.empty_like(task.rates)
    accurate = np.zeros(n, dtype=bool)

    def advance(problems: Indices, fresh: Mask, leave_at: int) -> Mask:
        nonlocal state
        boundary = Boundary(
            base=bases[task.which[problems]],
            inverse_base=inverse_base[problems],
            inverse_end=inverse_end[problems],
            widths=task.widths[problems],
        )
        state = relax_curves(
            metric,
            state,
            fresh,
            boundary,
            task.rates[problems],
            tol,
            max_iter,
            leave_at,
        )
        return ~np.asarray(state.running)

    def collect(slots: Indices, problems: Indices) -> None:
        rates[problems] = np.asarray(state.curve.rates)[slots]
        multiplier = np.asarray(state.multiplier)[slots]
        drift = np.asarray(state.curve.drift)[slots]
        accurate[problems] = np.asarray(state.decrement)[slots] <= tol**2
        accurate[problems] &= np.asarray(state.mismatch)[slots] <= tol
        which = task.which[problems]
        solution.lengths[which] = np.sqrt(2.0 * np.asarray(state.curve.energy)[slots])
        solution.tangents[which] = _raise(inverse_base[problems], multiplier - drift)
        solution.end_velocities[which] = _raise(inverse_end[problems], multiplier)
        solution.n_iter[which] += np.asarray(state.iterations)[slots]

    run_in_slots(n, n_slots, advance, collect)
    solution.converged[task.which] = accurate
    done = accurate if task.rates.shape[1] < _MOST_ELEMENTS else np.ones(n, dtype=bool)
    which = task.which[done]
    curves = PiecewiseCurves(bases[which], rates[done], task.widths[done])
    solution.meshes.append((which, curves))
    return _Tasks(task.which[~done], rates[~done], task.widths[~done])


def _inverse_tensors(metric: Metric, points: Array) -> Array:
    tensors = metric.host_tensors(points)
    return 1.0 / tensors if tensors.ndim == 2 else np.linalg.inv(tensors)


def _raise(inverse_tensors: Array, momenta: Array) -> Array:
    """Velocities M^-1 p."""
    if inverse_tensors.ndim == 2:
        return inverse_tensors * momenta
    return np.einsum("nij,nj->ni", inverse_tensors, momenta)


def _given_curves(
    curves: ArrayLike, bases: Array, targets: Array, shape: tuple[int, ...]
) -> Polylines:
    """A user's curves as polylines whose ends are where they must be."""
    dim = bases.shape[1]
    guesses = check_points("curves", curves, dim, allow_empty=True)
    if guesses.shape[:-2] != shape or guesses.shape[-2] < 2:
        raise ValueError(
            f"curves must have shape {(*shape, 'k', dim)} with k >= 2 points on each "
            f"curve, got {guesses.shape}"
        )
    guesses = guesses.reshape(len(bases), -1, dim)
    times = np.linspace(0.0, 1.0, guesses.shape[1])
    shift_start, shift_end = bases - guesses[:, 0], targets - guesses[:, -1]
    vertices = (
        guesses
        + (1.0 - times[:, None]) * shift_start[:, None]
        + times[:, None] * shift_end[:, None]
    )
    steps = np.linalg.norm(np.diff(vertices, axis=1), axis=2)
    return Polylines(
        vertices=vertices,
        times=np.broadcast_to(times, (len(bases), len(times))),
        lengths=steps.sum(axis=1),
    )
