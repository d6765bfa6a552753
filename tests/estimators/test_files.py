"""Model files: what is loaded is what was saved."""

import copy
import dataclasses
import errno
import os
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import land
from land.estimators.files import replacing
from land.fitting import Step
from land.metrics import EuclideanMetric, FunctionMetric, LocalDiagonalMetric

FAST = {"n_samples": 300, "random_state": 0}


def test_a_distribution_comes_back_bit_for_bit(smooth_model, arc, file):
    loaded = land.load(file)
    assert type(loaded) is land.LAND
    assert loaded.get_params() == smooth_model.get_params()
    for measure in ("lebesgue", "riemannian"):
        np.testing.assert_array_equal(
            loaded.score_samples(arc, measure), smooth_model.score_samples(arc, measure)
        )
    for mine, theirs in zip(
        loaded.sample(20, 3), smooth_model.sample(20, 3), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", ["smooth_model", "moons_mixture", "moons_clusters"])
def test_every_attribute_survives(name, request, tmp_path):
    """A new fitted attribute must be added to land.estimators.files."""
    model = request.getfixturevalue(name)
    model.save(tmp_path / "model")
    loaded = land.load(tmp_path / "model")
    assert vars(loaded).keys() == vars(model).keys()
    for attribute, value in vars(model).items():
        if attribute not in ("metric_", "history_"):
            np.testing.assert_array_equal(getattr(loaded, attribute), value)
            assert type(getattr(loaded, attribute)) is type(value), attribute


def test_what_was_learned_from_is_not_kept(flat, tmp_path):
    model = copy.copy(flat)
    model.learning_ = [{"sigma": 1.0}]
    model.save(tmp_path / "model")
    assert not hasattr(land.load(tmp_path / "model"), "learning_")


def test_history_survives(smooth_model, file):
    loaded = land.load(file)
    assert len(loaded.history_) == len(smooth_model.history_) > 1
    for mine, theirs in zip(loaded.history_, smooth_model.history_, strict=True):
        assert isinstance(mine, Step)
        np.testing.assert_array_equal(mine.means, theirs.means)
        assert dataclasses.replace(mine, means=0) == dataclasses.replace(
            theirs, means=0
        )


def test_names_of_features_survive(cloud, tmp_path):
    frame = pd.DataFrame(cloud, columns=["across", "up"])
    options = {"method": "least_squares", "metric": EuclideanMetric(2)}
    model = land.LAND(**options, **FAST).fit(frame)
    model.save(tmp_path / "model")
    loaded = land.load(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == ["across", "up"]
    with pytest.raises(ValueError, match="feature names"):
        loaded.score_samples(frame[["up", "across"]])


@pytest.mark.parametrize("order", ["C", "F"])
def test_given_metrics_survive(cloud, tmp_path, order):
    metric = LocalDiagonalMetric(np.asarray(cloud, order=order), sigma=1.0, rho=0.1)
    model = land.LAND(metric=metric, method="least_squares", **FAST).fit(cloud)
    model.save(tmp_path / "model")
    loaded = land.load(tmp_path / "model")
    assert loaded.metric is loaded.metric_
    assert not hasattr(loaded, "sigma_")
    np.testing.assert_array_equal(
        loaded.score_samples(cloud), model.score_samples(cloud)
    )
    # Sums run along the memory: the same order gives the same bits.
    assert loaded.metric_.data.flags.f_contiguous == (order == "F")
    np.testing.assert_array_equal(loaded.metric_._sums.rows, metric._sums.rows)


def double(x):
    return 2.0 + 0.0 * x


def test_a_metric_of_ones_own_is_handed_in_again(flat, tmp_path):
    metric = FunctionMetric(double, 2)
    model = copy.copy(flat).set_params(metric=metric)
    model.metric_ = metric
    model.save(tmp_path / "model")
    with pytest.raises(land.ModelFileError, match=r"land\.load\(path, metric=\.\.\.\)"):
        land.load(tmp_path / "model")
    for wrong in (FunctionMetric(lambda x: 3.0 + 0 * x, 2), EuclideanMetric(2)):
        with pytest.raises(land.ModelFileError, match="not the one"):
            land.load(tmp_path / "model", metric=wrong)
    with pytest.raises(land.ModelFileError, match="in 2 dimensions"):
        land.load(tmp_path / "model", metric=EuclideanMetric(3))
    loaded = land.load(tmp_path / "model", metric=metric)
    assert loaded.metric is loaded.metric_ is metric


def test_a_stored_metric_is_not_handed_in_again(file):
    with pytest.raises(land.ModelFileError, match="leave out metric="):
        land.load(file, metric=EuclideanMetric(2))


def test_standardised_columns_are_not_forgotten(arc_means, arc, tmp_path):
    center, scale = np.array([5.0, -3.0]), np.array([2.0, 100.0])
    extra = {"center": center, "scale": scale}
    arc_means.save(tmp_path / "model", extra=extra)
    loaded = land.load(tmp_path / "model")
    expected = arc_means.score_samples(arc[:5]) - np.log(200.0)
    found = loaded.score_samples(center + scale * arc[:5])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    for wrong in ({"scale": -scale}, {"scale": scale[:1]}, {"center": [np.nan, 0.0]}):
        arc_means.save(tmp_path / "model", extra=extra | wrong)
        with pytest.raises(land.ModelFileError, match=r"center must|scale must"):
            land.load(tmp_path / "model")


def test_equal_models_are_equal_files(smooth_model, file, tmp_path):
    smooth_model.save(tmp_path / "again")
    assert file.read_bytes() == (tmp_path / "again").read_bytes()


# What cannot be saved.


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        land.LAND().save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_file_alone(smooth_model, file):
    before = file.read_bytes()
    with pytest.raises(TypeError):
        smooth_model.save(file, extra={"bad": object()})
    with pytest.raises(ValueError, match="closed"), replacing(file) as stream:
        stream.close()
    assert file.read_bytes() == before
    assert [each.name for each in file.parent.iterdir()] == ["model.land"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_devices_and_pipes_are_not_replaced(smooth_model, file):
    """A pipe of our own: were this wrong, root would lose /dev/null to the test."""
    pipe = file.with_name("pipe")
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.daemon = True
    reader.start()
    smooth_model.save(pipe)
    reader.join(timeout=10)
    assert pipe.is_fifo()
    assert received == [file.read_bytes()]


def test_a_full_disk_is_an_error_and_leaves_nothing(
    smooth_model, tmp_path, monkeypatch
):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        smooth_model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
