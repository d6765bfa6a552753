"""
Is geometry worth it? Handwritten digits
========================================

Images of the digits 1, 0 and 7, each projected onto two principal components. Half of
them are fitted, the others scored by their mean log density. The ones lie along a
bow, and the LAND gains over a normal distribution. The zeros and sevens are clouds:
there the default fit keeps the flat metric, and the LAND is a normal distribution.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

import land
from land import plotting

images, labels = load_digits(return_X_y=True)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained")
for ax, digit in zip(axes, (1, 0, 7), strict=True):
    X = PCA(2, random_state=0).fit_transform(images[labels == digit])
    train, test = X[::2], X[1::2]
    model = land.LAND(n_samples=300, tol=1e-2, random_state=0).fit(train)
    normal = GaussianMixture(1).fit(train)
    gain = model.score(test) - normal.score(test)
    print(f"{digit}: geometry_gain_ {model.geometry_gain_:.2f}, held out {gain:+.2f}")
    plotting.plot_data(train, ax)
    plotting.plot_density(model, ax, grid=30, zorder=0, colorbar=digit == 7)
    plotting.plot_means(model, ax)
    ax.set(title=f"digit {digit}: {gain:+.2f}", xticks=[], yticks=[])
