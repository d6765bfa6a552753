"""Batched initial value problems: Dormand-Prince 8(5,3) with a step size per item.

All geodesics advance together, each with its own time and step size; those that have
arrived leave the batch. Diffrax under vmap is as fast (docs/performance), but would be
one more dependency, and compiles for every number of geodesics.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from land._device import Mask, take_rows
from land.geodesics.dormand_prince import (
    FIFTH,
    INTERPOLANT,
    STAGES,
    TABLEAU,
    THIRD,
)
from land.geodesics.equation import forces, linearised
from land.metrics import Metric
from land.metrics.tensors import invert, lower, squared_norm

Array = NDArray[np.float64]

# Standard controller constants (Hairer, Norsett, Wanner, Solving ODEs I, II.4-5).
_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 6.0
# A step this short (of a unit of time) means the solution cannot be continued.
_SMALLEST_STEP = 1e-12
# Numbers that the stages of a batch may have: 256 MB.
_MOST_NUMBERS = 2**25


class Arrivals(NamedTuple):
    """Geodesics and Jacobi fields along them, integrated to t = 1.

    Row 0 of the axis r is the geodesic, further rows are fields, in coordinates.
    """

    position: Array  # (n, r, D)
    velocity: Array  # (n, r, D)
    samples: Array  # (n, n_times, r, D) at the times asked for
    attempts: NDArray[np.int64]  # (n,) steps tried
    failed: Mask  # (n,)


class _Batch(NamedTuple):
    """Geodesics on their way."""

    which: NDArray[np.intp]  # (n,) places in the answer
    time: Array  # (n,)
    step: Array  # (n,) proposed step
    position: Array  # (n, r, D)
    velocity: Array  # (n, r, D)
    acceleration: Array  # (n, r, D)
    unit: Array  # (n, r) squared length against which errors are measured at least
    attempts: NDArray[np.int64]  # (n,)


def integrate(
    metric: Metric,
    position: Array,
    velocity: Array,
    times: Array,
    tol: float,
    max_steps: int,
) -> Arrivals:
    """Integrate rows (n, r, D) of geodesics and their Jacobi fields to t = 1."""
    n, rows, dim = position.shape
    if metric.is_flat or n == 0:
        return Arrivals(
            position=position + velocity,
            velocity=velocity.copy(),
            samples=position[:, None] + times[:, None, None] * velocity[:, None],
            attempts=np.zeros(n, dtype=np.int64),
            failed=np.zeros(n, dtype=bool),
        )
    at_once = max(1, _MOST_NUMBERS // (2 * len(TABLEAU) * rows * dim))
    parts = []
    for first in range(0, n, at_once):
        own = slice(first, first + at_once)
        problem = metric, position[own], velocity[own], times
        with np.errstate(all="ignore"):
            parts.append(_integrate(*problem, tol, max_steps))
    return Arrivals(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _integrate(
    metric: Metric,
    position: Array,
    velocity: Array,
    times: Array,
    tol: float,
    max_steps: int,
) -> Arrivals:
    """The same for one batch."""
    batch = _start(metric, position, velocity)
    lost = ~np.isfinite(batch.acceleration).all(axis=(1, 2))
    arrivals = Arrivals(
        position=position.copy(),
        velocity=velocity.copy(),
        samples=np.repeat(position[:, None], len(times), axis=1),
        attempts=np.zeros(len(position), dtype=np.int64),
        failed=np.array(lost),
    )
    still = (batch.unit[:, 0] == 0.0) & (position.shape[1] == 1)
    batch = take_rows(batch, ~lost & ~still)
    batch.unit[batch.unit == 0.0] = 1.0
    while len(batch.which):
        last = batch.time + batch.step >= 1.0 - 1e-13
        step = np.where(last, 1.0 - batch.time, batch.step)
        count = len(TABLEAU) if len(times) else STAGES + 1
        stages = _Stages(metric, batch, step, count)
        error = stages.error() / tol
        accepted = error <= 1.0
        if len(times):
            _sample(stages, times, last, accepted, arrivals)
        # NaN compares false: an item that left the metric's domain shrinks its step.
        factor = _SAFETY * np.maximum(error, 1e-12) ** (-1.0 / 8.0)
        factor = np.nan_to_num(factor, nan=_SHRINK, posinf=_SHRINK)
        changes: list[tuple[Array, Array]] = [
            (batch.position, stages.position),
            (batch.velocity, stages.velocity[STAGES]),
            (batch.acceleration, stages.acceleration[STAGES]),
        ]
        for mine, new in changes:
            mine[accepted] = new[accepted]
        batch = batch._replace(
            step=step * np.clip(factor, _SHRINK, _GROW),
            time=np.where(accepted, batch.time + step, batch.time),
            attempts=batch.attempts + 1,
        )
        arrived = accepted & last
        lost = (batch.step < _SMALLEST_STEP) | (batch.attempts >= max_steps)
        lost &= ~arrived
        leaving = arrived | lost
        own, gone = batch.which[leaving], take_rows(batch, leaving)
        arrivals.position[own], arrivals.velocity[own] = gone.position, gone.velocity
        arrivals.attempts[own], arrivals.failed[own] = gone.attempts, lost[leaving]
        if len(own):
            batch = take_rows(batch, ~leaving)
    return arrivals


def _start(metric: Metric, position: Array, velocity: Array) -> _Batch:
    n = len(position)
    acceleration, tensors = _equation(metric, position, velocity)
    unit = _row_norms(tensors, velocity)
    unit[:, 1:] = np.maximum(unit, _row_norms(tensors, position))[:, 1:]
    # Time in which the velocity would change by its own size.
    turn = np.sqrt(unit[:, 0] / _row_norms(tensors, acceleration)[:, 0])
    first = np.nan_to_num(0.3 * turn, nan=1.0, posinf=1.0)
    return _Batch(
        which=np.arange(n),
        time=np.zeros(n),
        step=np.clip(first, 1e-6, 1.0),
        position=position.copy(),
        velocity=velocity.copy(),
        acceleration=acceleration,
        unit=unit,
        attempts=np.zeros(n, dtype=np.int64),
    )


def _equation(metric: Metric, position: Array, velocity: Array) -> tuple[Array, Array]:
    """Accelerations of all rows, and the tensors at the points of the geodesics."""
    x, v = position[:, 0], velocity[:, 0]
    if position.shape[1] == 1:
        tensors, force, drift = forces(metric, x, v)
        return lower(invert(tensors, force), force - drift)[:, None], tensors
    found = linearised(metric, x, v)
    fields = position[:, 1:] @ found.in_position.swapaxes(1, 2)
    fields += velocity[:, 1:] @ found.in_velocity.swapaxes(1, 2)
    return np.concatenate([found.acceleration[:, None], fields], axis=1), found.tensors


def _row_norms(tensors: Array, rows: Array) -> Array:
    """Squared lengths of every row: (n, r, D) -> (n, r)."""
    return np.asarray(squared_norm(tensors[:, None], rows))


class _Stages:
    """The stages of a step of every geodesic, (n_stages, n, r, D), and its end."""

    def __init__(self, metric: Metric, batch: _Batch, step: Array, count: int) -> None:
        self.batch, self.step = batch, step[:, None, None]
        self.velocity, self.acceleration = np.empty((2, count, *batch.position.shape))
        self.velocity[0], self.acceleration[0] = batch.velocity, batch.acceleration
        for index in range(1, count):
            weights = TABLEAU[index, :index]
            position = batch.position + self.total(weights, self.velocity)
            velocity = batch.velocity + self.total(weights, self.acceleration)
            self.velocity[index] = velocity
            self.acceleration[index], tensors = _equation(metric, position, velocity)
            if index == STAGES:
                self.position, self.tensors = position, tensors

    def total(self, weights: Array, stages: Array) -> Array:
        """Step times a weighted sum of the first stages."""
        used = stages[: len(weights)].reshape(len(weights), -1)
        return np.asarray(self.step * (weights @ used).reshape(stages.shape[1:]))

    def error(self) -> Array:
        """Error in the metric's norm, relative to the geodesic's length."""
        # Fields that grow are right relative to what they have become.
        unit = self.batch.unit.copy()
        grown = _row_norms(self.tensors, self.batch.position)[:, 1:]
        unit[:, 1:] = np.maximum(unit[:, 1:], grown)
        squares = []
        for weights in (FIFTH, THIRD):
            parts = (self.velocity, self.acceleration)
            errors: Any = sum(
                _row_norms(self.tensors, self.total(weights, part)) for part in parts
            )
            squares.append(errors / unit)
        fifth, third = squares
        scale = np.sqrt(fifth + 0.01 * third)
        return np.asarray(np.where(scale == 0.0, 0.0, fifth / scale).max(axis=1))


def _sample(
    stages: _Stages, times: Array, last: Mask, accepted: Mask, arrivals: Arrivals
) -> None:
    """Fill in the times inside accepted steps from the 7th-order interpolant."""
    batch, step = stages.batch, stages.step[:, 0]
    fraction = (times - batch.time[:, None]) / np.where(step > 0.0, step, 1.0)
    inside = (fraction > 0.0) & ((fraction <= 1.0) | last[:, None]) & accepted[:, None]
    items, moments = np.nonzero(inside)
    change = stages.position - batch.position
    first = stages.step * batch.velocity
    final = stages.step * stages.velocity[STAGES]
    coefficients = [change, first - change, 2.0 * change - first - final]
    coefficients += [stages.total(row, stages.velocity) for row in INTERPOLANT]
    share = fraction[items, moments][:, None, None]
    values = np.zeros((len(items), *change.shape[1:]))
    for index, coefficient in reversed(list(enumerate(coefficients))):
        values = values + coefficient[items]
        values = values * (share if index % 2 == 0 else 1.0 - share)
    arrivals.samples[batch.which[items], moments] = values + batch.position[items]
