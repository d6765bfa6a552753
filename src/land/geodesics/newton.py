"""Newton's method for batches of geodesics near given curves.

The geodesic equation is linearised along every curve and the linear boundary value
problem solved by collocation at the Gauss points: element by element, the state at its
end as a function of the state at its start, and then from element to element. Near a
geodesic each step doubles the number of correct digits, where descent gains a fixed
number of them; and the fundamental solution, which every step needs, is the derivative
of the exponential map.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from land._device import Mask, Request
from land.geodesics.collocation import INTEGRATION, ORDER, POINTS, WEIGHTS
from land.geodesics.equation import Linearised
from land.metrics.tensors import squared_norm

Array = NDArray[np.float64]


_MOST_STEPS = 8
# A step longer than this, relative to the length, or than the one before, shows that
# the curve is too far from a geodesic.
_LONGEST = 0.5


class Finished(NamedTuple):
    """What Newton's method made of a batch of curves.

    Derivatives belong to the curves before the last step.
    """

    rates: Array  # (n, elements, ORDER, D)
    tangents: Array  # (n, D)
    end_velocities: Array  # (n, D)
    # Derivatives in the bases, and in the targets: of the tangents, (n, D, 2 * D), and
    # of the rates, (n, elements, ORDER, D, 2 * D), which are Jacobi fields.
    slopes: Array
    fields: Array
    speeds: Array  # (n,) on average over the curve; for a geodesic it is the length
    change: Array  # (n,) relative size of the last step; the square of it is left
    minimal: Mask  # (n,) whether there is no conjugate point on the way
    found: Mask  # (n,) whether the steps came down to what was asked for
    n_steps: NDArray[np.int64]  # (n,)


def finish_curves(
    bases: Array,
    targets: Array,
    rates: Array,
    widths: Array,
    smallest: float,
    most: int = _MOST_STEPS,
) -> Generator[Request, Any, Finished]:
    """Newton steps for curves near geodesics until they are `smallest` or hopeless.

    A generator: it asks for the `linearised` equation at points, see `in_lockstep`.
    Curves go from bases to targets (n, D), `smallest` is the relative size of the last
    step, and `most` are the steps that may be taken.
    """
    result = yield from _step(bases, targets, rates, widths)
    going = result.change <= _LONGEST
    active = np.arange(len(bases))
    for _ in range(min(most, _MOST_STEPS) - 1):
        result.found[active] = going & (result.change[active] <= smallest)
        active = active[going & ~result.found[active]]
        if not len(active):
            return result
        own = bases[active], targets[active], result.rates[active], widths[active]
        step = yield from _step(*own)
        going = step.change <= np.minimum(_LONGEST, result.change[active])
        step.n_steps[:] += result.n_steps[active]
        for mine, its in zip(result, step, strict=True):
            mine[active] = its
    result.found[active] = going & (result.change[active] <= smallest)
    return result


def _step(
    bases: Array, targets: Array, rates: Array, widths: Array
) -> Generator[Request, Linearised, Finished]:
    """One step of Newton's method."""
    n, elements, order, dim = rates.shape
    spans = WEIGHTS @ rates
    starts = np.cumsum(spans, axis=1) - spans
    rows = [
        each.reshape(n * elements, *each.shape[2:])
        for each in (bases[:, None] + starts, starts, rates)
    ]
    systems, forces, tensors = yield from _equations(*rows)
    answers = _solve(systems, forces)
    states = _states(answers.reshape(n, elements, order, dim, 2 * dim + 1), widths)
    # What the initial velocity must be, and how it changes with base and target.
    rest, displaced = states[:, -1, :dim, dim, None], states[:, -1, :dim, dim + 1 :]
    arrival = (targets - bases)[..., None] - rest
    aims = np.broadcast_to(np.eye(dim), displaced.shape)
    right = np.concatenate([arrival, -displaced, aims], axis=2)
    solved = _solve(states[:, -1, :dim, :dim], right)
    # The new curve and its derivatives: columns.
    columns = states[..., :dim] @ solved[:, None]
    columns[..., : dim + 1] += states[..., dim:]
    end_velocities = columns[:, -1, dim:, 0]
    columns = columns[:, :-1].reshape(n * elements, 2 * dim, 2 * dim + 1)
    columns[:, dim:] *= widths.reshape(-1, 1, 1)
    inner = answers[..., :-1] @ columns
    inner[..., 0] += answers[..., -1]
    found = INTEGRATION @ inner.reshape(n * elements, order, -1)
    found = found.reshape(n, elements, order, dim, 2 * dim + 1)
    found += columns[:, dim:].reshape(n, elements, 1, dim, 2 * dim + 1)
    moved, fields = found[..., 0], found[..., 1:]
    weights = WEIGHTS / widths[:, :, None]
    tensors = tensors.reshape(n, elements, order, *tensors.shape[2:])
    squared_speeds = np.sum(weights * squared_norm(tensors, rates), axis=(1, 2))
    changes = np.sum(weights * squared_norm(tensors, moved - rates), axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        change = np.sqrt(changes / squared_speeds)
        on_the_way = np.linalg.slogdet(states[:, 1:, :dim, :dim])[0]
    return Finished(
        rates=moved,
        tangents=solved[..., 0],
        end_velocities=end_velocities,
        slopes=solved[..., 1:],
        fields=fields,
        speeds=np.sqrt(squared_speeds),
        change=np.where(np.isfinite(change), change, np.inf),
        minimal=np.all(on_the_way > 0.0, axis=1),
        found=np.zeros(n, dtype=bool),
        n_steps=np.ones(n, dtype=np.int64),
    )


def _equations(
    starts: Array, offsets: Array, rates: Array
) -> Generator[Request, Linearised, tuple[Array, Array, Array]]:
    """Linear equations for the accelerations at the Gauss points of single elements.

    Elements start at `starts`, which are `offsets` from the base, (n, D), with rates
    (n, ORDER, D). Time is in units of the element, positions are relative to the base.
    There are three kinds of right-hand sides: for the position at the start of the
    element, for the velocity there, and for what is there without either.

    Returns systems (n, ORDER * D, ORDER * D), right-hand sides (n, ORDER * D,
    2 * D + 1), and the metric tensors at the Gauss points.
    """
    n, order, dim = rates.shape
    inner = INTEGRATION @ rates
    points = (starts[:, None] + inner).reshape(-1, dim)
    # With rates in place of velocities, derivatives are in units of the element.
    found = yield points, rates.reshape(-1, dim)
    acceleration, stiffness, damping, tensors = (
        part.reshape(n, order, *part.shape[1:]) for part in found
    )
    forces = (
        acceleration
        - np.einsum("nqij,nqj->nqi", stiffness, offsets[:, None] + inner)
        - np.einsum("nqij,nqj->nqi", damping, rates)
    )
    twice = INTEGRATION @ INTEGRATION
    systems = -stiffness[:, :, :, None] * twice[:, None, :, None]
    systems -= damping[:, :, :, None] * INTEGRATION[:, None, :, None]
    size = order * dim
    systems = systems.reshape(n, size, size)
    diagonal = np.arange(size)
    systems[:, diagonal, diagonal] += 1.0
    in_way = POINTS[:, None, None] * stiffness + damping
    right = np.concatenate([stiffness, in_way, forces[..., None]], axis=-1)
    return systems, right.reshape(n, size, 2 * dim + 1), tensors


def _states(answers: Array, widths: Array) -> Array:
    """Positions and velocities at the ends of elements, base first.

    Linear in the initial velocity: (n, e + 1, 2 D, 2 D + 1), column D is what is there
    without it, and those after it are derivatives in the base.
    """
    n, elements, _, dim, _ = answers.shape
    # Positions and velocities at the end of an element, from those at its start.
    weights = np.stack([WEIGHTS * (1.0 - POINTS), WEIGHTS])
    transfer = weights @ answers.reshape(n, elements, ORDER, -1)
    transfer = transfer.reshape(n, elements, 2 * dim, 2 * dim + 1)
    eye = np.eye(dim)
    transfer[..., :dim, :dim] += eye
    transfer[..., :dim, dim : 2 * dim] += eye
    transfer[..., dim:, dim : 2 * dim] += eye
    states = np.zeros((n, elements + 1, 2 * dim, 2 * dim + 1))
    states[:, 0, dim:, :dim] = eye
    states[:, 0, :dim, dim + 1 :] = eye
    for index in range(elements):
        width = widths[:, index, None, None]
        state = states[:, index].copy()
        state[:, dim:] *= width
        following = transfer[:, index, :, :-1] @ state
        following[..., dim] += transfer[:, index, :, -1]
        following[:, dim:] /= width
        states[:, index + 1] = following
    return states


def _solve(systems: Array, right: Array) -> Array:
    """Solutions of linear systems; NaN where there is none."""
    known = np.all(np.isfinite(systems), axis=(-2, -1))
    systems = np.where(known[..., None, None], systems, np.eye(systems.shape[-1]))
    try:
        answers = np.linalg.solve(systems, right)
    except np.linalg.LinAlgError:
        singular = np.linalg.det(systems) == 0.0
        known &= ~singular
        systems[singular] = np.eye(systems.shape[-1])
        answers = np.linalg.solve(systems, right)
    return np.where(known[..., None, None], answers, np.nan)
