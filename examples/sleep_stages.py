"""
Sleep stages from an EEG
========================

A night of sleep (recording SC4001 of Sleep-EDF): the powers of five frequency bands in
every 30 seconds, projected onto two principal components. Do clusters find what an
expert scored as wake, REM and other sleep? Mixtures of three are fitted to 300 of the
epochs, without their stages, and divide the whole night. The colour of a cluster is
that of the stage it has most of.

They do for the most part: the expert's cycles of REM can be seen. LAND finds that three
clusters need no curved metric here (`geometry_gain_` is negative), keeps the flat one
and is a mixture of normals. `land reproduce sleep` has the paper's features and all ten
recordings.

Run ``python -m examples.sleep_stages`` in a checkout, with the recording in the folder
that LAND_DATA_DIR names, or online: then it is downloaded, see :doc:`/reproduction`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

import land
from land import plotting
from reproduction.data import DataUnavailableError, load_sleep_features

try:
    night = load_sleep_features("SC4001")
except DataUnavailableError as error:
    raise SystemExit(f"This example needs data. {error}") from None

names = ["wake", "REM", "other sleep"]
stages = np.select([night.stages == 0, night.stages == 4], [0, 1], 2)
X = PCA(2).fit_transform(StandardScaler().fit_transform(night.features))
shuffled = np.random.default_rng(0).permutation(len(X))
seen, unseen = shuffled[:300], shuffled[300:]

models = {
    "mixture of LANDs": land.LANDMixture(3, n_samples=300, tol=1e-2, random_state=0),
    "mixture of normals": GaussianMixture(3, n_init=5, random_state=0),
}
divided = {"expert": stages}
for name, model in models.items():
    found = model.fit(X[seen]).predict(X)
    owners = [np.bincount(stages[found == k], minlength=3).argmax() for k in range(3)]
    divided[name] = np.array(owners)[found]
    score, density = land.f_measure(stages, found), model.score(X[unseen])
    print(f"{name:18}  F-measure {score:.3f}  held-out log density {density:.2f}")
print(f"geometry_gain_ {models['mixture of LANDs'].geometry_gain_:.2f}")

figure, axes = plt.subplot_mosaic(
    [list(divided), ["night"] * 3],
    figsize=(9, 4.5),
    layout="constrained",
    height_ratios=[1, 1],
)
colors = np.array(["#0072B2", "#D55E00", "#009E73"])
hours = np.arange(len(X)) * 30 / 3600
for row, (name, labels) in enumerate(divided.items()):
    for k, stage in enumerate(names):
        own = X[labels == k]
        plotting.plot_data(own, axes[name], color=colors[k], label=stage, alpha=0.7)
    axes[name].set(title=name, xticks=[], yticks=[])
    heights = 0.8 * labels - 4.0 * row
    axes["night"].scatter(hours, heights, c=colors[labels], s=5, linewidths=0)
axes["night"].set(xlabel="hours", yticks=[0.8, -3.2, -7.2], yticklabels=list(divided))
handles = axes["expert"].get_legend_handles_labels()
figure.legend(*handles, loc="outside lower center", ncols=3, markerscale=3)
plt.show()
