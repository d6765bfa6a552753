"""Model files: what is loaded is what was saved, and nothing else is loaded."""

import dataclasses
import errno
import io
import json
import os
import pickle
import threading
import zipfile

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import land
from land.estimators.archive import read_archive, replacing, write_archive
from land.estimators.fields import FIELDS
from land.estimators.files import load_with_extra
from land.fitting import Step
from land.metrics import EuclideanMetric, FunctionMetric, LocalDiagonalMetric

FAST = {"n_samples": 300, "random_state": 0}


@pytest.fixture(scope="module")
def moons():
    return land.datasets.make_two_moons(60, random_state=0)[0]


@pytest.fixture(scope="module")
def mixture(moons):
    return land.LANDMixture(2, max_iter=5, tol=1e-2, **FAST).fit(moons)


@pytest.fixture(scope="module")
def clusters(moons):
    return land.RiemannianKMeans(2, random_state=0).fit(moons)


@pytest.fixture
def file(arc_model, tmp_path):
    arc_model.save(tmp_path / "model.land")
    return tmp_path / "model.land"


def test_a_distribution_comes_back_bit_for_bit(arc_model, arc, file):
    loaded = land.load(file)
    assert type(loaded) is land.LAND
    assert loaded.get_params() == arc_model.get_params()
    for measure in ("lebesgue", "riemannian"):
        np.testing.assert_array_equal(
            loaded.score_samples(arc, measure), arc_model.score_samples(arc, measure)
        )
    np.testing.assert_array_equal(
        loaded.sample(20, random_state=3), arc_model.sample(20, random_state=3)
    )


def test_a_mixture_comes_back_bit_for_bit(mixture, moons, tmp_path):
    mixture.save(tmp_path / "model")
    loaded = land.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.score_samples(moons), mixture.score_samples(moons)
    )
    np.testing.assert_array_equal(
        loaded.predict_proba(moons), mixture.predict_proba(moons)
    )
    for mine, theirs in zip(loaded.sample(9, 1), mixture.sample(9, 1), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_clusters_come_back_bit_for_bit(clusters, moons, tmp_path):
    clusters.save(tmp_path / "model")
    loaded = land.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(moons), clusters.predict(moons))
    np.testing.assert_array_equal(loaded.labels_, clusters.labels_)
    assert loaded.labels_.dtype == clusters.labels_.dtype


@pytest.mark.parametrize("name", ["arc_model", "mixture", "clusters"])
def test_every_attribute_survives(name, request, tmp_path):
    """A new fitted attribute must be added to land.estimators.fields."""
    model = request.getfixturevalue(name)
    model.save(tmp_path / "model")
    loaded = land.load(tmp_path / "model")
    assert vars(loaded).keys() == vars(model).keys()
    for attribute, value in vars(model).items():
        if attribute not in ("metric_", "history_"):
            np.testing.assert_array_equal(getattr(loaded, attribute), value)
            assert type(getattr(loaded, attribute)) is type(value), attribute


def test_history_survives(arc_model, file):
    loaded = land.load(file)
    assert len(loaded.history_) == len(arc_model.history_) > 1
    for mine, theirs in zip(loaded.history_, arc_model.history_, strict=True):
        assert isinstance(mine, Step)
        np.testing.assert_array_equal(mine.means, theirs.means)
        assert dataclasses.replace(mine, means=0) == dataclasses.replace(
            theirs, means=0
        )


def test_every_part_of_a_step_is_stored():
    parts = {f"history_.{each.name}" for each in dataclasses.fields(Step)}
    # All steps of a history are of the fit itself, which is the default.
    assert parts - {"history_.stage"} <= FIELDS["LAND"].keys()


def test_parameters_survive(cloud, tmp_path):
    model = land.LAND(
        sigma=np.float64(1.5),
        init=[3.0, -1.0],
        random_state=np.random.RandomState(0),
        callback=lambda step: None,
        method="least_squares",
        n_samples=300,
    ).fit(cloud)
    model.save(tmp_path / "model")
    loaded = land.load(tmp_path / "model")
    assert loaded.sigma == 1.5
    assert loaded.sigma_ == 1.5
    np.testing.assert_array_equal(loaded.init, [3.0, -1.0])
    assert loaded.random_state is None
    assert loaded.callback is None
    assert loaded.metric is None
    assert loaded.method == "least_squares"


def test_names_of_features_survive(cloud, tmp_path):
    frame = pd.DataFrame(cloud, columns=["across", "up"])
    model = land.LAND(metric=EuclideanMetric(2), **FAST).fit(frame)
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
    np.testing.assert_array_equal(loaded.metric_._scaled, metric._scaled)


def double(x):
    return 2.0 + 0.0 * x


def test_a_metric_of_ones_own_is_handed_in_again(cloud, tmp_path):
    metric = FunctionMetric(double, 2)
    model = land.LAND(metric=metric, method="least_squares", **FAST).fit(cloud)
    model.save(tmp_path / "model")
    with pytest.raises(land.ModelFileError, match=r"land\.load\(path, metric=\.\.\.\)"):
        land.load(tmp_path / "model")
    for wrong in (FunctionMetric(lambda x: 3.0 + 0 * x, 2), EuclideanMetric(2)):
        with pytest.raises(land.ModelFileError, match="not the one"):
            land.load(tmp_path / "model", metric=wrong)
    with pytest.raises(land.ModelFileError, match="in 2 dimensions"):
        land.load(tmp_path / "model", metric=EuclideanMetric(3))
    loaded = land.load(tmp_path / "model", metric=metric)
    assert loaded.metric is metric
    np.testing.assert_array_equal(
        loaded.score_samples(cloud), model.score_samples(cloud)
    )


def test_a_stored_metric_is_not_handed_in_again(file):
    with pytest.raises(land.ModelFileError, match="leave out metric="):
        land.load(file, metric=EuclideanMetric(2))


def test_extra_survives(arc_model, tmp_path):
    extra = {"columns": ["a", "b"], "none": None, "shift": np.array([1.0, 2.0])}
    arc_model.save(tmp_path / "model", extra=extra)
    _, loaded = load_with_extra(tmp_path / "model")
    assert loaded.keys() == extra.keys()
    assert loaded["columns"] == ["a", "b"]
    np.testing.assert_array_equal(loaded["shift"], [1.0, 2.0])
    with pytest.raises(ValueError, match="names of letters"):
        arc_model.save(tmp_path / "model", extra={"../x": 1})


def test_standardised_columns_are_not_forgotten(arc_model, tmp_path):
    extra = {"center": np.zeros(2), "scale": np.ones(2)}
    arc_model.save(tmp_path / "model", extra=extra)
    with pytest.warns(UserWarning, match=r"\(X - center\) / scale"):
        land.load(tmp_path / "model")


def test_equal_models_are_equal_files(arc_model, file, tmp_path):
    arc_model.save(tmp_path / "again")
    assert file.read_bytes() == (tmp_path / "again").read_bytes()


def test_numpy_reads_the_file_without_pickle(arc_model, file):
    with np.load(file, allow_pickle=False) as members:
        np.testing.assert_array_equal(members["mean_"], arc_model.mean_)
        assert json.loads(members["header.json"])["format"] == "land-model"


# What cannot be saved.


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        land.LAND().save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_unknown_models_are_not_saved(arc_model, tmp_path):
    class Mine(land.LAND):
        pass

    mine = Mine()
    vars(mine).update(vars(arc_model))
    with pytest.raises(land.ModelFileError, match=r"must be one of LAND, .* got Mine"):
        mine.save(tmp_path / "model")
    strange = land.LAND()
    vars(strange).update(vars(arc_model), note_=1)
    with pytest.raises(land.ModelFileError, match=r"do not know: \['note_'\]"):
        strange.save(tmp_path / "model")


def test_a_failed_save_leaves_the_old_file_alone(arc_model, file):
    before = file.read_bytes()
    with pytest.raises(TypeError):
        arc_model.save(file, extra={"bad": object()})
    with pytest.raises(ValueError, match="closed"), replacing(file) as stream:
        stream.close()
    assert file.read_bytes() == before
    assert [each.name for each in file.parent.iterdir()] == ["model.land"]


def test_links_are_followed(arc_model, file):
    link = file.with_name("link")
    link.symlink_to(file)
    file.write_bytes(b"")
    arc_model.save(link)
    assert link.is_symlink()
    assert land.load(file).n_features_in_ == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_devices_and_pipes_are_not_replaced(arc_model, file):
    """A pipe of our own: were this wrong, root would lose /dev/null to the test."""
    pipe = file.with_name("pipe")
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.daemon = True
    reader.start()
    arc_model.save(pipe)
    reader.join(timeout=10)
    assert pipe.is_fifo()
    assert received == [file.read_bytes()]


def test_a_full_disk_is_an_error_and_leaves_nothing(arc_model, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        arc_model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# What is not loaded.


def rewrite(file, change):
    """Change header and arrays of a file, as someone with bad intentions would."""
    header, arrays = read_archive(file)
    change(header, arrays)
    write_archive(file, header, arrays)


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def replace_member(file, name, content, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(file) as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    members[name] = content
    with zipfile.ZipFile(file, "w", compression) as archive:
        for each, value in members.items():
            archive.writestr(each, value)


HEADERS = {
    "format": ({"format": "other"}, "not a land model file"),
    "newer": ({"version": 2}, "version 2 of the format"),
    "version": ({"version": "1"}, "version '1' of the format"),
    "class": ({"class": "os.system"}, "unknown class, 'os.system'"),
    "list": ({"class": []}, "malformed header"),
    "parameters": ({"parameters": {"evil": 1}}, "unknown parameter, 'evil'"),
    "callback": ({"parameters": {"callback": 1}}, "unknown parameter, 'callback'"),
    "nested": ({"parameters": {"init": {"array": "mean_"}}}, "must be a number"),
    "words": ({"parameters": {"volume": "other"}}, "'volume' must not be 'other'"),
    "numbers": ({"parameters": {"sigma": [1]}}, "'sigma' must be a number"),
    "fitted": ({"fitted": {}}, "malformed header .*n_features_in_"),
    "metric": ({"metric": {"learned": False, "kind": "x"}}, "unknown metric, 'x'"),
    "flat": (
        {"metric": {"learned": True, "kind": "EuclideanMetric"}},
        "unknown metric",
    ),
    "names": ({"feature_names": ["one"]}, "one string for each"),
    "extra": ({"extra": {"a": {"array": "mean_"}}}, "malformed header"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_unexpected_headers_are_refused(file, case):
    entries, message = HEADERS[case]
    rewrite(file, lambda header, arrays: header.update(entries))
    with pytest.raises(land.ModelFileError, match=message) as caught:
        land.load(file)
    assert "\n" not in str(caught.value)
    assert str(file) in str(caught.value)


NUMBERS = {
    "n_features_in_": [3, 0, -1, True, 2.0, "2", 10**30, None],
    "n_iter_": [-1, True, 1.0, 2**63],
    "converged_": [1, "yes", None],
    "log_constant_": ["nan", 1, None, [1.0]],
    "unknown_": [1],
}


@pytest.mark.parametrize("name", NUMBERS)
def test_unexpected_numbers_are_refused(file, name):
    for value in NUMBERS[name]:
        rewrite(
            file, lambda header, arrays, v=value: header["fitted"].update({name: v})
        )
        with pytest.raises(land.ModelFileError):
            land.load(file)


def test_a_missing_part_is_refused(file):
    parts = list(read_archive(file)[0])
    for part in parts:
        if part == "land":
            continue
        content = file.read_bytes()
        rewrite(file, lambda header, arrays, part=part: header.pop(part))
        with pytest.raises(land.ModelFileError):
            land.load(file)
        file.write_bytes(content)


ARRAYS = {
    "nan": ("mean_", np.array([np.nan, 0.0]), "mean_ must be finite"),
    "size": ("mean_", np.zeros(3), "does not go with the others"),
    "axes": ("mean_", np.zeros((1, 2)), "mean_ must have 1 axes"),
    "type": ("mean_", np.zeros(2, int), "mean_ must hold <f8, got int64"),
    "indefinite": ("covariance_", -np.eye(2), "positive definite"),
    "skew": ("precision_", np.array([[1.0, 1e-3], [0.0, 1.0]]), "symmetric"),
    "history": ("history_.objective", np.zeros(1), "does not go with"),
    "data": ("metric.data", np.zeros((5, 3)), "metric.data has shape"),
    "infinite": ("metric.data", np.full((5, 2), np.inf), "metric.data must be finite"),
    "empty": ("metric.data", np.zeros((0, 2)), "metric.data has shape"),
    "more": ("other", np.zeros(2), r"unexpected arrays: \['other'\]"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_unexpected_arrays_are_refused(file, case):
    name, array, message = ARRAYS[case]
    rewrite(file, lambda header, arrays: arrays.update({name: array}))
    with pytest.raises(land.ModelFileError, match=message):
        land.load(file)


def test_shares_that_are_none_are_refused(mixture, tmp_path):
    file = tmp_path / "model"
    for shares in ([0.5, 0.6], [-0.5, 1.5]):
        mixture.save(file)
        rewrite(file, lambda h, arrays, s=shares: arrays.update(weights_=np.array(s)))
        with pytest.raises(land.ModelFileError, match="weights_"):
            land.load(file)


class Bomb:
    """Leaves a trace if it is ever unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_pickles_are_not_opened(file, tmp_path):
    trace = str(tmp_path / "exploded")
    objects = np.array([Bomb(trace)], dtype=object)
    replace_member(file, "mean_.npy", npy(objects, allow_pickle=True))
    with pytest.raises(land.ModelFileError, match="not a plain number"):
        land.load(file)
    file.write_bytes(pickle.dumps(Bomb(trace)))
    with pytest.raises(land.ModelFileError, match="not a land model file"):
        land.load(file)
    assert not os.path.exists(trace)  # noqa: PTH110


def test_shapes_larger_than_the_file_are_refused(file):
    for shape in [(10**15,), (2**40, 2**40), (-2,)]:
        content = npy(np.zeros(2)).replace(b"(2,)", repr(shape).encode())
        header = content[10:].split(b"\n")[0]
        content = content[:8] + (len(header) + 1).to_bytes(2, "little") + content[10:]
        replace_member(file, "mean_.npy", content)
        with pytest.raises(land.ModelFileError, match="the size of its shape"):
            land.load(file)


def test_compressed_members_are_refused(file):
    """A few kilobytes could grow to terabytes."""
    replace_member(file, "mean_.npy", npy(np.zeros(10**5)), zipfile.ZIP_DEFLATED)
    with pytest.raises(land.ModelFileError, match="is compressed"):
        land.load(file)


@pytest.mark.parametrize("name", ["../evil.npy", "/etc/evil.npy", "evil.py", "a/b.npy"])
def test_members_with_other_names_are_refused(file, name):
    before = sorted(file.parent.parent.rglob("*"))
    replace_member(file, name, npy(np.zeros(2)))
    with pytest.raises(land.ModelFileError, match="unexpected"):
        land.load(file)
    assert sorted(file.parent.parent.rglob("*")) == before


def test_two_members_of_one_name_are_refused(file):
    with (
        zipfile.ZipFile(file, "a") as archive,
        pytest.warns(UserWarning, match="Duplicate"),
    ):
        archive.writestr("mean_.npy", npy(np.zeros(2)))
    with pytest.raises(land.ModelFileError, match="two of the same name"):
        land.load(file)


@pytest.mark.parametrize("content", [b"", b"PK", b"text\n", b"{}", npy(np.zeros(3))])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(land.ModelFileError, match="not a land model file"):
        land.load(tmp_path / "model")


def test_damaged_files_are_refused_or_read_as_they_were(arc_model, file):
    """Lost or changed bytes never give other numbers, or another kind of error."""
    content = file.read_bytes()
    rng = np.random.default_rng(0)
    for trial in range(300):
        if trial % 3 == 0:
            damaged = content[: rng.integers(len(content))]
        else:
            position = int(rng.integers(len(content)))
            if trial % 3 == 1:  # the directory is at the end, and a small part of it
                position = len(content) - 1 - position % 2500
            changed = content[position] ^ int(rng.integers(1, 256))
            damaged = content[:position] + bytes([changed]) + content[position + 1 :]
        file.write_bytes(damaged)
        try:
            loaded = land.load(file)
        except land.ModelFileError:
            continue
        np.testing.assert_array_equal(loaded.mean_, arc_model.mean_)
        np.testing.assert_array_equal(loaded.metric_.data, arc_model.metric_.data)


def test_deeply_nested_headers_are_refused(file):
    replace_member(file, "header.json", b'{"a":' * 100_000)
    with pytest.raises(land.ModelFileError):
        land.load(file)


def test_missing_files_and_folders_are_the_systems_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        land.load(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        land.load(tmp_path)
    with pytest.raises(land.ModelFileError, match="not a regular file"):
        land.load("/dev/null")


def test_jax_arrays_as_parameters(cloud, tmp_path):
    model = land.LAND(init=jnp.array([3.0, -1.0]), method="least_squares", **FAST)
    model.fit(cloud).save(tmp_path / "model")
    assert isinstance(land.load(tmp_path / "model").init, np.ndarray)
