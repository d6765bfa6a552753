"""The numbers behind the page of `land explore`: a model in the plane, seen live."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.mixture import GaussianMixture

from land.estimators.drawing import circle, outlines
from land.estimators.held_out import QUICK, QUICK_ROWS, mean_and_error, try_out
from land.estimators.standardized import Standardized, parts_of, responsibilities
from land.geodesics import exp_map, log_map
from land.metrics import KINDS
from land.metrics.learned import LocalMetric
from land.plotting.figures import View
from land.plotting.sheet import MARGIN, component_colors, mesh

# Rows that are drawn at most, geodesics to some of them, and rays of the fan.
_ROWS, _TARGETS, _RAYS = 2000, 50, 24
# Points of the metric's shading along each axis; segments of geodesics and of rays.
_SHADES, _SEGMENTS, _STEPS = 60, 24, 12
# Tolerance while something is dragged: errors are smaller than a pixel.
_ROUGH = 1e-3
# How far from the fitted values sigma and rho can be set: factors.
_RANGES = {"sigma": 4.0, "rho": 100.0}
# Steps of the quick fit.
_STEPS_OF_FIT = 30

QUESTIONS = ("state", "geodesics", "shading", "point", "held_out")


class SupersededError(Exception):
    """A quick fit was given up because another one is wanted, or none any more."""


class Explorer:
    """Answers questions about a model in the units of its data, from any thread.

    Questions are its public methods, apart from `answer`, `stop` and `wait`; answers
    are dictionaries of numbers and arrays.
    """

    def __init__(self, scaled: Standardized, columns: Sequence[str]) -> None:
        self._view, self._model = View(scaled, columns), scaled.estimator_
        metric = self._model.metric_
        if metric.dim != 2:
            raise ValueError(
                f"models of two columns can be explored, got {metric.dim}; fit it to "
                "two of them, or to two principal components"
            )
        if not isinstance(metric, LocalMetric):
            raise ValueError(
                "the model's space is flat: geodesics are straight lines, and there is "
                "nothing to explore; a fit with a sigma of your own is curved"
            )
        self._metric, self._points = metric, metric.landmarks
        self._order = np.random.default_rng(0).permutation(len(self._points))
        self._targets = self._points[self._order[:_TARGETS]]
        self._fitted = metric.sigma, metric.rho
        self._ranges = {
            name: [value / factor, value * factor]
            for (name, factor), value in zip(_RANGES.items(), self._fitted, strict=True)
        }
        rows = self._view.in_units(self._points)
        margin = MARGIN * np.ptp(rows, axis=0)
        low, high = rows.min(axis=0) - margin, rows.max(axis=0) + margin
        self._limits = np.stack([low, high], axis=1)
        self._metrics = {self._fitted: metric.tabulated()}
        self._last: Any = None  # geodesics
        self._wanted: Any = None  # quick fit
        self._drawing, self._fitting = threading.Lock(), threading.Lock()

    def answer(self, question: str, numbers: dict[str, float]) -> dict[str, Any]:
        """The answer to a question, and how long it took.

        A ValueError if the question makes no sense.
        """
        method = getattr(self, question) if question in QUESTIONS else None
        names = list(inspect.signature(method).parameters) if method else []
        if method is None or set(numbers) != set(names):
            got = f"{question} with {', '.join(numbers) or 'nothing'}"
            takes = f"{question} takes {', '.join(names) or 'nothing'}"
            known = f"questions are {', '.join(QUESTIONS)}"
            raise ValueError(f"{takes if method else known}; got {got}")
        allowed = {"x": self._limits[0], "y": self._limits[1], "settled": (0.0, 1.0)}
        for name, value in numbers.items():
            low, high = (allowed | self._ranges)[name]
            slack = 1e-6 * (high - low)  # of rounding on the way
            if not low - slack <= value <= high + slack:
                expected = f"{name} must be from {low:.6g} to {high:.6g}"
                raise ValueError(f"{expected}, got {value:.6g}")
        started = time.perf_counter()
        found: dict[str, Any] = method(**numbers)
        return found | {"milliseconds": 1e3 * (time.perf_counter() - started)}

    def stop(self) -> None:
        """Give up a quick fit that is under way."""
        self._wanted = None

    def wait(self) -> None:
        """Until nothing is computed: a process cannot end while JAX is at work."""
        with self._fitting, self._drawing:
            pass

    # The questions.

    def state(self) -> dict[str, Any]:
        """What does not change: rows, components, ranges of sigma and rho."""
        parts = parts_of(self._model)
        curves = outlines(self._metric, parts, 4 * _RAYS)
        kept = np.sort(self._order[:_ROWS])
        rows = self._view.in_units(self._points[kept])
        return {
            "columns": self._view.columns,
            "limits": self._limits,
            "rows": rows,
            "numbers": kept + 1,
            "clusters": responsibilities(self._view.scaled, rows).argmax(axis=1),
            "densities": self._view.scaled.score_samples(rows),
            "means": self._view.in_units(parts.means),
            "covariances": [*map(self._view.in_units, curves)],
            "colors": component_colors(len(parts.means)),
            "ranges": self._ranges,
            "fitted": dict(zip(_RANGES, self._fitted, strict=True)),
            "standardized": bool(np.any(self._view.scaled.scale_ != 1.0)),
        }

    def geodesics(
        self, x: float, y: float, sigma: float, rho: float, settled: float
    ) -> dict[str, Any]:
        """Geodesics from a point to some rows, and a fan of rays of equal length.

        Unless the point has `settled`, they start from those of the last question.
        """
        base, metric = (
            self._view.in_model(np.array([x, y])),
            self._metric_of(sigma, rho),
        )
        with self._drawing:
            quick: Any = {} if settled else {"tol": _ROUGH, "curves": self._last}
            logs = log_map(metric, base, self._targets, n_segments=_SEGMENTS, **quick)
            self._last = logs
        radius = 0.5 * float(np.median(logs.lengths))
        unit = np.linalg.inv(np.linalg.cholesky(metric.tensor(base)))
        times = np.linspace(0.0, 1.0, _STEPS + 1)
        tangents = radius * circle(_RAYS) @ unit
        fan = exp_map(metric, base, tangents, times=times, tol=_ROUGH)
        return {
            "curves": self._view.in_units(logs.curves[logs.converged]),
            "failed": int(np.sum(~logs.converged)),
            "fan": self._view.in_units(np.asarray(fan.rays)[fan.converged]),
            "radius": radius,
        }

    def shading(self, sigma: float, rho: float) -> dict[str, Any]:
        """Log sqrt|M| on a lattice over the window, row by row from below."""
        _, _, points = mesh(self._limits, _SHADES)
        heights = self._metric_of(sigma, rho).log_volume(self._view.in_model(points))
        return {"size": _SHADES, "heights": heights.ravel()}

    def point(self, x: float, y: float) -> dict[str, Any]:
        """Log density of a point under the fitted model, and its cluster."""
        row = np.array([[x, y]])
        (shares,) = responsibilities(self._view.scaled, row)
        found = {"cluster": int(shares.argmax()), "probability": float(shares.max())}
        return found | {"density": float(self._view.scaled.score_samples(row)[0])}

    def held_out(self, sigma: float, rho: float) -> dict[str, Any]:
        """How good these values are: a quick fit to some rows, scored on others.

        Beside a Gaussian mixture of as many components. The metric sums over fewer
        rows, and rho is smaller in proportion, so that geodesics stay what they are.
        A `SupersededError` if the question is asked again before the answer.
        """
        wanted = self._wanted = object()

        def give_way(step: Any) -> None:
            if self._wanted is not wanted:
                raise SupersededError

        count = min(QUICK_ROWS, len(self._points) * 4 // 5)
        train, test = np.split(self._order[: count + QUICK_ROWS], [count])
        (kind,) = (word for word, each in KINDS.items() if type(self._metric) is each)
        values = {"sigma": sigma, "rho": rho * count / len(self._points)}
        model = clone(self._model).set_params(metric=kind, **values, **QUICK)
        limits = {"max_iter": _STEPS_OF_FIT, "random_state": 0, "n_jobs": None}
        model.set_params(callback=give_way, **limits)
        with self._fitting:
            give_way(None)
            densities = try_out(model, self._points[train], self._points[test]).values
            normal = GaussianMixture(len(parts_of(model).means), random_state=0)
            normal.fit(self._points[train])
            # From now on dragging is as fast as with the fitted values.
            metric = self._metric_of(sigma, rho).tabulated()
            self._metrics = {
                self._fitted: self._metrics[self._fitted],
                (sigma, rho): metric,
            }
        ahead, error = mean_and_error(
            densities - normal.score_samples(self._points[test])
        )
        densities = densities - np.log(self._view.scaled.scale_).sum()
        return {
            "score": mean_and_error(densities)[0],
            **{"ahead": ahead, "error": error},
            **{"fitted_to": len(train), "held_out": len(test)},
            "failed": int(np.isnan(densities).sum()),
            "numbers": test + 1,
            "densities": densities,
        }

    def _metric_of(self, sigma: float, rho: float) -> LocalMetric:
        """The metric with these values; a table takes too long to make for it."""
        known = self._metrics.get((sigma, rho))
        return known or type(self._metric)(self._points, sigma, rho)
