"""
Principal components along curves
=================================

One principal component of a half-ellipse. The curve of `GeodesicPCA` (left) is a
geodesic and runs along the data; every datum, in grey, is led to the point with its
coordinate on the curve. The line of ordinary PCA (right) cannot bend, see
:doc:`/methods`.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sklearn.decomposition import PCA

import land
from land import plotting

X = land.datasets.make_half_ellipse(150, random_state=0)
test = land.datasets.make_half_ellipse(150, random_state=1)
models = land.GeodesicPCA(1, random_state=0), PCA(1)

figure, axes = plt.subplots(1, 2, figsize=(8, 2.2), layout="constrained")
for ax, model in zip(axes, models, strict=True):
    along = model.fit_transform(X)
    again = model.inverse_transform(along)
    line = np.linspace(along.min(), along.max(), 200)[:, None]
    ax.add_collection(LineCollection(np.stack([X, again], axis=1), color="0.75"))
    plotting.plot_data(X, ax, s=6, label="data")
    look = {"color": "#D55E00", "linewidth": 2, "label": "first component"}
    ax.plot(*model.inverse_transform(line).T, **look)
    ax.plot(*model.mean_.reshape(2, 1), "o", color="#D55E00", ms=8, label="mean")
    share = model.explained_variance_ratio_[0]
    title = f"{type(model).__name__}: {100 * share:.1f} % of the variance"
    ax.set(title=title, xticks=[], yticks=[], aspect="equal")
handles = axes[0].get_legend_handles_labels()
figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False)

# %%
# Mean squared distance of new points from what one number says of them:

for model in models:
    missed = test - model.inverse_transform(model.transform(test))
    print(f"{type(model).__name__}: {np.mean(np.sum(missed**2, axis=1)):.3f}")
