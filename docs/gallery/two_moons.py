"""
Two moons as two clusters
=========================

Each moon is one curved cluster. Two LANDs follow the moons: geodesics from each mean
stay on its own moon. Two normal distributions, with as many parameters, cut both moons.
Lines are as strong as the responsibility of their component. A small rho makes the gap
between the moons long, see :doc:`/choosing`.
"""

import matplotlib.pyplot as plt
from sklearn.mixture import GaussianMixture

import land
from land import plotting

X, y = land.datasets.make_two_moons(300, random_state=0)
model = land.LANDMixture(
    2, sigma=0.15, rho=0.01, n_samples=300, tol=1e-2, random_state=0
)
normal = GaussianMixture(2, random_state=1)  # its components come in the same order

figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
for ax, each, name in zip(axes, (model, normal), ("LAND", "normal"), strict=True):
    clusters = each.fit(X).predict(X)
    score = land.f_measure(y, clusters)
    plotting.plot_responsibilities(each, X, ax)
    for k, color in enumerate(("#0072B2", "#D55E00")):
        own = X[clusters == k]
        plotting.plot_data(own, ax, color=color, alpha=1.0, label=f"component {k}")
    plotting.plot_means(each, ax, s=90)
    ax.set(title=f"{name}, F-measure {score:.2f}", xticks=[], yticks=[])
    ax.legend(frameon=False, markerscale=2)
