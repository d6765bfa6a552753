"""
Held-out likelihood: two references
===================================

The models are fitted to 300 points of a half-ellipse and score 300 others by the log
density with respect to dx. `reference` says what the exponential of the LAND is a
density of. With respect to dx, the default, the mass is on the data (left). With
respect to the metric's volume, as in the paper, some of it is beside the data (middle),
where that volume is large. :doc:`/comparison` has more data, with standard errors.
"""

import matplotlib.pyplot as plt
from sklearn.mixture import GaussianMixture

import land
from land import plotting

X = land.datasets.make_half_ellipse(600, random_state=0)
train, test = X[::2], X[1::2]  # the rows are in random order
effort = {"n_samples": 600, "random_state": 0}
models = {
    "LAND, lebesgue": land.LAND(**effort),
    "LAND, riemannian": land.LAND(reference="riemannian", **effort),
    "1 normal": GaussianMixture(1),
    "2 normals": GaussianMixture(2, random_state=0),
    "4 normals": GaussianMixture(4, random_state=0),
}
scores = {name: each.fit(train).score(test) for name, each in models.items()}

figure, axes = plt.subplots(1, 3, figsize=(11, 2.0), layout="constrained")
limits = [[-5.3, 5.3], [-1.4, 2.6]]
for ax, (name, model) in zip(axes, models.items(), strict=False):
    last = ax is axes[-1]
    plotting.plot_density(model, ax, grid=40, limits=limits, colorbar=last)
    plotting.plot_data(train, ax, s=4)
    plotting.plot_means(model, ax)
    ax.set(title=f"{name}: {scores[name]:.2f}", xticks=[], yticks=[])

# %%
# Mixtures of several normal distributions have more parameters. This is what they gain:

scores["the true density"] = land.datasets.half_ellipse_log_density(test).mean()
for name, score in scores.items():
    print(f"{name:18} {score:6.2f}")
