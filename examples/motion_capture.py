"""
The mean of a movement
======================

Jumping jacks from the CMU motion capture database (clip 22_16): 38 joints, every third
of 432 frames. Two principal components hold 98 % of the variance, and there the
movement is an arc. One component of a normal mixture covers its right part, with a mean
beside the arc: a pose that is not part of the movement. Means of LAND are on the arc.
The same holds for what is half way between two poses. The middle of the straight line
is off the arc; the geodesic follows it.

Run ``python -m examples.motion_capture`` in a checkout, with the clip in the folder
that LAND_DATA_DIR names, or online: then it is downloaded, see :doc:`/reproduction`.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

import land
from land import plotting
from reproduction.data import DataUnavailableError, load_mocap

try:
    frames = load_mocap("22_16")[::3]
except DataUnavailableError as error:
    raise SystemExit(f"This example needs data. {error}") from None

plane = PCA(2).fit(frames)
X = plane.transform(frames)
model = land.LANDMixture(2, n_samples=300, tol=1e-2, random_state=0).fit(X)
normals = GaussianMixture(2, n_init=5, random_state=0).fit(X)
first, last = X[X[:, 0].argmin()], X[X[:, 0].argmax()]
geodesic = land.geodesic(model.metric_, first, last)
odd = np.linalg.norm(normals.means_[:, None] - X, axis=2).min(axis=1).argmax()
kept = np.linalg.norm(model.means_ - normals.means_[odd], axis=1).argmin()
poses = {
    "LAND mean": (model.means_[kept], "o", "#0072B2"),
    "normal mean": (normals.means_[odd], "^", "#D55E00"),
    "half way, geodesic": (geodesic(0.5), "s", "#009E73"),
    "half way, straight": ((first + last) / 2, "D", "#CC79A7"),
}
for name, (place, _, _) in poses.items():
    nearest = np.linalg.norm(X - place, axis=1).min()
    print(f"{name:18}  {nearest:4.1f} from the nearest frame")

# %%
# The joints come without bones. A bone keeps its length while the body moves: the
# minimum spanning tree of short, constant distances is the skeleton.

lengths = np.array([pdist(frame.reshape(-1, 3)) for frame in frames])
costs = squareform(lengths.mean(axis=0) + 100 * lengths.std(axis=0) + 1e-9)
bones = np.array(minimum_spanning_tree(costs).nonzero())

figure, axes = plt.subplot_mosaic(
    [["plane"] * 4, list(poses)],
    figsize=(9, 6),
    layout="constrained",
    height_ratios=[3, 2],
)
ax = axes["plane"]
plotting.plot_density(model, ax, grid=60, zorder=0)
plotting.plot_data(X, ax, label="frames")
line = geodesic(np.linspace(0, 1, 100))
ax.plot(*line.T, color="#009E73", lw=1.5, label="geodesic")
for name, (place, marker, color) in poses.items():
    ax.plot(*place, marker, color=color, mec="white", ms=9, label=name)
    pose = plane.inverse_transform(place[None]).reshape(-1, 3)
    for bone in bones.T:
        axes[name].plot(*pose[bone][:, [2, 1]].T, color=color, lw=2)
    axes[name].set(aspect="equal", xlim=(-16, 16), ylim=(-20, 16), title=name)
    axes[name].axis("off")
ax.set(xlabel="first component", ylabel="second component")
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
plt.show()
