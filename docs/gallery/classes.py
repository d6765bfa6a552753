"""
Classes along curves
====================

One distribution for each of two curved classes, and Bayes' rule: `LANDClassifier`
beside quadratic discriminant analysis, which is the same with ellipses. Colours are the
probabilities of the classes, see :doc:`/methods`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

import land

X, y = land.datasets.make_wave_and_arc(160, noise=0.2, random_state=0)
new, kind = land.datasets.make_wave_and_arc(300, noise=0.2, random_state=1)
models = {
    "LANDClassifier": land.LANDClassifier(n_samples=300, tol=1e-2, random_state=0),
    "quadratic discriminant": QuadraticDiscriminantAnalysis(),
}

low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
x, z = np.linspace(low[0], high[0], 70), np.linspace(low[1], high[1], 50)
points = np.stack(np.meshgrid(x, z), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 2, figsize=(8, 2.9), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X, y)
    chances = model.predict_proba(points)[:, 1].reshape(50, 70)
    ax.contourf(x, z, chances, np.linspace(0.0, 1.0, 11), cmap="RdBu_r", alpha=0.6)
    ax.contour(x, z, chances, [0.5], colors="0.2", linewidths=1)
    ax.scatter(*X.T, c=np.where(y == 0, "#0072B2", "#D55E00"), s=5)
    title = f"{name}: {100 * model.score(new, kind):.0f} % of new points"
    ax.set(title=title, xticks=[], yticks=[], aspect="equal")

# %%
# Each class has a density, so that draws and outliers come for free:

classifier = models["LANDClassifier"]
drawn, classes = classifier.sample(5, random_state=0)
print(np.round(drawn, 2), classes)
print(classifier.score_samples([[0.0, 5.0]]), classifier.score_samples(X).min())
