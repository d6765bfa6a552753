"""
A metric of one's own
=====================

A metric is one function of one point. This one is large around a pole, so geodesics go
round it (left). A LAND takes it as `metric`, in place of the learned one, and its
contours turn away from the pole (right). For a metric that has a meaning of its own,
`reference="riemannian"` is the Riemannian normal distribution, which does not depend on
coordinates. :doc:`/extending` has more on metrics.
"""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import land
from land import plotting


def around_a_pole(x):
    """The diagonal of the metric at x: 1 far from the origin, 26 at it."""
    return (1.0 + 25.0 * jnp.exp(-0.5 * (x @ x) / 0.4**2)) * jnp.ones(2)


metric = land.metrics.FunctionMetric(around_a_pole, dim=2)
start = np.array([-1.5, -0.2])
ends = np.stack([np.full(13, 1.5), np.linspace(-1.2, 1.2, 13)], axis=1)
logs = land.log_map(metric, start, ends)
print(f"{logs.converged.sum()} of {len(ends)} geodesics converged")

X = np.random.default_rng(0).normal([-1.0, 0.0], [0.8, 0.3], size=(150, 2))
model = land.LAND(
    metric=metric, reference="riemannian", n_samples=300, random_state=0
).fit(X)

limits = [[-3.2, 2.2], [-1.7, 1.7]]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.8), layout="constrained")
for ax in (left, right):
    plotting.plot_metric(metric, ax, limits=limits)
    ax.set(xticks=[], yticks=[])
plotting.plot_geodesics(logs.curves, left)
plotting.plot_data(np.vstack([start, ends]), left, s=20)
left.set_title("geodesics go round the pole")
plotting.plot_data(X, right)
plotting.plot_density(
    model, right, measure="riemannian", limits=limits, filled=False, colorbar=True
)
plotting.plot_means(model, right)
right.set_title("a LAND under this metric")
for ax in (left, right):
    ax.set(xlim=limits[0], ylim=limits[1])
