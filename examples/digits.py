"""
Is geometry worth it? Handwritten digits
========================================

Images of the digits 1, 0 and 7, each projected onto two principal components. Half of
them are fitted, the others scored by their mean log density. The ones lie along a
bow, and the LAND gains over a normal distribution. The zeros and sevens are clouds:
there is next to nothing to gain. Where that is less than 0.05, the default fit keeps
the flat metric, and the LAND is a normal distribution.

Run ``python -m examples.digits`` in a checkout. The digits are those of scikit-learn,
or of MNIST where LAND_DATA_DIR names a folder that has them, see :doc:`/reproduction`.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

import land
from land import plotting
from reproduction.data import DataUnavailableError, load_mnist

try:
    images, labels = load_mnist(subset="test", download=False)
except DataUnavailableError:
    images, labels = load_digits(return_X_y=True)
print(f"{len(images)} images of {images.shape[1]} pixels")

figure, axes = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained")
for ax, digit in zip(axes, (1, 0, 7), strict=True):
    own = images[labels == digit][:180]
    X = PCA(2, random_state=0).fit_transform(own)
    train, test = X[::2], X[1::2]
    model = land.LAND(n_samples=300, tol=1e-2, random_state=0).fit(train)
    normal = GaussianMixture(1).fit(train)
    gain = model.score(test) - normal.score(test)
    print(f"{digit}: geometry_gain_ {model.geometry_gain_:.2f}, held out {gain:+.2f}")
    plotting.plot_data(train, ax)
    plotting.plot_density(model, ax, grid=30, zorder=0, colorbar=digit == 7)
    plotting.plot_means(model, ax)
    ax.set(title=f"digit {digit}: {gain:+.2f}", xticks=[], yticks=[])
plt.show()
