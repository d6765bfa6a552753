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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.legendre import leggauss
from numpy.polynomial.polynomial import polyvander
from numpy.typing import NDArray

from land._device import Indices
from land.metrics.tensors import FEW_DIMENSIONS

Array = NDArray[np.float64]

ORDER = 8
_SMALLEST_WIDTH = 1e-6


def gauss(count: int) -> tuple[Array, Array]:
    """Points and weights of Gauss quadrature on [0, 1]."""
    points, weights = leggauss(count)
    return (points + 1.0) / 2.0, weights / 2.0


POINTS, WEIGHTS = gauss(ORDER)


def _lagrange(nodes: Array) -> list[Polynomial]:
    """Lagrange polynomials of the nodes."""
    basis = []
    for index, node in enumerate(nodes):
        others = np.delete(nodes, index)
        basis.append(Polynomial.fromroots(others) / np.prod(node - others))
    return basis


def _coefficients(polynomials: list[Polynomial]) -> Array:
    return np.stack([polynomial.coef for polynomial in polynomials], axis=1)


_BASIS: Array = _coefficients(_lagrange(POINTS))
_INTEGRALS: Array = _coefficients([p.integ() for p in _lagrange(POINTS)])


def _evaluate(coefficients: Array, fractions: Array) -> Array:
    """Polynomials, one in each column, at fractions of an element: on a new axis."""
    return polyvander(fractions, len(coefficients) - 1) @ coefficients


# Positions at the Gauss points from rates there: the Gauss-Runge-Kutta matrix.
INTEGRATION: Array = _evaluate(_INTEGRALS, POINTS)
# Rates at the Gauss points from positions at equally spaced nodes.
_NODES = np.arange(ORDER + 1) / ORDER
_DIFFERENTIATION = np.array([p.deriv()(POINTS) for p in _lagrange(_NODES)]).T


def gauss_positions(base: Array, rates: Array) -> Array:
    """Positions at the Gauss points: (n, D), (n, e, q, D) -> (n, e, q, D)."""
    spans = WEIGHTS @ rates
    starts = base[:, None] + np.cumsum(spans, axis=1) - spans
    return np.asarray(starts[:, :, None] + INTEGRATION @ rates)


def gather_forces(forces: Array) -> Array:
    """Derivatives in the rates of a function with these derivatives in positions."""
    totals = forces.sum(axis=2)
    later = np.cumsum(totals[:, ::-1], axis=1)[:, ::-1] - totals
    return np.asarray(INTEGRATION.T @ forces + WEIGHTS[:, None] * later[:, :, None])


def split_elements(rates: Array, widths: Array) -> tuple[Array, Array]:
    """The same curves on elements of half the width."""
    n, elements, order, dim = rates.shape
    halves = np.concatenate([POINTS / 2.0, (POINTS + 1.0) / 2.0])
    values = 0.5 * np.einsum("pq,neqd->nepd", _evaluate(_BASIS, halves), rates)
    split = values.reshape(n, 2 * elements, order, dim)
    return split, np.repeat(widths / 2.0, 2, axis=1)


@dataclass(frozen=True)
class PiecewiseCurves:
    """A batch of collocation curves on the host.

    Attributes
    ----------
    base : ndarray of shape (n, D)
    rates : ndarray of shape (n, elements, ORDER, D)
    widths : ndarray of shape (n, elements)
        Widths of the elements in time; each row sums to one.
    fields : ndarray of shape (n, elements, ORDER, D, 2 * D), optional
        Derivatives of the rates in the two ends, where they are known.
    """

    base: Array
    rates: Array
    widths: Array
    fields: Array | None = None

    def positions(self, times: Array) -> Array:
        """Points at `times` in [0, 1]: (k,) -> (n, k, D)."""
        element, fraction, local_rates = self._locate(times)
        start = np.take_along_axis(self._starts(), element[:, :, None], axis=1)
        integrals = _evaluate(_INTEGRALS, fraction)
        return start + np.einsum("nkq,nkqd->nkd", integrals, local_rates)

    def take(self, rows: Any) -> PiecewiseCurves:
        """Some of the curves."""
        fields = None if self.fields is None else self.fields[rows]
        return PiecewiseCurves(
            self.base[rows], self.rates[rows], self.widths[rows], fields
        )

    def moved(self, bases: Array, targets: Array) -> Array:
        """Rates of the geodesics between other ends, to first order."""
        assert self.fields is not None
        span = np.einsum("q,neqd->nd", WEIGHTS, self.rates)
        ends = np.concatenate([bases, targets], axis=1)
        ends -= np.concatenate([self.base, self.base + span], axis=1)
        change = self.fields.reshape(len(ends), -1, ends.shape[1]) @ ends[:, :, None]
        return self.rates + change.reshape(self.rates.shape)

    def corners(self, per_element: int) -> Array:
        """Points at equal fractions of every element, (n, elements * k + 1, D)."""
        fractions = np.arange(1, per_element + 1) / per_element
        inner = (
            self._starts()[:, :, None] + _evaluate(_INTEGRALS, fractions) @ self.rates
        )
        flat = inner.reshape(len(self.base), -1, self.base.shape[1])
        return np.concatenate([self.base[:, None], flat], axis=1)

    def _starts(self) -> Array:
        """Where the elements begin, (n, elements, D)."""
        spans = np.einsum("q,neqd->ned", WEIGHTS, self.rates)
        return self.base[:, None] + np.cumsum(spans, axis=1) - spans

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
    """Collocation curves through polylines: rates and widths on so many elements.

    Polylines have corners (n, k, D), which the curve passes at times (n, k): from 0 to
    1 in each row. Corners may repeat. The mesh follows time (metric length) and
    Euclidean length in equal parts: a learned metric varies over a fixed distance in
    space, however little time that takes.
    """
    steps = np.linalg.norm(np.diff(vertices, axis=1), axis=2)
    shares = np.diff(times, axis=1) + steps / steps.sum(axis=1, keepdims=True)
    mixed = np.pad(np.cumsum(shares, axis=1), ((0, 0), (1, 0)))
    mixed /= mixed[:, -1:]
    fractions = np.broadcast_to(
        np.linspace(0.0, 1.0, elements + 1), (len(vertices), elements + 1)
    )
    bounds = interpolate_rows(fractions, mixed, times[:, :, None])[:, :, 0]
    bounds[:, 0], bounds[:, -1] = 0.0, 1.0
    widths = np.diff(bounds, axis=1)
    # A polyline that rushes through an element must not leave it without time.
    widths = np.maximum(widths, _SMALLEST_WIDTH / elements)
    widths /= widths.sum(axis=1, keepdims=True)
    ends = np.cumsum(widths, axis=1)
    node_times = (ends - widths)[:, :, None] + widths[:, :, None] * _NODES
    nodes = interpolate_rows(node_times.reshape(len(vertices), -1), times, vertices)
    nodes = nodes.reshape(len(vertices), elements, ORDER + 1, -1)
    nodes[:, 0, 0], nodes[:, -1, -1] = vertices[:, 0], vertices[:, -1]
    # Differences first: short curves far from the origin must not lose their digits.
    offsets = nodes - nodes[:, :, :1]
    rates = np.einsum("qk,nekd->neqd", _DIFFERENTIATION, offsets)
    missed = offsets[:, :, -1] - np.einsum("q,neqd->ned", WEIGHTS, rates)
    return rates + missed[:, :, None], widths


def interpolate_rows(queries: Array, grid: Array, values: Array) -> Array:
    """Piecewise linear interpolation, row by row, (n, m, D).

    Of values (n, k, D) on a grid (n, k) that increases from 0 to 1 in each row, at
    queries (n, m).
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


_VALUES = ("tangents", "end_velocities", "lengths", "converged", "slopes")
_ARRAYS = ("bases", *_VALUES, "n_iter")


@dataclass
class Geodesics:
    """Geodesics between pairs of points, with their curves grouped by mesh.

    `slopes`, (n, D, 2 * D), are the derivatives of the tangents in bases and targets:
    NaN where Newton's method had no part, and empty in dimensions where it never has.
    """

    bases: Array
    tangents: Array
    end_velocities: Array
    lengths: Array
    converged: NDArray[np.bool_]
    slopes: Array
    n_iter: NDArray[np.int64]
    meshes: list[tuple[Indices, PiecewiseCurves]]

    @classmethod
    def at_rest(cls, bases: Array) -> Geodesics:
        """Geodesics that stay where they are."""
        n, dim = bases.shape
        side = dim if dim <= FEW_DIMENSIONS else 0
        return cls(
            bases=bases,
            tangents=np.zeros_like(bases),
            end_velocities=np.zeros_like(bases),
            lengths=np.zeros(n),
            converged=np.ones(n, dtype=bool),
            slopes=np.tile(np.hstack([-np.eye(side), np.eye(side)]), (n, 1, 1)),
            n_iter=np.zeros(n, dtype=np.int64),
            meshes=[],
        )

    @classmethod
    def straight(cls, bases: Array, targets: Array) -> Geodesics:
        """Straight lines, which are geodesics where the metric is the identity."""
        found = cls.at_rest(bases)
        lines = targets - bases
        shape = (len(lines), 1, ORDER, lines.shape[1])
        curves = PiecewiseCurves(
            bases,
            np.broadcast_to(lines[:, None, None], shape),
            np.ones((len(lines), 1)),
        )
        return replace(
            found,
            tangents=lines,
            end_velocities=lines,
            lengths=np.linalg.norm(lines, axis=1),
            meshes=[(np.arange(len(lines)), curves)],
        )

    def sample(self, times: Array) -> Array:
        """Points of all curves at `times`: (k,) -> (n, k, D)."""
        points = np.repeat(self.bases[:, None], len(times), axis=1)
        for which, curves in self.final_meshes():
            points[which] = curves.positions(times)
        return points

    def take(self, which: Indices) -> Geodesics:
        """Some of the geodesics, of which some may be taken more than once."""
        return Geodesics(
            **{name: getattr(self, name)[which] for name in _ARRAYS},
            meshes=self.final_meshes(which),
        )

    @staticmethod
    def concatenate(parts: Sequence[Geodesics]) -> Geodesics:
        """Geodesics of several solutions, one after the other."""
        offsets = np.cumsum([0, *(len(part.bases) for part in parts)])
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in _ARRAYS
        }
        meshes = [
            (which + offset, curves)
            for part, offset in zip(parts, offsets[:-1], strict=True)
            for which, curves in part.meshes
        ]
        return Geodesics(**arrays, meshes=meshes)

    def final_meshes(
        self, chosen: Indices | None = None
    ) -> list[tuple[Indices, PiecewiseCurves]]:
        """Meshes of the curves as they are, without those that were replaced.

        Of some of the geodesics, numbered as they are in `chosen`, or of all.
        """
        chosen = np.arange(len(self.bases)) if chosen is None else chosen
        last, row = np.full((2, len(self.bases)), -1)
        for index, (which, _) in enumerate(self.meshes):
            last[which], row[which] = index, np.arange(len(which))
        final = []
        for index, (_, curves) in enumerate(self.meshes):
            own = np.flatnonzero(last[chosen] == index)
            if not len(own):
                continue
            rows = row[chosen[own]]
            all_of_them = np.array_equal(rows, np.arange(len(curves.base)))
            final.append((own, curves if all_of_them else curves.take(rows)))
        return final

    def adopt(self, which: Indices, others: Geodesics) -> None:
        """Replace geodesics `which` by `others` where those are shorter.

        A curve that converged beats one that did not.
        """
        shorter = others.lengths < (1.0 - 1e-9) * self.lengths[which]
        same = others.converged == self.converged[which]
        self.n_iter[which] += others.n_iter
        better = np.flatnonzero(np.where(same, shorter, others.converged))
        mine, others = which[better], others.take(better)
        for name in _VALUES:
            getattr(self, name)[mine] = getattr(others, name)
        self.meshes += [(mine[own], curves) for own, curves in others.meshes]
