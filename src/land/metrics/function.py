"""Metrics in closed form: of a function of one point, or of its Jacobian, and flat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from land._device import in_float64
from land._validation import check_count, check_points
from land.metrics.base import Metric

PointFunction = Callable[[jax.Array], jax.Array]


@jax.tree_util.register_pytree_node_class
class FunctionMetric(Metric):
    """A metric from a user's function.

    Parameters
    ----------
    fn : callable
        Function of one point, (D,) -> (D,) for a diagonal metric or (D,) -> (D, D) for
        a full one, which JAX can trace and differentiate twice. Values must be real,
        positive definite and smooth.
    dim : int
        Number of dimensions D.
    landmarks : array_like of shape (n, D), optional
        Points through which geodesics may be routed when the straight line is a poor
        first guess, typically the data the metric was learned from.

    Examples
    --------
    The hyperbolic plane in the Poincaré disk:

    >>> import land
    >>> def poincare(x):
    ...     return 4.0 / (1.0 - x @ x) ** 2 * (1.0 + 0.0 * x)
    >>> metric = land.metrics.FunctionMetric(poincare, dim=2)
    >>> metric.tensor([0.0, 0.0]).tolist()
    [[4.0, 0.0], [0.0, 4.0]]
    """

    def __init__(
        self,
        fn: PointFunction,
        dim: int,
        landmarks: ArrayLike | None = None,
    ) -> None:
        self.dim = check_count("dim", dim)
        if not callable(fn):
            raise ValueError(f"fn must be callable, got {type(fn).__name__}")
        self.fn = fn
        self._check_shape()
        self._landmarks = (
            None
            if landmarks is None
            else check_points("landmarks", landmarks, self.dim, ndim=2)
        )

    @property
    def landmarks(self) -> NDArray[np.float64] | None:
        """The points given for routing geodesics, or None."""
        return self._landmarks

    def tensor_at(self, point: jax.Array) -> jax.Array:
        """The user's function."""
        values = jnp.asarray(self.fn(point))
        if jnp.iscomplexobj(values):
            raise ValueError("it returns complex numbers")
        return values.astype(point.dtype)

    def __repr__(self) -> str:
        name = getattr(self.fn, "__name__", repr(self.fn))
        return f"{type(self).__name__}({name}, dim={self.dim})"

    @in_float64
    def _check_shape(self) -> None:
        point = np.zeros(self.dim)
        what = "traced"
        try:
            shape = jax.eval_shape(self.tensor_at, point).shape
            what = "differentiated"  # forwards and backwards, as the solvers do
            jax.eval_shape(jax.hessian(self.tensor_at), point)
        except Exception as error:
            raise ValueError(
                f"fn could not be {what} by JAX for a point of shape ({self.dim},): "
                f"{error}\nUse jax.numpy operations on the point it is given."
            ) from error
        if shape not in ((self.dim,), (self.dim, self.dim)):
            raise ValueError(
                f"fn must return shape ({self.dim},) for a diagonal metric or "
                f"({self.dim}, {self.dim}) for a full one, got {shape}"
            )

    def tree_flatten(self) -> tuple[tuple[()], tuple[Any, int]]:
        """No arrays: what the function closes over is compiled in."""
        return (), (self.fn, self.dim)

    @classmethod
    def tree_unflatten(cls, static: tuple[Any, int], leaves: Any) -> FunctionMetric:
        """Inverse of `tree_flatten`."""
        metric = object.__new__(cls)
        metric.fn, metric.dim = static
        metric._landmarks = None  # only the host side routes through landmarks
        return metric


@dataclass(frozen=True)
class _Pullback:
    """Sum of J^T J over functions; equal ones share a compilation."""

    functions: tuple[PointFunction, ...]

    def __call__(self, point: jax.Array) -> jax.Array:
        ends = jax.jacfwd(lambda x: [jnp.ravel(each(x)) for each in self.functions])
        return sum((rows.T @ rows for rows in ends(point)), jnp.zeros(2 * point.shape))

    @property
    def __name__(self) -> str:
        return " + ".join(getattr(each, "__name__", "?") for each in self.functions)


@jax.tree_util.register_pytree_node_class
class PullbackMetric(FunctionMetric):
    """J(x)^T J(x), with the Jacobian J of a function, such as a decoder.

    The length of a curve is that of its image.

    Parameters
    ----------
    decoder : callable
        JAX-traceable function of one point, from (D,) to any shape. Its Jacobian must
        have rank D wherever a geodesic may pass.
    dim : int
        Number of dimensions D.
    uncertainty : callable, optional
        The decoder's standard deviations, a function like it. They add J^T J of their
        own: the expected metric of a decoder with independent normal noise. Where they
        rise, away from the data that the decoder was learned from, ways are longer, so
        that geodesics stay near the data.
    landmarks : array_like of shape (n, D), optional
        Points through which geodesics may be routed, such as the codes of the data.

    References
    ----------
    Arvanitidis, Hansen and Hauberg (2018), Latent Space Oddity: on the Curvature of
    Deep Generative Models.

    Examples
    --------
    The unit sphere in polar coordinates, where half a meridian has length pi / 2:

    >>> import jax.numpy as jnp
    >>> import land
    >>> def sphere(x):
    ...     return jnp.array([jnp.cos(x[0]), jnp.sin(x[0]) * jnp.cos(x[1]),
    ...                       jnp.sin(x[0]) * jnp.sin(x[1])])
    >>> metric = land.metrics.PullbackMetric(sphere, dim=2)
    >>> meridian = land.geodesic(metric, [jnp.pi / 4, 0.0], [3 * jnp.pi / 4, 0.0])
    >>> round(float(meridian.length), 4)
    1.5708
    """

    def __init__(
        self,
        decoder: PointFunction,
        dim: int,
        uncertainty: PointFunction | None = None,
        landmarks: ArrayLike | None = None,
    ) -> None:
        functions = (decoder,) if uncertainty is None else (decoder, uncertainty)
        for name, each in zip(("decoder", "uncertainty"), functions, strict=False):
            if not callable(each):
                raise ValueError(f"{name} must be callable, got {type(each).__name__}")
        super().__init__(_Pullback(functions), dim, landmarks)


@jax.tree_util.register_pytree_node_class
class EuclideanMetric(Metric):
    """The identity metric, under which the LAND is the ordinary normal distribution."""

    def __init__(self, dim: int) -> None:
        self.dim = check_count("dim", dim)

    @property
    def is_flat(self) -> bool:
        """It is."""
        return True

    def tensor_at(self, point: jax.Array) -> jax.Array:
        """The identity, as its diagonal."""
        return jnp.ones_like(point)

    def host_tensors(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Ones."""
        return np.ones(points.shape)

    def __repr__(self) -> str:
        return f"EuclideanMetric(dim={self.dim})"

    def tree_flatten(self) -> tuple[tuple[()], int]:
        """No arrays; the dimension is static."""
        return (), self.dim

    @classmethod
    def tree_unflatten(cls, dim: int, leaves: Any) -> EuclideanMetric:
        """Inverse of `tree_flatten`."""
        return cls(dim)
