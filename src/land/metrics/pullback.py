"""The metric that a function into another space brings back from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from numpy.typing import ArrayLike

from land.metrics.function import FunctionMetric

Decoder = Callable[[jax.Array], jax.Array]


@dataclass(frozen=True)
class _Pullback:
    """Sum of J^T J over functions; equal ones share a compilation."""

    functions: tuple[Decoder, ...]

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
        decoder: Decoder,
        dim: int,
        uncertainty: Decoder | None = None,
        landmarks: ArrayLike | None = None,
    ) -> None:
        functions = (decoder,) if uncertainty is None else (decoder, uncertainty)
        for name, each in zip(("decoder", "uncertainty"), functions, strict=False):
            if not callable(each):
                raise ValueError(f"{name} must be callable, got {type(each).__name__}")
        super().__init__(_Pullback(functions), dim, landmarks)
