"""What somebody tries first: plain clouds, iris, curves; fits of these were wrong once.

Means were up to 2.8 standard deviations off, a component of iris had 0.027 of the
weight, and samples of arcs did not show arcs; nothing was said of it.
"""

import numpy as np
import pytest
from scipy.spatial import KDTree
from sklearn.datasets import load_iris

import land

FAST = {"n_samples": 500, "random_state": 0}
SEEDS = [3, *(pytest.param(k, marks=pytest.mark.nightly) for k in range(16) if k != 3)]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_mean_of_a_cloud_is_in_its_middle(seed):
    X = np.random.default_rng(100 + seed).normal(size=(200, 2))
    model = land.LAND(**FAST).fit(X)
    assert np.linalg.norm(model.mean_ - X.mean(axis=0)) < 0.2
    assert model.health_ == []


@pytest.mark.nightly
def test_iris_has_three_components_of_weight():
    X, species = load_iris(return_X_y=True)
    model = land.LANDMixture(3, **FAST).fit(X)
    assert model.weights_.min() > 0.2
    assert model.health_ == []
    assert land.f_measure(species, model.predict(X)) > 0.85


def _three_arcs(seed):
    rng, k = np.random.default_rng(seed), np.arange(300) % 3
    turn = np.pi * rng.uniform(size=300)
    arcs = np.stack([np.cos(turn) + 2.5 * k, (-1.0) ** k * np.sin(turn)], axis=1)
    return arcs + 0.08 * rng.normal(size=(300, 2))


@pytest.mark.nightly
def test_samples_of_arcs_are_on_the_arcs():
    X, fresh = _three_arcs(0), _three_arcs(1)
    points, _ = land.LANDMixture(3, **FAST).fit(X).sample(300, random_state=0)
    usual, found = (KDTree(X).query(each)[0] for each in (fresh, points))
    assert np.median(found) < 2.0 * np.median(usual)
    assert np.quantile(found, 0.9) < 3.0 * np.quantile(usual, 0.9)
