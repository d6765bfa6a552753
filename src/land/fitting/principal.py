"""Principal geodesics: tangent planes whose image under Exp is near the data.

At the intrinsic mean the leading directions of the tangents are nearly that plane. But
geodesics along curved data run apart: of two that leave the mean in almost the same
direction, one stays with the data and one does not. So the plane is turned, and the
mean moved across it, until what the plane misses is smallest where the data are and not
in the tangent space. Both answers are PCA's if the metric is flat.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from land.fitting.least_squares import intrinsic_mean
from land.fitting.problem import FitProblem
from land.fitting.starts import first_mean
from land.geodesics import LogMap, exp_map
from land.metrics import Metric

Array = NDArray[np.float64]

# Steps are halved until one is an improvement, so many times.
_HALVINGS = 6


@dataclass(frozen=True)
class Principal:
    """A mean, and orthonormal directions there.

    Attributes
    ----------
    mean : ndarray of shape (D,)
    components : ndarray of shape (k, D)
        In normal coordinates at the mean, the one of largest variance first.
    variances : ndarray of shape (k,)
        Mean squares of the data's coordinates along the components.
    total : float
        Mean square of all of their normal coordinates.
    """

    mean: Array
    components: Array
    variances: Array
    total: float
    n_iter: int
    converged: bool


def fit_principal(
    problem: FitProblem,
    weights: Array,
    count: int,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
) -> Principal:
    """Find `count` components, by Gauss-Newton steps from those at the intrinsic mean.

    `tol` is the relative fall of the squared error at which to stop.
    """
    start = first_mean(problem, weights, "least_squares", rng)
    limits = max_iter, tol, rng
    mean, logs, converged = intrinsic_mean(problem, weights, start, *limits)
    spot = _Spot(problem, weights, mean, logs)
    frame = np.linalg.eigh(spot.moment)[1][:, ::-1][:, :count]
    steps = 0
    if count < len(mean) and logs.responses is not None:
        spot, frame, steps, converged = _descend(spot, frame, max_iter, tol)
    variances, turn = np.linalg.eigh(frame.T @ spot.moment @ frame)
    components = (frame @ turn[:, ::-1]).T
    # As scikit-learn's PCA: the largest entry of each is positive.
    largest = np.argmax(np.abs(components), axis=1)
    signs = np.sign(components[np.arange(count), largest])
    return Principal(
        mean=spot.mean,
        components=signs[:, None] * components,
        variances=variances[::-1],
        total=float(np.trace(spot.moment)),
        n_iter=max(steps, 1),
        converged=converged,
    )


def normal_frame(metric: Metric, mean: Array) -> tuple[Array, Array]:
    """The symmetric root of the metric's tensor, and its inverse."""
    values, vectors = np.linalg.eigh(metric.tensor(mean))
    roots = np.sqrt(values)
    return (vectors * roots) @ vectors.T, (vectors / roots) @ vectors.T


class _Spot:
    """What is known of the data at one mean, in normal coordinates there."""

    def __init__(
        self, problem: FitProblem, weights: Array, mean: Array, logs: LogMap
    ) -> None:
        self.problem, self.mean, self.logs = problem, mean, logs
        self.weights = weights
        self.root, self.inverse = normal_frame(problem.metric, mean)
        usable = np.asarray(np.isfinite(logs.tangents).all(axis=1))
        self.own = np.where(usable, weights, 0.0)
        self.coordinates = np.where(usable[:, None], logs.tangents, 0.0) @ self.root
        self.moment = (self.own[:, None] * self.coordinates).T @ self.coordinates
        self.moment /= self.own.sum()

    def derivatives(self) -> tuple[Array, Array]:
        """DExp at the tangents, weighted, and minus the derivatives in the mean.

        DExp leads to orthonormal coordinates at the data.
        """
        metric, data = self.problem.metric, self.problem.data
        frames = np.linalg.cholesky(metric.tensor(data)).swapaxes(1, 2)
        jacobians = frames @ self.logs.jacobians @ self.inverse
        responses = self.logs.responses
        assert responses is not None  # the caller has seen them
        responses = self.root @ responses @ self.inverse
        both = np.isfinite(jacobians) & np.isfinite(responses)
        known = np.asarray(both.all(axis=(1, 2)))
        own = np.where(known, self.own, 0.0)
        # Data that are lost must not make a mean better.
        scales = np.sqrt(own) / max(float(own.sum()), 1e-300)
        kept = known[:, None, None]
        jacobians = scales[:, None, None] * np.where(kept, jacobians, 0.0)
        return jacobians, np.where(kept, responses, 0.0)

    def moved(self, shift: Array) -> _Spot:
        """The same at the end of a tangent, which is in normal coordinates."""
        metric, data = self.problem.metric, self.problem.data
        mean = exp_map(metric, self.mean, self.inverse @ shift).points
        bases = np.broadcast_to(mean, data.shape)
        logs = self.problem.map_pairs(bases, data, self.logs)
        return _Spot(self.problem, self.weights, mean, logs)


def _descend(
    spot: _Spot, frame: Array, max_iter: int, tol: float
) -> tuple[_Spot, Array, int, bool]:
    """Steps until one lowers the squared error by a smaller share than `tol`."""
    jacobians, responses = spot.derivatives()
    error = _error(spot, frame, jacobians)
    for step in range(1, max_iter + 1):
        turn, shift = _gauss_newton(spot, frame, jacobians, responses)
        for halving in range(_HALVINGS):
            size = 0.5**halving
            trial = spot.moved(size * shift)
            carried = trial.root @ spot.inverse @ (frame + size * turn)
            bent = np.linalg.qr(carried)[0]
            derivatives = trial.derivatives()
            lower = _error(trial, bent, derivatives[0])
            if lower < error:
                break
        else:
            return spot, frame, step, True
        done = error - lower < tol * error
        spot, frame, error = trial, bent, lower
        jacobians, responses = derivatives
        if done:
            return spot, frame, step, True
    return spot, frame, max_iter, False


def _error(spot: _Spot, frame: Array, jacobians: Array) -> float:
    """Mean squared distance of the data from the plane, to first order."""
    missed = spot.coordinates - spot.coordinates @ frame @ frame.T
    return float(np.sum(np.einsum("nij,nj->ni", jacobians, missed) ** 2))


def _gauss_newton(
    spot: _Spot, frame: Array, jacobians: Array, responses: Array
) -> tuple[Array, Array]:
    """How to turn the plane, (D, k), and move the mean across it, (D,).

    Turning by T changes what is missed by -T z, with coordinates z in the plane, and
    moving the mean by s changes it by minus the response to s.
    """
    dim, count = frame.shape
    across = np.eye(dim) - frame @ frame.T
    along = spot.coordinates @ frame
    missed = jacobians @ across
    columns = [missed * along[:, a, None, None] for a in range(count)]
    columns.append(missed @ responses @ across)
    system = np.concatenate(columns, axis=2).reshape(-1, dim * (count + 1))
    values = np.einsum("nij,nj->ni", missed, spot.coordinates).reshape(-1)
    found = np.linalg.lstsq(system, values)[0].reshape(count + 1, dim) @ across
    return found[:-1].T, found[-1]
