"""Each point counted once: nodes past the cut locus are left out of the constant.

The constant is an integral over the manifold, where a point has one tangent, that of
its shortest geodesic. A ray is shortest up to its cut point and never again. Nodes past
the first conjugate point have no volume anyway; what lies between the cut point and it
is found by log maps, which tell whether there is a shorter way to a node.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from land.density.nodes import Nodes
from land.geodesics import log_map
from land.metrics import Metric

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Nodes with a smaller share of the model are not looked at.
_NEGLIGIBLE = 1e-6
# A way is shorter if it is so by more than this share: log maps are more accurate.
_SHORTER = 1e-3


def is_shortest(
    metric: Metric, bases: Array, tangents: Array, points: Array, tol: float
) -> Mask:
    """Whether Exp(v) has no shorter geodesic from the base than v, one base for each.

    Points whose log map fails are given the benefit of the doubt.
    """
    logs = log_map(metric, bases, points, tol=tol)
    lengths = np.sqrt(metric.inner(bases, tangents, tangents))
    return np.asarray(~(logs.converged & (logs.lengths < (1.0 - _SHORTER) * lengths)))


def within_cut_locus(
    metric: Metric,
    mean: Array,
    nodes: Nodes,
    rays: NDArray[np.int64],
    shares: Array,
    tol: float,
) -> tuple[Nodes, float]:
    """Nodes without those past the cut points of their rays, and the mass of those.

    It is relative to the mass of the others; `shares` are the model's of the nodes, and
    `rays` say which ray each lies on. The outermost node that matters is looked at on
    every ray; only where it can be reached on a shorter way, bisection finds the cut
    point.
    """
    first, outermost = _by_ray(rays, shares)
    inside, outside = np.full(len(first), -1), outermost + 1
    probes = outermost
    while True:
        open_rays = np.flatnonzero((outside - inside > 1) & (outermost >= 0))
        if not len(open_rays):
            break
        rows = first[open_rays] + probes[open_rays]
        bases = np.broadcast_to(mean, (len(rows), len(mean)))
        shortest = is_shortest(
            metric, bases, nodes.tangents[rows], nodes.points[rows], tol
        )
        inside[open_rays[shortest]] = probes[open_rays[shortest]]
        outside[open_rays[~shortest]] = probes[open_rays[~shortest]]
        probes = (inside + outside) // 2
    cut = np.where(outside > outermost, np.iinfo(np.intp).max, outside)
    past = np.arange(len(rays)) - first[rays] >= cut[rays]
    volumes = np.where(past, -np.inf, nodes.log_volumes)
    lost = float(shares[past].sum())
    return replace(nodes, log_volumes=volumes), lost / max(1.0 - lost, 1e-300)


def _by_ray(
    rays: NDArray[np.int64], shares: Array
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First node of every ray, and the position on it of the last that matters."""
    n_rays = int(rays[-1]) + 1
    first = np.searchsorted(rays, np.arange(n_rays))
    last = np.full(n_rays, -1)
    matter = np.flatnonzero(shares > _NEGLIGIBLE)
    np.maximum.at(last, rays[matter], matter - first[rays[matter]])
    return first, last
