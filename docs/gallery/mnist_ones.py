"""The digit 1 of MNIST in two dimensions.

Images of the digit 1, projected onto two principal components, lie along a bow: the
slant of the stroke. This is the subject of the paper's first figure. Half of 300 images
are fitted, the others scored by their mean log density, which is printed below.
"""

import matplotlib.pyplot as plt
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

import land
from land import plotting
from reproduction.data import load_mnist  # in a checkout of the repository

# Leave out download=False to fetch the images if they are not there.
images, _ = load_mnist(1, download=False)
points = PCA(2, random_state=0).fit_transform(images)[:300]
train, test = points[::2], points[1::2]
model = land.LAND(n_samples=600, random_state=0).fit(train)
normal = GaussianMixture(1).fit(train)

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6))
plotting.plot_density(model, left, measure="lebesgue", grid=40)
plotting.plot_responsibilities(model, train, left, max_curves=25)
limits = left.get_xlim(), left.get_ylim()
plotting.plot_density(normal, right, limits=limits)
for ax, each, name in ((left, model, "LAND"), (right, normal, "normal distribution")):
    plotting.plot_data(train, ax)
    plotting.plot_means(each, ax)
    ax.set(title=name, xlim=limits[0], ylim=limits[1], xticks=[], yticks=[])
    score = each.score_samples(test).mean()
    print(f"{name}: mean log density of other images {score:.2f}")
figure.tight_layout()
figure.savefig("mnist_ones.png", dpi=150)
