"""Ctrl-C keeps what was reached; geodesics that fail are named, not guessed."""

from dataclasses import replace

import numpy as np
import pytest

import land
from land.estimators.mixture import MixtureRun
from land.metrics import EuclideanMetric

FAST = {"n_samples": 500, "random_state": 0}
# So that no time passes before there is something to interrupt.
SMOOTH = {"sigma": 0.8, "rho": 0.5}


class Impatient:
    """Presses Ctrl-C at the given step of a stage."""

    def __init__(self, step, stage="fit"):
        self.step, self.stage, self.steps = step, stage, []

    def __call__(self, step):
        if step.stage == self.stage:
            self.steps.append(step)
        if len(self.steps) == self.step:
            raise KeyboardInterrupt


@pytest.mark.parametrize("optimizer", ["auto", "paper"])
def test_an_interrupt_keeps_the_model_reached(arc, optimizer):
    watcher = Impatient(2)
    options = {"optimizer": optimizer, "tol": 1e-8, **SMOOTH, **FAST}
    model = land.LAND(callback=watcher, **options)
    with pytest.warns(UserWarning, match="interrupted after 2 steps"):
        model.fit(arc)
    assert model.converged_ is False
    assert model.interrupted_ is True
    assert len(model.history_) == len(watcher.steps) == 2
    np.testing.assert_array_equal(model.mean_, watcher.steps[-1].means[0])
    assert model.objective_ == watcher.steps[-1].objective
    assert np.all(np.isfinite(model.score_samples(arc)))
    assert model.sample(3, random_state=0)[0].shape == (3, 2)


def test_an_interrupt_of_the_search_keeps_its_best(arc):
    watcher = Impatient(1, "search")
    model = land.LAND(callback=watcher, **SMOOTH, **FAST)
    with pytest.warns(UserWarning, match="while it searched for a start"):
        model.fit(arc)
    assert model.interrupted_ is True
    assert model.converged_ is False
    assert model.history_ == []
    np.testing.assert_array_equal(model.mean_, watcher.steps[-1].means[0])
    assert np.all(np.isfinite(model.score_samples(arc)))


def test_an_interrupt_of_a_later_fit_keeps_the_best(arc, monkeypatch):
    """The second of three fits is interrupted before it has reached anything."""
    fits, run = [], MixtureRun.__call__

    def once(self, rng):
        fits.append(rng)
        if len(fits) == 2:
            raise KeyboardInterrupt
        return run(self, rng)

    monkeypatch.setattr(MixtureRun, "__call__", once)
    model = land.LANDMixture(2, n_init=3, method="least_squares", **FAST)
    with pytest.warns(UserWarning, match="interrupted"):
        model.fit(arc)
    assert len(fits) == 2
    assert model.interrupted_ is True
    assert np.all(np.isfinite(model.means_))


def test_an_interrupt_before_the_first_step_is_an_interrupt(arc, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("land.estimators.density.fit_one", interrupted)
    model = land.LAND(**FAST)
    with pytest.raises(KeyboardInterrupt):
        model.fit(arc)
    assert not hasattr(model, "mean_")


def test_other_errors_of_a_callback_are_not_swallowed(cloud):
    def broken(step):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        land.LAND(metric=EuclideanMetric(2), callback=broken, **FAST).fit(cloud)


@pytest.fixture
def lossy(smooth_model, monkeypatch):
    """The arc's model, with log maps that fail at rows 1 and 3.

    As a solver does, they leave their last curve behind: a number, and a wrong one.
    """

    def log_map(metric, base, points, **options):
        logs = land.log_map(metric, base, points, **options)
        converged = logs.converged.copy()
        converged[[1, 3]] = False
        return replace(logs, converged=converged)

    monkeypatch.setattr("land.estimators.scoring.log_map", log_map)
    return smooth_model


LOST = np.array([False, True, False, True, False])


@pytest.mark.parametrize("measure", ["lebesgue", "riemannian"])
def test_scores_of_points_out_of_reach_are_not_numbers(
    lossy, arc, measure, monkeypatch
):
    with pytest.warns(RuntimeWarning, match="geodesics to 2 of 5 points.*try a larger"):
        scores = lossy.score_samples(arc[:5], measure)
    np.testing.assert_array_equal(np.isnan(scores), LOST)
    monkeypatch.undo()
    whole = lossy.score_samples(arc[:5], measure)
    np.testing.assert_allclose(scores[~LOST], whole[~LOST], rtol=1e-6)


def test_tangents_to_points_out_of_reach_are_not_numbers(lossy, arc):
    with pytest.warns(RuntimeWarning, match="geodesics to 2 of 5 points"):
        tangents = lossy.tangents(arc[:5])
    assert np.all(np.isnan(tangents[LOST]))
    assert np.all(np.isfinite(tangents[~LOST]))
