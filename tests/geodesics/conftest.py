"""Manifolds whose geodesics are known in closed form, and the half-ellipse."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pytest

import land
from land.metrics import FunctionMetric, LocalDiagonalMetric


class SpaceForm:
    """The unit sphere or the hyperbolic space in coordinates, through its embedding.

    With curvature k = 1 or -1, x -> (2 x, 1 - k |x|^2) / (1 + k |x|^2) puts a point on
    the unit sphere (stereographic coordinates) or on the unit hyperboloid (Poincaré
    ball). There geodesics are p cos r + u sin r (cosh, sinh). In these coordinates the
    metric is 4 / (1 + k |x|^2)^2 times the identity; `kind` says how it is given:

    diagonal: as its diagonal;
    full: as a matrix;
    sheared: as a matrix in coordinates z with x = A z, where nothing is diagonal.
    """

    def __init__(self, curvature: int, dim: int, kind: str) -> None:
        self.curvature, self.dim, self.kind = curvature, dim, kind
        self.axes = np.eye(dim)
        if kind == "sheared":
            self.axes += np.triu(np.full((dim, dim), 0.4), 1) - 0.2 * np.eye(dim, k=-1)
        self.metric = FunctionMetric(self._tensor, dim)

    def _tensor(self, point):
        x = self.axes @ point
        scale = 4.0 / (1.0 + self.curvature * x @ x) ** 2
        if self.kind == "diagonal":
            return scale * jnp.ones(self.dim)
        return scale * self.axes.T @ self.axes

    def draw_points(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Points well inside the region that the coordinates cover."""
        directions = rng.standard_normal((n, self.dim))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        radius = 0.8 if self.curvature < 0 else 1.5
        return self._sheared(radius * rng.uniform(0.05, 1.0, (n, 1)) * directions)

    def draw_base(self, rng: np.random.Generator) -> np.ndarray:
        """A point off the centre: from the centre geodesics are straight lines."""
        direction = rng.standard_normal(self.dim)
        return self._sheared(0.5 * direction / np.linalg.norm(direction))

    def draw_tangents(
        self, rng: np.random.Generator, base: np.ndarray, n: int, longest: float = 1.8
    ) -> np.ndarray:
        """Tangents of Riemannian lengths up to `longest`."""
        directions = rng.standard_normal((n, self.dim))
        lengths = self.norm(base, directions)
        wanted = rng.uniform(0.05, longest, n)
        return directions * (wanted / lengths)[:, None]

    def norm(self, base: np.ndarray, tangents: np.ndarray) -> np.ndarray:
        """Riemannian lengths of tangents."""
        x, v = self._straight(base), self._straight(tangents)
        return self._scale(x) * np.linalg.norm(v, axis=-1)

    def exp(self, base: np.ndarray, tangents: np.ndarray) -> np.ndarray:
        """The exponential map."""
        x, v = self._straight(base), self._straight(tangents)
        r = self.norm(base, tangents)[..., None]
        q = self._cosine(r) * self._embed(x) + self._sine(r) / r * self._push(x, v)
        return self._sheared(q[..., :-1] / (1.0 + q[..., -1:]))

    def distance(self, base: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Distances, from the half-angle formula in coordinates."""
        x, y = self._straight(base), self._straight(points)
        gap = np.linalg.norm(x - y, axis=-1)
        half = 0.5 * gap * np.sqrt(self._scale(x) * self._scale(y))
        return 2.0 * (np.arcsin(half) if self.curvature > 0 else np.arcsinh(half))

    def log(self, base: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The logarithm map."""
        x, y = self._straight(base), self._straight(points)
        r = self.distance(base, points)[..., None]
        p, q = self._embed(x), self._embed(y)
        w = (q - self._cosine(r) * p) * r / self._sine(r)
        height = 1.0 + p[..., -1:]
        return self._sheared(
            w[..., :-1] / height - p[..., :-1] * w[..., -1:] / height**2
        )

    def exp_det(self, base: np.ndarray, tangents: np.ndarray) -> np.ndarray:
        """det DExp: (sin r / r)^(D - 1) between orthonormal frames, and their volumes.

        The shear is the same at both ends and cancels.
        """
        r = self.norm(base, tangents)
        x = self._straight(base)
        y = self._straight(self.exp(base, tangents))
        frames = (self._scale(x) / self._scale(y)) ** self.dim
        return frames * (self._sine(r) / r) ** (self.dim - 1)

    def _straight(self, sheared):
        return np.asarray(sheared) @ self.axes.T

    def _sheared(self, straight):
        return np.linalg.solve(self.axes, np.asarray(straight)[..., None])[..., 0]

    def _scale(self, x):
        return 2.0 / (1.0 + self.curvature * np.sum(x**2, axis=-1))

    def _embed(self, x):
        squares = self.curvature * np.sum(x**2, axis=-1, keepdims=True)
        return np.concatenate([2.0 * x, 1.0 - squares], axis=-1) / (1.0 + squares)

    def _push(self, x, v):
        """The derivative of the embedding."""
        squares = self.curvature * np.sum(x**2, axis=-1, keepdims=True)
        growth = 4.0 * self.curvature * np.sum(x * v, axis=-1, keepdims=True)
        growth = growth / (1.0 + squares) ** 2
        return np.concatenate(
            [2.0 * v / (1.0 + squares) - x * growth, -growth], axis=-1
        )

    def _cosine(self, r):
        return np.cos(r) if self.curvature > 0 else np.cosh(r)

    def _sine(self, r):
        return np.sin(r) if self.curvature > 0 else np.sinh(r)

    def __repr__(self) -> str:
        name = "sphere" if self.curvature > 0 else "hyperbolic"
        return f"{name}-{self.dim}d-{self.kind}"


# Built once in a session: every new metric function is compiled anew.
_space_form = functools.cache(SpaceForm)


@pytest.fixture(scope="session")
def space_form() -> Callable[[int, int, str], SpaceForm]:
    """Make a SpaceForm from curvature, dimension and kind."""
    return _space_form


@pytest.fixture(scope="session")
def half_ellipse() -> np.ndarray:
    """The workload of the speed contract: 300 points along the arc."""
    return land.datasets.make_half_ellipse(300, n_centers=None, random_state=0)


@pytest.fixture(scope="session")
def half_ellipse_metric(half_ellipse) -> Callable[[float], LocalDiagonalMetric]:
    """Make the metric of the half-ellipse from sigma; rho is 1e-3."""
    return functools.cache(
        lambda sigma: LocalDiagonalMetric(half_ellipse, sigma=sigma, rho=1e-3)
    )


@pytest.fixture(scope="session")
def on_the_arc(half_ellipse) -> np.ndarray:
    """A base point in the middle of the arc, off the data."""
    return np.array([0.1, 1.5])
