"""A small run of the comparison of means: its numbers, and what they say."""

import numpy as np
import pytest

import land
from reproduction import means

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(smoke):
    return smoke("means")


def rows_of(report, dataset, metric):
    return {
        row["model"]: row
        for row in report.rows
        if (row["dataset"], row["metric"]) == (dataset, metric)
    }


@pytest.mark.nightly
def test_densities_and_percentiles_are_those_of_the_data(report):
    for row in report.rows:
        data = means.DATASETS[row["dataset"]](60, random_state=0)
        metric = land.metrics.LocalDiagonalMetric(data, row["sigma"], row["rho"])
        deltas = np.linalg.norm(metric.landmarks - np.array(row["mean"]), axis=1)
        density = np.exp(-0.5 * (deltas / row["sigma"]) ** 2).sum()
        assert row["local_density"] == pytest.approx(density)
        assert 0.0 <= row["percentile"] <= 100.0
        assert row["distance_to_nearest_datum"] == pytest.approx(deltas.min())


@pytest.mark.parametrize(
    ("land_mean", "least_squares", "word"),
    [(60, 30, "holds"), (33, 30, "tie"), (10, 30, "fails"), (2, 0, "fails")],
)
def test_what_percentiles_say(land_mean, least_squares, word):
    assert means.verdict(land_mean, least_squares) == word


@pytest.mark.nightly
def test_verdicts_follow_from_percentiles(report):
    assert len(report.verdicts) == 2 * 2
    for dataset in means.DATASETS:
        for metric in ("auto", "wide"):
            rows = rows_of(report, dataset, metric)
            baseline = rows["least_squares"]["percentile"]
            told = report.verdicts[f"{dataset}, {metric}"]
            assert told == {
                name: means.verdict(rows[name]["percentile"], baseline)
                for name in ("land", "land_paper")
            }


@pytest.mark.nightly
def test_the_claim_fails_on_the_circle_as_printed(report):
    """With a wide metric the likelihood as printed prefers the empty centre."""
    rows = rows_of(report, "circle", "wide")
    printed, baseline = rows["land_paper"], rows["least_squares"]
    assert printed["local_density"] < baseline["local_density"]
    assert printed["percentile"] <= baseline["percentile"]
    assert report.verdicts["circle, wide"]["land_paper"] == "fails"


def test_percentiles():
    data = np.array([[0.0], [0.1], [0.2], [5.0]])
    found = means.density_percentiles(np.array([[0.1], [2.5]]), data, 0.5)
    assert found.tolist() == [100.0, 25.0]
