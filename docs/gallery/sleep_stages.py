"""
Sleep stages from an EEG
========================

Five band powers of every 30 seconds of one night (recording SC4001 of Sleep-EDF), of
which 200 are clustered into three. The F-measure compares the clusters with wake, REM
and other sleep, as scored by an expert; colours are arbitrary. Sigma is 1. The paper's
own features and all ten recordings are in `land reproduce sleep`.

This script needs a recording, see :doc:`/reproduction`. It runs when the documentation
is built with the environment variable `LAND_DATA_DIR`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

import land
from land import plotting
from reproduction.data import load_sleep_features  # in a checkout of the repository

night = load_sleep_features("SC4001")  # downloaded if it is not there
stages = np.select([night.stages == 0, night.stages == 4], ["wake", "REM"], "other")
rows = np.random.default_rng(0).permutation(len(stages))[:200]
X = StandardScaler().fit_transform(night.features)[rows]
stages = stages[rows]

model = land.LANDMixture(3, sigma=1.0, n_samples=300, tol=1e-2, random_state=0)
clusters = {
    "stages of the expert": stages,
    "mixture of LANDs": model.fit_predict(X),
    "mixture of normals": GaussianMixture(3, random_state=0).fit_predict(X),
}
figure, axes = plt.subplots(1, 3, figsize=(10, 3.3), layout="constrained")
for ax, (name, labels) in zip(axes, clusters.items(), strict=True):
    score = land.f_measure(stages, labels)
    for k, label in enumerate(np.unique(labels)):
        own = X[labels == label][:, [0, 4]]
        color = ("#0072B2", "#D55E00", "#009E73")[k]
        plotting.plot_data(own, ax, color=color, label=str(label))
    ax.legend(markerscale=2)
    ax.set(title=f"{name}: {score:.2f}", xlabel="delta", ylabel="beta")
