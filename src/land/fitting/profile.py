"""Components of a model: their constants, and the best covariances for their means.

All of them are worked on together: what they lack is mapped in one batch. Constants are
sums over points that stay where they are when a mean moves, so that the objective is a
smooth function of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from land.density.cover import Cover, cloud_of, extend_covers, place_covers
from land.density.nodes import Nodes, invert, normal_constant, summarise
from land.fitting.covariance import bounded_covariance, solve_precision
from land.fitting.estimate import Component, Estimate, matters, usable_tangents
from land.fitting.problem import FitProblem
from land.geodesics import LogMap

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Settings:
    """Numerical settings of constants and covariances.

    Attributes
    ----------
    accurate, final_tail
        Final constants have twice as many points where the standard error of log C is
        above this: densities then integrate to one within half a percent. They leave
        out the tail of this mass.
    placements : int
        Times that a cover is extended or placed anew for a covariance.
    sparse : float
        A cover is placed anew if fewer points are effective than this share of those
        for the model that it was placed for.
    effective_per_dimension : int
        Effective points, for each dimension, without which no covariance is accepted.
    in_cloud : float
        Data with more than this share of the largest weight show where a component is.
    """

    accurate: float = 0.01
    final_tail: float = 1e-4
    placements: int = 10
    sparse: float = 0.3
    effective_per_dimension: int = 3
    in_cloud: float = 0.01


_SETTINGS = _Settings()


def components_at(
    problem: FitProblem, means: Sequence[Array], weights: Sequence[Array]
) -> list[Component]:
    """Components at means, with the second moments of the tangents there."""
    components = []
    for mean, own, logs in zip(means, weights, problem.log_maps(means), strict=True):
        moment = second_moment(problem, logs, own)
        components.append(
            Component(mean=mean, covariance=moment, weights=own, logs=logs)
        )
    return components


def evaluate(problem: FitProblem, components: Sequence[Component]) -> list[Estimate]:
    """The objective of components, with constants from points placed anew."""
    return [assemble(problem, each) for each in _with_covers(problem, components)]


def profile(problem: FitProblem, components: Sequence[Component]) -> list[Estimate]:
    """The objective, minimised over the covariances.

    For a fixed mean the objective is convex in the precision, so this is unique.
    Covers are placed where there are none, and extended where a covariance turns out
    to reach beyond them.
    """
    moments = [second_moment(problem, each.logs, each.weights) for each in components]
    if problem.is_flat:
        pairs = zip(components, moments, strict=True)
        return [assemble(problem, replace(c, covariance=moment)) for c, moment in pairs]
    found = list(components)
    if any(each.cover is None for each in found):
        found = _with_covers(problem, found)
    else:
        _refine(problem, found)
    waiting = list(range(len(found)))
    for _ in range(_SETTINGS.placements):
        waiting = _step(problem, waiting, moments, found) or _refine(problem, found)
        if not waiting:
            break
    return [assemble(problem, each) for each in found]


def verify(problem: FitProblem, estimates: Sequence[Estimate]) -> list[Estimate]:
    """Fitted components with accurate constants.

    They come from points that no fit has adapted itself to, more of them where the
    constants are not known well.
    """
    found = list(estimates)
    waiting = [] if problem.is_flat else list(range(len(found)))
    for n_points in (problem.most_points, 2 * problem.most_points):
        covers = _covers(problem, [found[k] for k in waiting], n_points, final=True)
        for k, cover in zip(waiting, covers, strict=True):
            found[k] = assemble(problem, replace(estimates[k], cover=cover))
        waiting = [
            k for k in waiting if found[k].log_constant.stderr > _SETTINGS.accurate
        ]
    return found


def assemble(
    problem: FitProblem, component: Component, nodes: Nodes | None = None
) -> Estimate:
    """The objective from what is known of a component; nothing is mapped."""
    mean, cover = component.mean, component.cover
    moment = second_moment(problem, component.logs, component.weights)
    if cover is not None:
        nodes = cover.nodes(problem.metric, mean, problem.law)
    if nodes is None:
        constant = normal_constant(component.covariance)
    else:
        constant = summarise(nodes, component.precision, problem.tol)
    return Estimate(
        mean=mean,
        covariance=component.covariance,
        weights=component.weights,
        logs=component.logs,
        cover=cover,
        objective=float(0.5 * np.sum(component.precision * moment) + constant.value),
        log_constant=constant,
        nodes=nodes,
    )


def move(
    problem: FitProblem, means: Sequence[Array], components: Sequence[Component]
) -> list[Component]:
    """Components with means near their own; data and quadrature points are mapped anew.

    Data whose weight is negligible keep their tangents.
    """
    targets, near = [], []
    for old in components:
        rows = np.flatnonzero(matters(old.weights))
        parts, guesses = [problem.data[rows]], [old.logs.take(rows)]
        if old.cover is not None:
            parts.append(old.cover.points)
            guesses.append(old.cover.logs)
        targets.append(np.concatenate(parts))
        near.append(LogMap.concatenate(guesses))
    moved = []
    for mean, old, found in zip(
        means, components, problem.map_points(means, targets, near), strict=True
    ):
        n = int(matters(old.weights).sum())
        logs, cover = _merged(old, found.take(np.arange(n))), old.cover
        if cover is not None:
            cover = replace(cover, logs=found.take(np.arange(n, len(found.lengths))))
        moved.append(replace(old, mean=mean, logs=logs, cover=cover))
    return moved


def renewed(problem: FitProblem, components: Sequence[Component]) -> list[Component]:
    """Components with log maps of the data that do not depend on earlier ones.

    Data whose weight is negligible keep their tangents.
    """
    means = [each.mean for each in components]
    found = problem.map_points(
        means, [problem.data[matters(c.weights)] for c in components]
    )
    pairs = zip(components, found, strict=True)
    return [replace(old, logs=_merged(old, new)) for old, new in pairs]


def second_moment(problem: FitProblem, logs: LogMap, weights: Array) -> Array:
    """Weighted second moment of the data's tangents, regularised."""
    tangents, weights = usable_tangents(logs, weights)
    return problem.regularised((weights[:, None] * tangents).T @ tangents)


def _merged(old: Component, new: LogMap) -> LogMap:
    """Log maps of the data, with new ones for those whose weight matters."""
    moved = matters(old.weights)
    if moved.all():
        return new
    rest = np.flatnonzero(~moved)
    places = np.concatenate([np.flatnonzero(moved), rest])
    return LogMap.concatenate([new, old.logs.take(rest)]).take(np.argsort(places))


def _with_covers(
    problem: FitProblem, components: Sequence[Component]
) -> list[Component]:
    """Components with quadrature points placed for them."""
    if problem.is_flat:
        return list(components)
    bare = [replace(each, cover=None) for each in components]
    pairs = zip(bare, _covers(problem, bare), strict=True)
    return [replace(each, cover=cover) for each, cover in pairs]


def _covers(
    problem: FitProblem,
    components: Sequence[Component],
    n_points: int | None = None,
    *,
    final: bool = False,
) -> list[Cover]:
    """Quadrature points where the data of components are.

    Geodesics start from those to nearby data, or to nearby points of the covers that
    components have. Points of `final` constants are such that no fit has adapted itself
    to.
    """
    clouds = [_cloud(problem, each) for each in components]
    return place_covers(
        problem.metric,
        [each.mean for each in components],
        [each.precision for each in components],
        [points for points, _ in clouds],
        [logs for _, logs in clouds],
        n_points or problem.n_points or problem.points_on_the_way,
        problem.map_points,
        np.random.default_rng([problem.seed, int(final)]),
        _SETTINGS.final_tail if final else problem.tail,
        [each.cover for each in components],
    )


def _cloud(problem: FitProblem, component: Component) -> tuple[Array, LogMap]:
    """Points where a component has its mass, with their log maps.

    They are its data. If these have no extent in some direction, as a single row, they
    do not tell how far the mass reaches: then the covariance does.
    """
    shares, logs = component.weights / component.weights.max(), component.logs
    own = np.flatnonzero((shares > _SETTINGS.in_cloud) & logs.converged)
    points = problem.data[own]
    if np.linalg.matrix_rank(points - component.mean) == problem.metric.dim:
        return points, logs.take(own)
    rng = np.random.default_rng(problem.seed)
    return cloud_of(problem.metric, component.mean, component.covariance, rng)


def _step(
    problem: FitProblem,
    waiting: Sequence[int],
    moments: Sequence[Array],
    components: list[Component],
) -> list[int]:
    """The best covariances that covers can tell, and covers as wide as those need.

    Returns which of the `waiting` need another step.
    """
    unsettled = set()
    fewest = _SETTINGS.effective_per_dimension * problem.metric.dim
    for k in waiting:
        each, moment = components[k], moments[k]
        assert each.cover is not None
        nodes = each.cover.nodes(problem.metric, each.mean, problem.law)
        precision = solve_precision(
            moment, nodes, each.precision, problem.covariance_type
        )
        wanted, free = bounded_covariance(precision, each.covariance, moment)
        # Between too few points a covariance could shrink unseen.
        if each.cover.effective(invert(wanted)) < fewest:
            continue
        components[k] = replace(each, covariance=wanted)
        if not free:
            unsettled.add(k)
    own = [components[k] for k in waiting]
    old = [each.cover for each in own if each.cover is not None]
    grown = extend_covers(
        [each.mean for each in own],
        [each.precision for each in own],
        old,
        problem.map_points,
        problem.tail,
    )
    for k, before, cover in zip(waiting, old, grown, strict=True):
        if len(cover.points) > len(before.points):
            unsettled.add(k)
        components[k] = replace(components[k], cover=cover)
    return sorted(unsettled)


def _refine(problem: FitProblem, components: list[Component]) -> list[int]:
    """Place covers anew whose models have become narrower; which they are."""
    narrower = [
        k
        for k, each in enumerate(components)
        if each.cover is not None
        and each.cover.effective(each.precision)
        < _SETTINGS.sparse * each.cover.n_effective
    ]
    anew = _covers(problem, [components[k] for k in narrower])
    for k, cover in zip(narrower, anew, strict=True):
        components[k] = replace(components[k], cover=cover)
    return narrower
