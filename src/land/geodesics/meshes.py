"""Meshes of curves: for first guesses, and for geodesics whose ends have moved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from land._device import Indices, Mask
from land.geodesics.collocation import ORDER, fit_polylines
from land.geodesics.graph import Polylines, at_constant_speed, straight_lines
from land.geodesics.solution import Connections
from land.metrics import Metric

Array = NDArray[np.float64]

MOST_ELEMENTS = 256


@dataclass(frozen=True)
class _Settings:
    """First meshes."""

    fewest_elements: int = 2
    # Distance of Gauss points in units of the metric's resolution, at most.
    spacing: float = 0.75
    # Coordinates of curves that are solved at once: some fifty copies are made.
    most_coordinates: int = 2**18
    # Points in which a curve is sampled for another mesh.
    samples: int = 129


_SETTINGS = _Settings()


@dataclass(frozen=True)
class Batch:
    """Curves on meshes of one size."""

    which: Indices
    rates: Array  # (n, elements, ORDER, D)
    widths: Array  # (n, elements)
    round: int = 0  # how often meshes of this size were adapted before

    @property
    def elements(self) -> int:
        """How many each mesh has."""
        return self.rates.shape[1]

    def without(self, done: Mask) -> Batch:
        """The curves that are not `done`."""
        left = ~done[self.which]
        return Batch(self.which[left], self.rates[left], self.widths[left])

    def parts(self) -> list[Batch]:
        """The same curves in batches that are not too large to be solved at once."""
        n_parts = -(-self.rates.size // _SETTINGS.most_coordinates)
        rows = np.array_split(np.arange(len(self.which)), n_parts)
        return [
            Batch(self.which[own], self.rates[own], self.widths[own], self.round)
            for own in rows
        ]

    @staticmethod
    def merged(batches: list[Batch]) -> list[Batch]:
        """The same curves, those on meshes of one size and round together."""
        groups: dict[tuple[int, int], list[Batch]] = {}
        for batch in batches:
            groups.setdefault((batch.elements, batch.round), []).append(batch)
        return [
            Batch(
                np.concatenate([batch.which for batch in own]),
                np.concatenate([batch.rates for batch in own]),
                np.concatenate([batch.widths for batch in own]),
                own[0].round,
            )
            for own in groups.values()
        ]


def first_meshes(
    metric: Metric, bases: Array, targets: Array, guesses: Polylines
) -> list[Batch]:
    """First guesses on meshes fine enough to see the metric's features."""
    steps = np.linalg.norm(np.diff(guesses.vertices, axis=1), axis=2)
    elements = np.full(len(bases), _SETTINGS.fewest_elements)
    if metric.resolution is not None:
        cells = steps.sum(axis=1) / (_SETTINGS.spacing * metric.resolution * ORDER)
        levels = np.ceil(np.log2(np.maximum(cells / _SETTINGS.fewest_elements, 1.0)))
        elements = _SETTINGS.fewest_elements * 2 ** levels.astype(int)
    elements = np.minimum(elements, MOST_ELEMENTS // 4)
    elements[np.all(bases == targets, axis=1)] = 0  # nothing to do
    batches = []
    for size in np.unique(elements[elements > 0]):
        which = np.flatnonzero(elements == size)
        # Long problems first: stragglers then share the block with others.
        which = which[np.argsort(-guesses.lengths[which], kind="stable")]
        rates, widths = fit_polylines(
            guesses.vertices[which], guesses.times[which], int(size)
        )
        batches.append(Batch(which, rates, widths))
    return batches


def moved_meshes(
    metric: Metric, bases: Array, targets: Array, previous: Connections
) -> list[Batch]:
    """Curves of a previous solution, stretched to new ends, on their own meshes."""
    batches = []
    lost = ~np.all(bases == targets, axis=1)
    for which, curves in previous.final_meshes():
        usable = np.isfinite(curves.rates).all(axis=(1, 2, 3))
        usable &= np.any(bases[which] != targets[which], axis=1)
        rows = np.flatnonzero(usable)
        # Like first meshes: long problems first.
        rows = rows[np.argsort(-previous.lengths[which[rows]], kind="stable")]
        own, kept = which[rows], curves.take(rows)
        lost[own] = False
        rates = kept.moved(bases[own], targets[own])
        if len(own):
            batches.append(Batch(own, rates, kept.widths))
    rows = np.flatnonzero(lost)
    if len(rows):  # they were at rest, or never solved
        lines = straight_lines(metric, bases[rows], targets[rows])
        for batch in first_meshes(metric, bases[rows], targets[rows], lines):
            batches.append(Batch(rows[batch.which], batch.rates, batch.widths))
    return batches


def extended_meshes(
    metric: Metric, bases: Array, targets: Array, previous: Connections, rows: Indices
) -> list[Batch]:
    """Some curves of a previous solution, with straight lines to the new ends.

    For ends that moved so far that derivatives do not tell where the curve goes.
    """
    if not len(rows):
        return []
    curves = previous.take(rows).sample(np.linspace(0.0, 1.0, _SETTINGS.samples))
    bases, targets = bases[rows, None], targets[rows, None]
    curves = np.where(np.isfinite(curves), curves, bases)
    share = np.linspace(0.0, 1.0, _SETTINGS.samples // 4)[:, None]
    there = bases + share[:-1] * (curves[:, :1] - bases)
    onward = targets + share[-2::-1] * (curves[:, -1:] - targets)
    lines = at_constant_speed(metric, np.concatenate([there, curves, onward], axis=1))
    own = first_meshes(metric, bases[:, 0], targets[:, 0], lines)
    return [Batch(rows[each.which], each.rates, each.widths) for each in own]
