"""Blocks for the device, and the same answers on an accelerator as on the processor."""

import jax
import numpy as np
import pytest

import land
from land import _device
from land.metrics import LocalDiagonalMetric

DIMENSIONS = (2, 10, 50)


@pytest.mark.parametrize("n", [1, 3, 4, 5, 16, 17, 40])
def test_blocks_hold_every_row_once(n):
    sizes = []

    def double(factor, rows):
        sizes.append(len(rows))
        return factor * rows

    (found,) = _device.in_blocks(double, (4, 16), 2.0, np.arange(float(n)))
    np.testing.assert_array_equal(found, 2.0 * np.arange(n))
    assert set(sizes) <= {4, 16}


def sheet(n, dim):
    """Points on a curved sheet in `dim` dimensions."""
    rng = np.random.default_rng(0)
    inner = rng.uniform(-1.0, 1.0, (n, 2))
    waves = np.sin(inner @ rng.normal(size=(2, dim)) + rng.uniform(0.0, 6.0, dim))
    return waves + 0.02 * rng.standard_normal((n, dim))


def on_processor(function, *arguments):
    with jax.default_device(jax.devices("cpu")[0]):
        return function(*arguments)


@pytest.fixture(scope="module", params=DIMENSIONS)
def metric(request):
    data = sheet(300, request.param)
    return LocalDiagonalMetric(data, 0.25 * request.param**0.5, 1e-2)


@pytest.mark.gpu
def test_log_maps_agree(metric):
    base, targets = metric.data[0], metric.data[1:65]
    found = land.log_map(metric, base, targets)
    expected = on_processor(land.log_map, metric, base, targets)
    assert found.converged.all()
    np.testing.assert_allclose(found.lengths, expected.lengths, rtol=1e-6)
    scale = np.abs(expected.tangents).max()
    np.testing.assert_allclose(found.tangents, expected.tangents, atol=1e-6 * scale)


@pytest.mark.gpu
def test_fits_agree():
    data = land.datasets.make_half_ellipse(60, random_state=0)
    model = land.LAND(sigma=0.3, rho=1e-2, n_samples=300, random_state=0)
    found = model.fit(data).objective_
    expected = on_processor(model.fit, data).objective_
    assert found == pytest.approx(expected, abs=1e-4)
