"""Two moons as two clusters.

Each moon is one curved cluster. A mixture of two LANDs follows the moons: geodesics
from each mean stay on its own moon; they are drawn as strong as the component's
responsibility. A mixture of two normal distributions, with as many parameters, cuts
both moons. Sigma and rho are automatic; with fewer points the automatic sigma is larger
and may span the gap.
"""

import matplotlib.pyplot as plt
from sklearn.mixture import GaussianMixture

import land
from land import plotting

X, y = land.datasets.make_two_moons(600, random_state=0)
model = land.LANDMixture(2, n_samples=600, random_state=0)
normal = GaussianMixture(2, random_state=0)

figure, axes = plt.subplots(1, 2, figsize=(8, 3))
for ax, each, name in zip(axes, (model, normal), ("LAND", "normal"), strict=True):
    clusters = each.fit(X).predict(X)
    score = land.f_measure(y, clusters)
    print(f"mixture of two {name}s: F-measure {score:.3f}")
    plotting.plot_responsibilities(each, X, ax)
    for k, color in enumerate(("#0072B2", "#D55E00")):
        plotting.plot_data(X[clusters == k], ax, color=color)
    plotting.plot_means(each, ax, s=90)
    ax.set(title=f"{name}, F-measure {score:.2f}", xticks=[], yticks=[])
figure.tight_layout()
figure.savefig("two_moons.png", dpi=150)
