"""
Confidence regions and tests
============================

The mean of a half-ellipse with its confidence regions, which bend with the data: the
model is refitted to rows drawn with replacement, see :doc:`/methods`. On the right two
samples from that curve, of which the second has more points near one end.
"""

import matplotlib.pyplot as plt
import numpy as np

import land
from land import plotting

X = land.datasets.make_half_ellipse(80, random_state=0)
model = land.LAND(n_samples=500, tol=1e-3, random_state=0).fit(X)
found = land.inference.bootstrap(model, X, 60, random_state=0)

rng = np.random.default_rng(1)
angles = np.pi * rng.beta(2.0, 1.0, size=40)
other = np.stack([3.0 * np.cos(angles), 1.5 * np.sin(angles)], axis=1)
other += 0.1 * rng.normal(size=other.shape)

figure, axes = plt.subplots(1, 2, figsize=(8, 2.2), layout="constrained")
plotting.plot_data(X, axes[0], s=6)
axes[0].plot(*found.means.T, "x", color="#0072B2", markersize=3)
plotting.plot_mean_region(found, axes[0], level=[0.5, 0.95], linewidth=1)
axes[0].set(title="regions of the mean: 50 % and 95 %")
axes[1].scatter(*X[:40].T, s=8, color="#0072B2")
axes[1].scatter(*other.T, s=8, color="#D55E00")
axes[1].set(title="two samples", aspect="equal")
for ax in axes:
    ax.set(xticks=[], yticks=[])

# %%
# The energy test compares geodesic distances between and within the samples, and the
# likelihood ratio their normal distributions along geodesics. Permutations of the
# labels say which values are large:

for statistic in ("energy", "likelihood_ratio"):
    test = land.inference.two_sample_test(X[:40], other, statistic, random_state=0)
    print(f"{statistic}: p = {test.pvalue:.3f}")

# %%
# New points of the same curve, and points of a straight line, against the model:

fresh = land.datasets.make_half_ellipse(40, random_state=1)
line = np.stack([np.linspace(-2.5, 2.5, 40), np.full(40, 0.2)], axis=1)
for name, rows in {"same curve": fresh, "a line": line}.items():
    test = land.inference.goodness_of_fit(model, rows, n_draws=60, random_state=0)
    print(f"{name}: p = {test.pvalue:.3f}")
