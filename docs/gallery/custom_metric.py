"""A metric of one's own.

A metric is one function of one point. Here it makes the neighbourhood of a pole
expensive, so that geodesics go round it (left). A LAND is fitted with `metric=` in
place of the learned metric. With the paper's volume element (middle) the mean climbs
the pole, where there is hardly any datum: [the
reason](../../corrections.md#what-it-does-to-the-mean) is the missing Jacobian. With the
exact volume element (right) it stays among the data, and the contours turn away from
the pole. [Extending](../../extending.md) has more on metrics.
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
limits = [[-3.2, 2.2], [-1.7, 1.7]]
figure, axes = plt.subplots(1, 3, figsize=(11, 2.7))
for ax in axes:
    plotting.plot_metric(metric, ax, limits=limits)
plotting.plot_geodesics(logs.curves, axes[0])
plotting.plot_data(np.vstack([start, ends]), axes[0], s=20)
axes[0].set_title("geodesics go round the pole")
for ax, volume in zip(axes[1:], ("paper", "exact"), strict=True):
    model = land.LAND(metric=metric, volume=volume, n_samples=600, random_state=0)
    model.fit(X)
    print(f"{volume}: mean {model.mean_.round(2)}, log density {model.score(X):.2f}")
    plotting.plot_data(X, ax)
    plotting.plot_density(model, ax, limits=limits, grid=40, filled=False)
    plotting.plot_means(model, ax)
    ax.set_title(f"LAND, {volume} volume")
for ax in axes:
    ax.set(xticks=[], yticks=[], xlim=limits[0], ylim=limits[1])
figure.tight_layout()
figure.savefig("custom_metric.png", dpi=150)
