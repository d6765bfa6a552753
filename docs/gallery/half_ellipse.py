"""
A density along a half-ellipse
==============================

Points lie along half an ellipse. Geodesics from the mean run along them (left). The
LAND (middle) has its mean among the data, and its contours bend with them. The normal
distribution (right) has its mean beside the data and most of its mass in the empty
inside. Curves are one and two standard deviations. Sigma and rho are automatic, see
:doc:`/choosing`.
"""

import matplotlib.pyplot as plt
from sklearn.mixture import GaussianMixture

import land
from land import plotting

X = land.datasets.make_half_ellipse(600, random_state=0)
train, test = X[::2], X[1::2]  # the rows are in random order
model = land.LAND(n_samples=600, random_state=0).fit(train)
normal = GaussianMixture(1).fit(train)

figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(10, 2.4), layout="constrained"
)
limits = [[-5.3, 5.3], [-1.4, 2.6]]
plotting.plot_metric(model.metric_, left, limits=limits)
plotting.plot_responsibilities(model, train[::8], left)
plotting.plot_density(model, middle, grid=40, limits=limits)
plotting.plot_covariance(model, middle, label="one and two standard deviations")
plotting.plot_density(normal, right, limits=limits, colorbar=True)
plotting.plot_covariance(normal, right)
titles = "metric and geodesics", "LAND", "normal distribution"
panels = zip((left, middle, right), titles, (model, model, normal), strict=True)
for ax, title, each in panels:
    plotting.plot_data(train, ax, s=4, label="data")
    plotting.plot_means(each, ax, label="mean")
    ax.set(title=title, xticks=[], yticks=[], xlim=limits[0], ylim=limits[1])
handles, labels = middle.get_legend_handles_labels()
shown = dict(zip(labels, handles, strict=True))
figure.legend(shown.values(), shown, loc="outside lower center", ncols=3, frameon=False)

# %%
# The mean log density of rows that were not fitted:

print(f"LAND:   mean {model.mean_.round(2)}, held out {model.score(test):.2f}")
print(f"normal: mean {normal.means_[0].round(2)}, held out {normal.score(test):.2f}")
