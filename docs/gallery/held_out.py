"""Held-out likelihood against Gaussian mixtures and kernel densities.

The log density with respect to dx can be compared between all density models. All
models are fitted to 100 points of a half-ellipse and score 200 others. The comparison
is not flattering: with a small rho one LAND is no better than a single normal
distribution, because the volume element puts mass beside the data
([why](../../distribution.md#the-density-in-dx)). A larger rho helps, and so does the
exact volume element, whose fit maximises this very likelihood. A mixture of several
normal distributions, or a kernel density, is better still on these data; take one of
these if a density is all you need.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

import land

X = land.datasets.make_half_ellipse(300, random_state=0)
train, test = X[:100], X[100:]
widths = {"bandwidth": np.geomspace(0.03, 1.0, 20)}
kernel = GridSearchCV(KernelDensity(), widths).fit(train).best_estimator_
others = {
    "1 normal": GaussianMixture(1).fit(train),
    "5 normals": GaussianMixture(5, random_state=0).fit(train),
    f"kernels, width {kernel.bandwidth:.2f}": kernel,
}
scores = {name: model.score_samples(test).mean() for name, model in others.items()}
truth = land.datasets.half_ellipse_log_density(test)
scores["the true density"] = truth.mean()
for name, score in scores.items():
    print(f"{name:24} {score:6.2f}")

figure, ax = plt.subplots(figsize=(7.5, 3.2))
for k, (name, score) in enumerate(scores.items()):
    ax.axhline(score, color=f"C{k + 2}", linestyle="--", label=name)
rhos = [0.2, 0.6, 2.0]
for volume in ("paper", "exact"):
    curve = []
    for rho in rhos:
        model = land.LAND(0.2, rho, volume=volume, n_samples=300, random_state=0)
        curve.append(model.fit(train).score(test))
        print(f"LAND, {volume}, rho {rho:<9g} {curve[-1]:6.2f}")
    ax.semilogx(rhos, curve, "o-", label=f"LAND, {volume} volume")
ax.set(xlabel="rho (sigma = 0.2)", ylabel="mean held-out log density")
ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
figure.tight_layout()
figure.savefig("held_out.png", dpi=150)
