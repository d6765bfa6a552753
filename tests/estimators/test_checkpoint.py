"""A fit that goes on from its checkpoint ends where it would have ended anyway."""

import errno

import numpy as np
import pytest

import land
from land.callbacks import Checkpoint
from land.estimators.files import read_archive
from land.fitting import climb
from land.metrics import EuclideanMetric

SETTINGS = {"n_samples": 300, "random_state": 0, "tol": 1e-9, "sigma": 0.8, "rho": 0.5}
FLAT = {"metric": EuclideanMetric(2), "n_samples": 100}
ARC = land.datasets.make_half_ellipse(60, random_state=1)
# So far from the optimum that a search does not reach it.
FAR = ARC[np.argmin(np.abs(ARC[:, 0] - 2.0))]


class Stop:
    """A callback that interrupts the fit at a step of a stage."""

    def __init__(self, stage, iteration):
        self.place = stage, iteration

    def __call__(self, step):
        if (step.stage, step.iteration) == self.place:
            raise KeyboardInterrupt


@pytest.fixture(scope="module", autouse=True)
def frequent_checkpoints():
    """Progress is kept every other step."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(climb, "STEPS_BETWEEN_CHECKPOINTS", 2)
        yield


@pytest.fixture(scope="module")
def data():
    return {
        "one": ARC,
        "two": land.datasets.make_circle(40, random_state=0),
    }


def make(kind, **options):
    if kind == "one":
        return land.LAND(**SETTINGS | {"init": FAR} | options)
    return land.LANDMixture(2, **SETTINGS | {"max_iter": 6} | options)


@pytest.fixture(scope="module")
def whole(data):
    """Fits that were never interrupted."""
    return {kind: make(kind).fit(data[kind]) for kind in data}


def check_same(model, other):
    for name, value in vars(other).items():
        if name.endswith("_") and isinstance(value, (np.ndarray, float, int)):
            np.testing.assert_array_equal(getattr(model, name), value, err_msg=name)
    for step, expected in zip(model.history_, other.history_, strict=True):
        assert step.objective == expected.objective
        np.testing.assert_array_equal(step.means, expected.means)


@pytest.mark.filterwarnings("ignore:the fit")
@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("two", ("search", 0)),
        ("one", ("fit", 3)),
        ("two", ("fit", 3)),
    ],
    ids=str,
)
def test_the_model_is_that_of_an_uninterrupted_fit(kind, place, whole, data, tmp_path):
    path = tmp_path / "fit.checkpoint"
    assert len(whole[kind].history_) > place[1] + 1
    kept = Checkpoint(path)
    stopped = make(kind, callback=[kept, Stop(*place)]).fit(data[kind])
    assert stopped.interrupted_
    steps = []
    resumed = make(kind, callback=[steps.append, kept]).fit(data[kind])
    assert not resumed.interrupted_
    assert not path.exists()
    check_same(resumed, whole[kind])
    if place[0] == "fit":
        assert not any(step.stage == "search" for step in steps)


def test_an_unseeded_fit_goes_on_with_its_own_randomness(cloud, tmp_path):
    path = tmp_path / "fit.checkpoint"
    with pytest.warns(UserWarning, match="interrupted"):
        land.LAND(callback=[Checkpoint(path), Stop("fit", 0)], **FLAT).fit(cloud)
    contents, _ = read_archive(path)
    opened = Checkpoint(path).open(contents["fingerprint"], [1])
    assert opened.entropy == contents["entropy"] != [1]
    assert land.LAND(callback=Checkpoint(path), **FLAT).fit(cloud).converged_


@pytest.fixture
def interrupted(cloud, tmp_path):
    """The checkpoint of a fit of the cloud."""
    path = tmp_path / "fit.checkpoint"
    callbacks = [Checkpoint(path), Stop("fit", 0)]
    model = land.LAND(callback=callbacks, random_state=0, **FLAT)
    with pytest.warns(UserWarning, match="interrupted"):
        model.fit(cloud)
    return path


@pytest.mark.parametrize(
    ("change", "scale"),
    [
        ({"random_state": 1}, 1),
        ({"tol": 1e-3}, 1),
        ({"covariance_type": "diag"}, 1),
        ({}, 2),
    ],
    ids=str,
)
def test_another_fit_does_not_take_it(change, scale, interrupted, cloud):
    settings = FLAT | {"random_state": 0} | change
    model = land.LAND(callback=Checkpoint(interrupted), **settings)
    before = interrupted.read_bytes()
    with pytest.raises(ValueError, match="belongs to a fit of other data"):
        model.fit(scale * cloud)
    assert interrupted.read_bytes() == before


def test_other_files_are_left_alone(flat, cloud, interrupted):
    model_file = interrupted.with_name("model")
    flat.save(model_file)
    whole = interrupted.read_bytes()
    for contents in (b"", b"{}", whole[:-9], model_file.read_bytes()):
        interrupted.write_bytes(contents)
        with pytest.raises(ValueError, match="is not a checkpoint"):
            land.LAND(callback=Checkpoint(interrupted), **FLAT).fit(cloud)
        assert interrupted.read_bytes() == contents


def test_a_full_disk_costs_a_warning_and_not_the_fit(data, tmp_path, monkeypatch):
    path = tmp_path / "fit.checkpoint"
    written = []

    def full(descriptor):
        written.append(descriptor)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.warns(RuntimeWarning, match="No space left on device") as caught:
        model = make("one", callback=Checkpoint(path)).fit(data["one"])
    assert len(written) > 1
    assert len(caught) == 1
    assert model.converged_
    assert list(tmp_path.iterdir()) == []


def test_restarts_have_none(cloud, tmp_path):
    kept = Checkpoint(tmp_path / "fit.checkpoint")
    model = land.LANDMixture(2, n_init=2, callback=kept, **FLAT)
    with pytest.raises(ValueError, match="checkpoint needs n_init=1"):
        model.fit(cloud)


def test_one_fit_has_one_checkpoint(cloud, tmp_path):
    several = [Checkpoint(tmp_path / name) for name in ("one", "two")]
    with pytest.raises(ValueError, match="callback must have one checkpoint, got 2"):
        land.LAND(callback=several, **FLAT).fit(cloud)
