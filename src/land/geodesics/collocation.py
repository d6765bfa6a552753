"""Curves as piecewise polynomials, sampled at Gauss points.

A curve on [0, 1] is cut into elements; on each, its velocity is a polynomial given by
its values at the Gauss points of the element, so that the curve is continuous and its
energy a sum over Gauss points. With `ORDER` points per element, energy and momenta at
the ends of a minimiser are accurate to order 2 * ORDER in the width of the elements.

Velocities are stored as `rates`: displacement per element, velocity times the width of
the element in time, shape (n, elements, ORDER, D). The curve in space then does not
depend on the widths; only the energy does.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

Array = NDArray[np.float64]

ORDER = 8
_POINTS, _WEIGHTS = leggauss(ORDER)
POINTS: Array = (_POINTS + 1.0) / 2.0
WEIGHTS: Array = _WEIGHTS / 2.0


def _lagrange(nodes: Array) -> list[Polynomial]:
    """Lagrange polynomials of the nodes."""
    basis = []
    for index, node in enumerate(nodes):
        others = np.delete(nodes, index)
        basis.append(Polynomial.fromroots(others) / np.prod(node - others))
    return basis


_BASIS = _lagrange(POINTS)
_INTEGRALS = [polynomial.integ() for polynomial in _BASIS]
# Positions at the Gauss points from rates there: the Gauss-Runge-Kutta matrix.
_INTEGRATION: Array = np.stack([p(POINTS) for p in _INTEGRALS], axis=1)
# Rates at the Gauss points from positions at ORDER + 1 equally spaced nodes.
NODES: Array = np.linspace(0.0, 1.0, ORDER + 1)
_DIFFERENTIATION: Array = np.stack(
    [p.deriv()(POINTS) for p in _lagrange(NODES)], axis=1
)


def gauss_positions(base: jax.Array, rates: jax.Array) -> jax.Array:
    """Positions at the Gauss points: (n, D), (n, e, q, D) -> (n, e, q, D)."""
    spans = jnp.einsum("q,neqd->ned", WEIGHTS, rates)
    starts = base[:, None] + jnp.cumsum(spans, axis=1) - spans
    return starts[:, :, None] + jnp.einsum("pq,neqd->nepd", _INTEGRATION, rates)


def split_elements(rates: Array, widths: Array) -> tuple[Array, Array]:
    """The same curves on elements of half the width."""
    n, elements, order, dim = rates.shape
    halves = np.concatenate([POINTS / 2.0, (POINTS + 1.0) / 2.0])
    values = 0.5 * np.einsum("pq,neqd->nepd", _evaluation(halves), rates)
    split = values.reshape(n, 2 * elements, order, dim)
    return split, np.repeat(widths / 2.0, 2, axis=1)


def _evaluation(fractions: Array) -> Array:
    return np.stack([p(fractions) for p in _BASIS], axis=-1)


@dataclass(frozen=True)
class PiecewiseCurves:
    """A batch of collocation curves on the host.

    Attributes
    ----------
    base : ndarray of shape (n, D)
    rates : ndarray of shape (n, elements, ORDER, D)
    widths : ndarray of shape (n, elements)
        Widths of the elements in time; each row sums to one.
    """

    base: Array
    rates: Array
    widths: Array

    def positions(self, times: Array) -> Array:
        """Points at `times` in [0, 1]: (k,) -> (n, k, D)."""
        element, fraction, local_rates = self._locate(times)
        spans = np.einsum("q,neqd->ned", WEIGHTS, self.rates)
        starts = self.base[:, None] + np.cumsum(spans, axis=1) - spans
        start = np.take_along_axis(starts, element[:, :, None], axis=1)
        integrals = np.stack([p(fraction) for p in _INTEGRALS], axis=-1)
        return start + np.einsum("nkq,nkqd->nkd", integrals, local_rates)

    def velocities(self, times: Array) -> Array:
        """Velocities at `times` in [0, 1]: (k,) -> (n, k, D)."""
        element, fraction, local_rates = self._locate(times)
        width = np.take_along_axis(self.widths, element, axis=1)
        rates = np.einsum("nkq,nkqd->nkd", _evaluation(fraction), local_rates)
        return rates / width[:, :, None]

    def _locate(self, times: Array) -> tuple[NDArray[np.intp], Array, Array]:
        """Element of each time, fraction of it that has passed, rates in it."""
        ends = np.cumsum(self.widths, axis=1)
        last = self.widths.shape[1] - 1
        element = np.sum(times[None, :, None] > ends[:, None, :], axis=2)
        element = np.minimum(element, last)
        width = np.take_along_axis(self.widths, element, axis=1)
        start = np.take_along_axis(ends - self.widths, element, axis=1)
        rates = np.take_along_axis(self.rates, element[:, :, None, None], axis=1)
        return element, (times[None] - start) / width, rates


def fit_polylines(vertices: Array, times: Array, elements: int) -> tuple[Array, Array]:
    """Collocation curves through polylines.

    Elements are narrow in time where the curve crosses much space slowly: half of the
    mesh follows time (metric length), half follows Euclidean length, because a
    learned metric varies over a fixed distance in space, however long that takes.

    Parameters
    ----------
    vertices : ndarray of shape (n, k, D)
        Corners of the polylines; trailing ones may repeat.
    times : ndarray of shape (n, k)
        When the curve passes them: increasing from 0 to 1 in each row.
    elements : int
        Number of elements.

    Returns
    -------
    rates (n, elements, ORDER, D) and widths (n, elements)
    """
    steps = np.linalg.norm(np.diff(vertices, axis=1), axis=2)
    lengths = np.concatenate(
        [np.zeros((len(vertices), 1)), np.cumsum(steps, axis=1)], axis=1
    )
    mixed = 0.5 * (times + lengths / np.maximum(lengths[:, -1:], 1e-300))
    mixed /= mixed[:, -1:]
    fractions = np.broadcast_to(
        np.linspace(0.0, 1.0, elements + 1), (len(vertices), elements + 1)
    )
    bounds = interpolate_rows(fractions, mixed, times[:, :, None])[:, :, 0]
    bounds[:, 0], bounds[:, -1] = 0.0, 1.0
    widths = np.diff(bounds, axis=1)
    # A polyline that rushes through an element must not leave it without time.
    widths = np.maximum(widths, 1e-3 / elements)
    widths /= widths.sum(axis=1, keepdims=True)
    ends = np.cumsum(widths, axis=1)
    node_times = (ends - widths)[:, :, None] + widths[:, :, None] * NODES
    nodes = interpolate_rows(node_times.reshape(len(vertices), -1), times, vertices)
    nodes = nodes.reshape(len(vertices), elements, ORDER + 1, -1)
    nodes[:, 0, 0], nodes[:, -1, -1] = vertices[:, 0], vertices[:, -1]
    return np.einsum("qk,nekd->neqd", _DIFFERENTIATION, nodes), widths


def interpolate_rows(queries: Array, grid: Array, values: Array) -> Array:
    """Piecewise linear interpolation, row by row.

    Parameters
    ----------
    queries : ndarray of shape (n, m)
    grid : ndarray of shape (n, k), increasing in each row, with values in [0, 1]
    values : ndarray of shape (n, k, D)

    Returns
    -------
    ndarray of shape (n, m, D)
    """
    n, k = grid.shape
    rows = 2.0 * np.arange(n)[:, None]  # lay the rows end to end, without overlap
    flat = np.searchsorted(
        (grid + rows).ravel(), (queries + rows).ravel(), side="right"
    )
    right = np.clip(flat.reshape(queries.shape) - k * np.arange(n)[:, None], 1, k - 1)
    low = np.take_along_axis(grid, right - 1, axis=1)
    high = np.take_along_axis(grid, right, axis=1)
    gap = high - low
    share = np.clip((queries - low) / np.where(gap > 0.0, gap, 1.0), 0.0, 1.0)
    before = np.take_along_axis(values, (right - 1)[:, :, None], axis=1)
    after = np.take_along_axis(values, right[:, :, None], axis=1)
    return before + share[:, :, None] * (after - before)
