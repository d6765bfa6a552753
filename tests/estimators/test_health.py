"""The verdict after a fit: what did not go well, and what to do about it."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import land
from land.density.nodes import LogConstant
from land.estimators.health import Outcome, findings
from land.fitting import Estimate, FitProblem, Snapshot
from land.metrics import EuclideanMetric

FAST = {"n_samples": 500, "random_state": 0}


@pytest.mark.parametrize("name", ["flat", "moons_mixture"])
def test_all_is_well(request, name):
    assert request.getfixturevalue(name).health_ == []


def test_a_component_with_few_rows(cloud):
    """Two rows do not make a covariance; nobody is warned who did not ask."""
    X = np.concatenate([cloud, cloud[:2] + 50.0])
    model = land.LANDMixture(2, metric=EuclideanMetric(2), **FAST).fit(X)
    (line,) = model.health_
    small = int(np.argmin(model.weights_))
    assert line.startswith(f"component {small} has 2 rows for 5 parameters; use fewer")
    shared = {"metric": EuclideanMetric(2), "covariance_type": "spherical"}
    assert land.LANDMixture(1, **shared, **FAST).fit(cloud).health_ == []


def test_a_mean_far_from_its_data(cloud):
    """A fit that has hardly begun, from a point three standard deviations away."""
    spread = np.linalg.cholesky(np.cov(cloud.T, ddof=0))
    start = cloud.mean(axis=0) + spread @ [3.0, 0.0]
    paper = {"optimizer": "paper", "init": start, "max_iter": 1, "tol": 1e-12}
    with pytest.warns(ConvergenceWarning):
        model = land.LAND(metric=EuclideanMetric(2), **paper, **FAST).fit(cloud)
    offset = np.linalg.norm(np.linalg.solve(spread, model.mean_ - cloud.mean(axis=0)))
    assert offset > 1.5
    assert "did not converge within 1 steps" in model.health_[0]
    expected = f"mean of component 0 is {offset:.1f} standard deviations off the centre"
    assert expected in model.health_[1]


def test_a_density_that_a_gaussian_beats(arc):
    """A metric so smooth that it does not follow the arc."""
    model = land.LAND(sigma=1.2, rho=0.5, **FAST).fit(arc)
    loss = GaussianMixture(1).fit(arc).score(arc) - model.score(arc)
    assert loss > 0.05
    (line,) = model.health_
    assert line.startswith(f"an ordinary Gaussian mixture is better, by {loss:.2g} in")


def test_a_constant_that_is_hardly_known(flat, cloud):
    logs = land.log_map(flat.metric_, flat.mean_, cloud)
    weights = np.full(len(cloud), 1.0 / len(cloud))
    estimate = Estimate(
        mean=flat.mean_,
        covariance=flat.covariance_,
        weights=weights,
        logs=logs,
        objective=flat.objective_,
        log_constant=LogConstant(flat.log_constant_, 0.2, 25.0, 25, 25, 0),
    )
    snapshot = Snapshot([estimate], np.ones(1), flat.objective_)
    problem = FitProblem(flat.metric_, cloud, seed=0, law="lebesgue")
    ((line, category),) = findings(Outcome(snapshot, True), problem, weights, flat)
    assert line.startswith("log densities are uncertain by 0.2")
    assert category is None
