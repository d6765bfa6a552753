"""Tiny runs of the experiments on synthetic data: their numbers, and what they say."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

import land
from reproduction import clustering, constant, selection, synthetic

pytestmark = pytest.mark.slow

TINY = {
    "sigma": 0.5,
    "rho": 0.1,
    "n_points": 30,
    "n_sets": 2,
    "components": [1, 2],
    "n_samples": 100,
    "n_draws": 8000,
    "n_fresh": 50,
    "grid": 6,
}


def test_one_set_of_one_component(smoke):
    changes = {"n_sets": 1, "components": [1], "n_draws": 50, "sigma": 0.8, "rho": 1.0}
    found = smoke("synthetic", **TINY | changes, paper_components=[1])
    assert {row["model"] for row in found.rows} == {"gmm", "land", "least_squares"}
    assert found.result.numbers["pieces"]["computed"] == len(found.rows) == 5


@pytest.fixture(scope="module")
def losses(smoke):
    return smoke("synthetic", **TINY, paper_components=[1])


@pytest.mark.nightly
def test_losses_of_gaussians_are_those_of_their_samples(losses):
    data = land.datasets.make_half_ellipse(30, random_state=1)
    points, _ = GaussianMixture(1).fit(data).sample(20_000)
    expected = -land.datasets.half_ellipse_log_density(points).mean()
    found = synthetic.losses(losses.rows, "gmm", "", 1)[1]
    assert found == pytest.approx(expected, rel=0.15)


@pytest.mark.nightly
def test_draws_without_the_volume_element_keep_to_the_data(losses):
    for row in losses.rows:
        if row["model"] == "land":
            assert row["loss_tangent"] < row["loss"]


@pytest.mark.nightly
def test_maximum_likelihood_follows_the_arc_better_than_least_squares(losses):
    ours = synthetic.losses(losses.rows, "land", "exact", 1)
    theirs = synthetic.losses(losses.rows, "least_squares", "exact", 1)
    assert np.all(np.array(ours) < theirs)
    assert min(ours) > losses.entropy


@pytest.mark.nightly
def test_claims_compare_pairs_of_losses(losses):
    settings = losses.result.numbers["settings"]
    answer, words = synthetic._compare(losses.rows, settings, "least_squares", 2)
    assert answer in ("holds", "partly", "fails")
    assert words.count("against") == 3
    swapped = [dict(row) for row in losses.rows]
    for row in swapped:
        names = {"land": "least_squares", "least_squares": "land"}
        row["model"] = names.get(row["model"], "gmm")
    opposite = {"holds": "fails", "fails": "holds", "partly": "partly"}
    found, _ = synthetic._compare(swapped, settings, "least_squares", 2)
    assert found == opposite[answer]


@pytest.mark.nightly
def test_selection_uses_the_same_fits(losses, smoke):
    found = smoke("selection", **TINY, paper_components=[1])
    assert found.result.numbers["pieces"]["computed"] == 0
    settings = found.result.numbers["settings"]
    for row in found.rows:
        if row["model"] == "gmm":
            seed = row["set"]
            data = land.datasets.make_half_ellipse(30, random_state=seed)
            model = GaussianMixture(row["n_components"], n_init=10, random_state=seed)
            assert row["bic_lebesgue"] == pytest.approx(model.fit(data).bic(data))
        penalty = row["bic_lebesgue"] - row["aic_lebesgue"]
        n_parameters = 6 * row["n_components"] - 1
        assert penalty == pytest.approx((np.log(30) - 2) * n_parameters)
    for kind in ("land", "least_squares", "gmm"):
        chosen = selection.chosen(found.rows, settings, kind, "bic", "lebesgue")
        values = [
            synthetic.losses(found.rows, kind, "exact", k, "bic_lebesgue")
            for k in (1, 2)
        ]
        assert chosen == [1 + (b < a) for a, b in zip(*values, strict=True)]


@pytest.fixture(scope="module")
def clusters(smoke):
    names = ("rho", "n_samples", "grid")
    tiny = {name: TINY[name] for name in names}
    return smoke("clustering", **tiny, sigma=0.3, n_points=60)


@pytest.mark.nightly
def test_clusters_of_gaussians_are_scikit_learns(clusters):
    data, labels = land.datasets.make_two_moons(60, random_state=0)
    model = GaussianMixture(2, n_init=10, random_state=0).fit(data)
    (row,) = (
        row
        for row in clusters.rows
        if (row["dataset"], row["model"]) == ("two moons", "gmm")
    )
    expected = land.f_measure(labels, model.predict(data))
    assert row["f_measure"] == pytest.approx(expected)
    np.testing.assert_allclose(row["means"], model.means_)


@pytest.mark.parametrize(
    ("signs", "answer"),
    [([1.0, 0.1], "holds"), ([1.0, -0.1], "partly"), ([0.0, -1.0], "fails")],
)
def test_answers(signs, answer):
    assert clustering._answer(signs) == answer


@pytest.fixture(scope="module")
def constants(smoke):
    return smoke(
        "constant",
        rho=0.1,
        sigma=0.5,
        n_points=40,
        n_samples_fit=100,
        n_grid=40,
        n_runs=4,
        sizes=[100, 800],
        lattice_sizes=[800, 3000],
    )


@pytest.mark.nightly
@pytest.mark.parametrize("volume", constant.VOLUMES)
def test_all_ways_to_the_constant_agree(constants, volume):
    found = getattr(constants, volume)
    assert found["trapezoid"]["n_failed"] == 0
    lattice = constant.relative_errors(found, "lattice")
    plain = constant.relative_errors(found, "monte_carlo")
    assert lattice.shape == plain.shape == (4, 2)
    assert np.abs(lattice[:, 1]).max() < 0.02
    assert np.abs(plain[:, 1]).max() < 0.25
    assert np.abs(plain[:, 1]).mean() > np.abs(lattice[:, 1]).mean()


@pytest.mark.nightly
def test_the_two_volumes_have_different_constants(constants):
    values = [
        getattr(constants, volume)["trapezoid"]["log_constant"]
        for volume in constant.VOLUMES
    ]
    assert abs(values[0] - values[1]) > 0.004  # the grid is accurate to 1e-3
