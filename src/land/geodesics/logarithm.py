"""The logarithm map: geodesics between given points, and their initial velocities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from land._device import Mask, in_float64, in_lockstep
from land._validation import check_count, check_points, check_positive
from land.geodesics.boundary import solve_boundary
from land.geodesics.collocation import Geodesics
from land.geodesics.equation import check_metric, dimension, linearised, pair_up
from land.geodesics.exponential import MAX_STEPS, integrate_fields
from land.geodesics.newton import finish_curves
from land.geodesics.shortest import shortest_geodesics
from land.metrics import Metric

Array = NDArray[np.float64]

MAX_ITER = 500
# Derivatives along known geodesics: relative size of Newton's last step, or error of
# integration.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class LogMap:
    """Result of `land.log_map`; leading axes follow the points handed in.

    Attributes
    ----------
    tangents : ndarray of shape (..., D)
        Log(x): velocities at the base of the geodesics that reach x in unit time.
    lengths : ndarray of shape (...)
        Lengths of the geodesics, the distances.
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
    converged: NDArray[np.bool_]
    end_velocities: Array
    n_iter: NDArray[np.int64]
    _metric: Metric = field(repr=False)
    _solution: Geodesics = field(repr=False)
    _targets: Array = field(repr=False)
    _center: Array = field(repr=False)
    _n_segments: int = field(repr=False)

    @cached_property
    def curves(self) -> Array:
        """The geodesics at equally spaced times, base first: (..., n_segments + 1, D).

        They are computed when they are first asked for.
        """
        samples = self._solution.sample(np.linspace(0.0, 1.0, self._n_segments + 1))
        samples[:, 0], samples[:, -1] = self._solution.bases, self._targets
        return (self._center + samples).reshape(*self.lengths.shape, *samples.shape[1:])

    @cached_property
    def jacobians(self) -> Array:
        """DExp_base(v) at the tangents v, in coordinates, (..., D, D).

        What `land.exp_jacobian` returns for the tangents, but from the curves: faster,
        and more accurate on long ways. NaN where a geodesic did not converge or the
        derivative could not be computed. Computed when first asked for.
        """
        solution = self._solution
        slopes = self._newton_slopes(solution.converged)
        dim = solution.bases.shape[1]
        jacobians = np.asarray(np.linalg.inv(slopes[..., dim:]))
        # In many dimensions, and where Newton's method fails: less accurate, as the
        # integration starts from a tangent that is never exact.
        unknown = ~np.isfinite(jacobians).all(axis=(1, 2))
        left = np.flatnonzero(solution.converged & unknown)
        ends = solution.bases[left], solution.tangents[left]
        with jax.enable_x64(True):
            found, arrivals = integrate_fields(
                self._metric, *ends, _TOLERANCE, MAX_STEPS
            )
        found[arrivals.failed] = np.nan
        jacobians[left] = found
        return jacobians.reshape(*self.lengths.shape, dim, dim)

    @cached_property
    def log_dets(self) -> Array:
        """log|det DExp_base(v)| at the tangents v, shape (...); see `jacobians`."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.linalg.slogdet(self.jacobians)[1])

    @cached_property
    def responses(self) -> Array | None:
        """Minus the derivatives of the tangents in the base, (..., D, D).

        In coordinates. NaN where a geodesic did not converge; None where Newton's
        method is not used, which has them: in many dimensions.
        """
        solution, dim = self._solution, self.tangents.shape[-1]
        if not solution.slopes.size:
            return None
        unknown = np.asarray(~np.isfinite(solution.slopes).all(axis=(1, 2)))
        found = self._newton_slopes(solution.converged & unknown)
        slopes = np.where(unknown[:, None, None], found, solution.slopes)
        return -slopes[..., :dim].reshape(*self.lengths.shape, dim, dim)

    @np.errstate(all="ignore")  # where it fails; NaN says so
    def _newton_slopes(self, wanted: Mask) -> Array:
        """Derivatives of wanted tangents in both ends, by Newton's method.

        Shape (n, D, 2 * D); NaN where there are none.
        """
        solution, targets = self._solution, self._targets
        n, dim = targets.shape
        slopes = np.full((n, dim, 2 * dim), np.nan)
        if not solution.slopes.size:
            return slopes
        for which, curves in solution.final_meshes():
            kept, own = curves.take(wanted[which]), which[wanted[which]]
            if len(own):
                ends = solution.bases[own], targets[own]
                solver = finish_curves(*ends, kept.rates, kept.widths, _TOLERANCE)
                with jax.enable_x64(True):
                    equation = partial(linearised, self._metric)
                    (done,) = in_lockstep(equation, [solver])
                slopes[own[done.found]] = done.slopes[done.found]
        at_rest = wanted & (solution.lengths == 0.0)
        slopes[at_rest] = np.hstack([-np.eye(dim), np.eye(dim)])
        return slopes

    def predicted(self, rows: NDArray[np.intp], points: Array) -> Array:
        """Tangents of points near those of `rows`, to first order; NaN if not known."""
        dim = points.shape[1]
        if not self._solution.slopes.size:
            return np.full(points.shape, np.nan)
        slopes = self._solution.slopes[rows, :, dim:]
        lines = points - self._center - self._targets[rows]
        return self.tangents[rows] + np.einsum("nij,nj->ni", slopes, lines)

    def take(self, rows: NDArray[np.intp]) -> LogMap:
        """Some of the items of a result with one leading axis."""
        arrays: dict[str, Any] = {name: getattr(self, name)[rows] for name in _FIELDS}
        return replace(self, **arrays, _solution=self._solution.take(rows))

    @staticmethod
    def concatenate(parts: Sequence[LogMap]) -> LogMap:
        """Items of several results with one leading axis, one after the other."""
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in _FIELDS
        }
        solution = Geodesics.concatenate([part._solution for part in parts])
        return replace(parts[0], **arrays, _solution=solution)


_FIELDS = (
    "tangents",
    "lengths",
    "converged",
    "end_velocities",
    "n_iter",
    "_targets",
)


@in_float64
def log_map(
    metric: Metric,
    base: ArrayLike,
    points: ArrayLike,
    *,
    curves: ArrayLike | LogMap | None = None,
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
    curves : LogMap or array_like of shape (..., k + 1, D), optional
        First guesses: an earlier result for nearby bases and points, or points along
        curves. Their ends are moved to `base` and `points`. Geodesics
        that start from an earlier result are compared with their neighbours, as new
        ones are; those that start from given curves stay near them.
    tol : float
        Relative error allowed in lengths and tangents.
    max_iter : int
        Iterations after which a geodesic is given up.
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
    dim = dimension(metric)
    base_points = check_points("base", base, dim)
    ends = check_points("points", points, dim, allow_empty=True)
    tol = check_positive("tol", tol)
    max_iter = check_count("max_iter", max_iter)
    n_segments = check_count("n_segments", n_segments)
    bases, targets, shape = pair_up("base", base_points, "points", ends)
    check_metric(metric, base=base_points, points=ends)
    metric, center = metric.centred()
    bases, targets = bases - center, targets - center
    if isinstance(curves, LogMap) and curves.lengths.shape != shape:
        raise ValueError(
            f"curves must be a result for points of shape {ends.shape}, "
            f"got one of shape {curves.tangents.shape}"
        )
    if curves is None or isinstance(curves, LogMap):
        earlier = None if curves is None else curves._solution
        solution = shortest_geodesics(metric, bases, targets, tol, max_iter, earlier)
    else:
        guesses = _given_curves(curves, center, bases, targets, shape)
        solution = solve_boundary(metric, bases, targets, guesses, tol, max_iter)
    return LogMap(
        tangents=solution.tangents.reshape(*shape, dim),
        lengths=solution.lengths.reshape(shape),
        converged=solution.converged.reshape(shape),
        end_velocities=solution.end_velocities.reshape(*shape, dim),
        n_iter=solution.n_iter.reshape(shape),
        _metric=metric,
        _solution=solution,
        _targets=targets,
        _center=center,
        _n_segments=n_segments,
    )


def _given_curves(
    curves: ArrayLike,
    center: Array,
    bases: Array,
    targets: Array,
    shape: tuple[int, ...],
) -> Array:
    """A user's curves (n, k, D), with ends where they must be."""
    dim = bases.shape[1]
    guesses = check_points("curves", curves, dim, allow_empty=True)
    if guesses.shape[:-2] != shape or guesses.shape[-2] < 2:
        raise ValueError(
            f"curves must have shape {(*shape, 'k', dim)} with k >= 2 points on each "
            f"curve, got {guesses.shape}"
        )
    guesses = guesses.reshape(len(bases), guesses.shape[-2], dim) - center
    times = np.linspace(0.0, 1.0, guesses.shape[1])[:, None]
    start, end = bases - guesses[:, 0], targets - guesses[:, -1]
    return guesses + (1.0 - times) * start[:, None] + times * end[:, None]


class Geodesic:
    """A geodesic on [0, 1]; call it with times to get points.

    Attributes
    ----------
    start, end : ndarray of shape (D,)
    start_velocity, end_velocity : ndarray of shape (D,)
    length : float
    converged : bool
        Whether length and velocities meet the tolerance that was asked for.
    """

    def __init__(
        self, start: Array, end: Array, center: Array, solution: Geodesics
    ) -> None:
        self._center = center
        self._solution = solution
        self.start = start
        self.end = end
        self.start_velocity = solution.tangents[0]
        self.end_velocity = solution.end_velocities[0]
        self.length = float(solution.lengths[0])
        self.converged = bool(solution.converged[0])

    def __call__(self, times: ArrayLike) -> Array:
        """Points at `times` in [0, 1]: (...) -> (..., D)."""
        try:
            moments = np.asarray(times, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"times must be real numbers: {error}") from None
        if not np.all((moments >= 0.0) & (moments <= 1.0)):
            raise ValueError("times must lie in [0, 1]")
        points = self._center + self._solution.sample(moments.reshape(-1))[0]
        return points.reshape(*moments.shape, len(self.start))

    def __repr__(self) -> str:
        verdict = "converged" if self.converged else "not converged"
        return f"Geodesic(length={self.length:.6g}, {verdict})"


@in_float64
def geodesic(
    metric: Metric,
    start: ArrayLike,
    end: ArrayLike,
    *,
    tol: float = 1e-6,
    max_iter: int = MAX_ITER,
) -> Geodesic:
    """The shortest curve from `start` to `end` that could be found.

    Parameters
    ----------
    metric : Metric
        The metric.
    start, end : array_like of shape (D,)
        The ends.
    tol : float
        Relative error allowed in length and velocities.
    max_iter : int
        Iterations after which a geodesic is given up.

    Returns
    -------
    Geodesic
        A callable with `length` and `converged`.

    Examples
    --------
    >>> import land
    >>> curve = land.geodesic(land.metrics.EuclideanMetric(2), [0, 0], [3, 4])
    >>> round(curve.length, 9), curve(0.5).round(9).tolist()
    (5.0, [1.5, 2.0])
    """
    dim = dimension(metric)
    first = check_points("start", start, dim, ndim=1)
    last = check_points("end", end, dim, ndim=1)
    check_metric(metric, start=first, end=last)
    found = log_map(metric, first, last, tol=tol, max_iter=max_iter)
    return Geodesic(first, last, found._center, found._solution)
