"""How good the optimum is, and whether a model finds itself again in its samples."""

import numpy as np
import pytest

import land
from land.metrics.bandwidth import automatic_rho, automatic_sigma

FAST = {"n_samples": 1000, "random_state": 0}


@pytest.fixture(
    scope="module",
    params=["half_ellipse", pytest.param("circle", marks=pytest.mark.nightly)],
)
def data(request):
    return getattr(land.datasets, f"make_{request.param}")(60, random_state=0)


@pytest.fixture(scope="module")
def options(data):
    """One metric for all."""
    sigma = automatic_sigma(data)
    return FAST | {"sigma": sigma, "rho": automatic_rho(data, sigma)}


@pytest.mark.slow
def test_default_is_no_worse_than_the_paper_and_random_restarts(data, options):
    default = land.LAND(**options).fit(data)
    slack = 3.0 * default.log_constant_stderr_ + 2e-3
    paper = land.LAND(optimizer="paper", **options).fit(data)
    assert default.objective_ <= paper.objective_ + slack
    least_squares = land.LAND(method="least_squares", **options).fit(data)
    assert default.objective_ < least_squares.objective_
    assert default.converged_
    restarts = [
        land.LAND(init="random", **(options | {"random_state": seed})).fit(data)
        for seed in range(2)
    ]
    for restart in restarts:
        assert restart.converged_
        assert default.objective_ <= restart.objective_ + slack


@pytest.mark.slow
def test_a_model_is_recovered_from_its_samples():
    data = land.datasets.make_half_ellipse(100, random_state=0)
    metric = land.metrics.LocalDiagonalMetric(data, sigma=0.4, rho=0.3)
    options = {"metric": metric, **FAST}
    model = land.LAND(**options).fit(data)
    n = 1500
    samples, _ = model.sample(n, random_state=1)
    again = land.LAND(init=model.mean_, **options).fit(samples)
    # Errors of a mean and a second moment of n draws, in standard deviations; the
    # constant's curvature makes both a little larger than those of a normal.
    factor = np.linalg.cholesky(model.covariance_)
    shift = np.linalg.solve(factor, again.mean_ - model.mean_)
    assert np.linalg.norm(shift) < 6.0 * np.sqrt(2.0 / n)
    whitened = np.linalg.solve(factor, np.linalg.solve(factor, again.covariance_).T)
    assert np.abs(whitened - np.eye(2)).max() < 6.0 * np.sqrt(2.0 / n)
