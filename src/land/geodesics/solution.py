"""Geodesics between pairs of points, as the solvers hand them on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from land._device import Indices
from land.geodesics.collocation import ORDER, PiecewiseCurves
from land.metrics.tensors import FEW_DIMENSIONS

Array = NDArray[np.float64]


_VALUES = ("tangents", "end_velocities", "lengths", "converged", "responses")
_ARRAYS = ("bases", *_VALUES, "n_iter")


@dataclass
class Connections:
    """Geodesics between pairs of points, with their curves grouped by mesh.

    `responses` are minus the derivatives of the tangents in the bases: NaN where
    Newton's method had no part, and empty in dimensions where it never has.
    """

    bases: Array
    tangents: Array
    end_velocities: Array
    lengths: Array
    converged: NDArray[np.bool_]
    responses: Array
    n_iter: NDArray[np.int64]
    meshes: list[tuple[Indices, PiecewiseCurves]]

    @property
    def has_responses(self) -> bool:
        """Whether Newton's method is used in this dimension."""
        return self.responses.shape[1] > 0

    @classmethod
    def at_rest(cls, bases: Array) -> Connections:
        """Geodesics that stay where they are."""
        n, dim = bases.shape
        side = dim if dim <= FEW_DIMENSIONS else 0
        return cls(
            bases=bases,
            tangents=np.zeros_like(bases),
            end_velocities=np.zeros_like(bases),
            lengths=np.zeros(n),
            converged=np.ones(n, dtype=bool),
            responses=np.tile(np.eye(side), (n, 1, 1)),
            n_iter=np.zeros(n, dtype=np.int64),
            meshes=[],
        )

    @classmethod
    def straight(cls, bases: Array, targets: Array) -> Connections:
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

    def target_derivatives(self) -> Array:
        """Derivatives of the tangents in the targets, (n, D, D); NaN if not known."""
        found = np.full((*self.bases.shape, self.bases.shape[1]), np.nan)
        for which, curves in self.final_meshes():
            if curves.fields is not None:
                found[which] = curves.target_derivatives()
        return found

    def take(self, which: Indices) -> Connections:
        """Some of the geodesics, of which some may be taken more than once."""
        return Connections(
            **{name: getattr(self, name)[which] for name in _ARRAYS},
            meshes=self.final_meshes(which),
        )

    @staticmethod
    def concatenate(parts: Sequence[Connections]) -> Connections:
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
        return Connections(**arrays, meshes=meshes)

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

    def adopt(self, which: Indices, others: Connections) -> None:
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
