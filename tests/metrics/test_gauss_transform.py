"""Charges at the nodes of cells stand for the data in them."""

import numpy as np
import pytest

from land.metrics.gauss_transform import chebyshev_nodes, sums_at_nodes

NODES, _ = chebyshev_nodes(6)
POWERS = [(2, 0), (1, 1), (0, 2), (0, 0)]


def directly(places, column, row, width):
    """Sums at the nodes of a cell, datum by datum."""
    nodes = 0.5 * (NODES + 1.0)
    x, y = np.meshgrid(column + nodes, row + nodes, indexing="ij")
    offsets = width * (places - np.stack([x, y], axis=-1)[:, :, None])
    weights = np.exp(-0.5 * np.sum(offsets**2, axis=-1))
    terms = [np.prod(offsets**powers, axis=-1) for powers in POWERS]
    return np.einsum("xyn,dxyn->xyd", weights, terms)


@pytest.mark.parametrize("width", [1.0, 0.4])
@pytest.mark.parametrize("n", [1, 2, 500])
def test_sums_are_those_of_the_data(n, width):
    margin = int(np.ceil(9.0 / width))  # what lies beyond is below rounding
    rng = np.random.default_rng(n)
    places = margin + rng.uniform(0.0, [3.0, 5.0], (n, 2))
    places[0] = margin  # on a corner of its cell
    slots = np.zeros((2 * margin + 3, 2 * margin + 5), dtype=np.int32)
    for column, row in np.floor(places).astype(int):
        near = [slice(place - margin, place + margin + 1) for place in (column, row)]
        slots[*near] = 1
    slots[slots > 0] = np.arange(1, slots.sum() + 1)
    found = sums_at_nodes(places, slots, margin, width, NODES, POWERS)
    assert found.shape == (slots.max() + 1, 6, 6, 4)
    assert not found[0].any()
    for column, row in np.argwhere(slots)[:: 1 + n // 50]:
        expected = directly(places, column, row, width)
        error = np.abs(found[slots[column, row]] - expected)
        assert (error <= 1e-12 * np.abs(expected).max() + 1e-14 * n).all()
