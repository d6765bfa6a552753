"""Tiny runs of the experiments: their numbers, and what they say."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

import land
from reproduction import clustering, constant, means, mocap, scalability, sleep
from reproduction import synthetic as synthetic_experiment

TINY = {"sigma": 0.8, "rho": 1.0, "n_samples": 100, "grid": 6}
SETS = {"n_points": 30, "n_draws": 50, "n_fresh": 50, "paper_components": [1]}
NMF = {"n_starts": 1, "nmf_iter": 20, "gmm_seeds": 2}
FIT = {"n_fit": 30, "n_predict": 100, "seeds": [0], "sigmas": [1.0], "tol": 0.1}
CLIPS = {"every": 10, "dimensions": [2, 3], "clips": ["22_16"], "drawn": ["22_16"]}
# Experiments, their settings and how many rows they find; the last four need real data.
OTHERS = {
    "clustering": (TINY | {"sigma": 0.3, "n_points": 60}, None),
    "means": ({}, None),
    "mnist": (TINY | {"n_points": 50, "n_draws": 500, "n_fresh": 200}, None),
    "mocap": (CLIPS | {"n_samples": 100}, 4),
    "scalability": (
        {"n_points": 60, "n_targets": 5, "dimensions": [2, 10, 30], "raw": []},
        3,
    ),
    "sleep": (FIT | NMF | {"n_samples": 100}, 2),
}


def test_geodesics(smoke):
    found = smoke("geodesics", n_points=100, sigma=0.25, n_targets=5, n_rays=6)
    geodesic, straight = np.array([found.geodesic_lengths, found.straight_lengths])
    assert np.all(geodesic <= straight * (1.0 + 1e-6))
    # The ends of the arc see each other through empty space.
    assert geodesic[0] < 0.8 * straight[0]
    assert found.log_maps_converged == 5
    assert found.exp_maps_converged == 6
    curved, straight = found.distances_to_data
    assert curved < 0.5 * straight


def test_one_set_of_one_component(smoke):
    found = smoke("synthetic", **TINY | SETS, n_sets=1, components=[1])
    assert {row["model"] for row in found.rows} == {"gmm", "land", "least_squares"}
    assert found.result.numbers["pieces"]["computed"] == len(found.rows) == 5


@pytest.mark.nightly
def test_losses_and_selection_from_the_same_fits(smoke):
    tiny = TINY | SETS | {"sigma": 0.5, "rho": 0.1, "n_draws": 8000}
    tiny |= {"n_sets": 2, "components": [1, 2]}
    found = smoke("synthetic", **tiny)
    data = land.datasets.make_half_ellipse(30, random_state=1)
    points, _ = GaussianMixture(1).fit(data).sample(20_000)
    expected = -land.datasets.half_ellipse_log_density(points).mean()
    losses = synthetic_experiment.losses
    assert losses(found.rows, "gmm", "", 1)[1] == pytest.approx(expected, rel=0.15)
    ours = losses(found.rows, "land", "exact", 1)
    theirs = losses(found.rows, "least_squares", "exact", 1)
    assert np.all(np.array(ours) < theirs)
    assert min(ours) > found.entropy
    again = smoke("selection", **tiny)
    assert again.result.numbers["pieces"]["computed"] == 0
    for row in again.rows:
        penalty = row["bic_lebesgue"] - row["aic_lebesgue"]
        n_parameters = 6 * row["n_components"] - 1
        assert penalty == pytest.approx((np.log(30) - 2) * n_parameters)


@pytest.mark.nightly
def test_all_ways_to_the_constant_agree(smoke):
    tiny = {"rho": 0.1, "sigma": 0.5, "n_points": 40, "n_samples_fit": 100}
    sizes = {"sizes": [100, 800], "lattice_sizes": [800, 3000]}
    report = smoke("constant", **tiny, **sizes, n_grid=40, n_runs=4)
    for volume in constant.VOLUMES:
        found = getattr(report, volume)
        assert found["trapezoid"]["n_failed"] == 0
        lattice = constant.relative_errors(found, "lattice")
        plain = constant.relative_errors(found, "monte_carlo")
        assert np.abs(lattice[:, 1]).max() < 0.02
        assert np.abs(plain[:, 1]).max() < 0.25


@pytest.mark.nightly
@pytest.mark.parametrize("name", OTHERS)
def test_others_run_and_write_their_files(smoke, name):
    settings, n_rows = OTHERS[name]
    data = name in ("mnist", "mocap", "scalability", "sleep")
    found = smoke(name, data=data, **settings)
    assert len(found.rows) == (n_rows or len(found.rows)) > 0


# What the numbers say.


@pytest.mark.parametrize(
    ("land_mean", "least_squares", "word"),
    [(60, 30, "holds"), (33, 30, "tie"), (10, 30, "fails"), (2, 0, "fails")],
)
def test_what_percentiles_say(land_mean, least_squares, word):
    assert means.verdict(land_mean, least_squares) == word


def test_percentiles():
    data = np.array([[0.0], [0.1], [0.2], [5.0]])
    found = means.density_percentiles(np.array([[0.1], [2.5]]), data, 0.5)
    assert found.tolist() == [100.0, 25.0]


def test_spacing_leaves_out_neighbours_in_time():
    angles = np.linspace(0.0, 4.0 * np.pi, 101)[:-1]  # two turns of fifty frames
    turns = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    turns[50:] *= 1.1
    assert mocap.spacing(turns) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("signs", "answer"),
    [([1.0, 0.1], "holds"), ([1.0, -0.1], "partly"), ([0.0, -1.0], "fails")],
)
def test_answers(signs, answer):
    assert clustering._answer(signs) == answer


def test_stages_and_power_laws():
    stages = np.array([0, 1, 2, 3, 4, 5])
    assert sleep.three_stages(stages).tolist() == [0, 1, 1, 1, 1, 2]
    rows = [{"dim": d, "best": 3.0 * d**1.5} for d in (10, 20, 784)]
    assert scalability.power_law(rows) == pytest.approx((3.0, 1.5))
