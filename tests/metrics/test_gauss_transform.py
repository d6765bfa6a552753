"""Charges at the nodes of cells stand for the data in them."""

import numpy as np
import pytest

from land.metrics.gauss_transform import chebyshev_nodes, variances_at_nodes

NODES, _ = chebyshev_nodes(6)


def directly(places, column, row, width):
    """Both local variances at the nodes of a cell, datum by datum."""
    nodes = 0.5 * (NODES + 1.0)
    x, y = np.meshgrid(column + nodes, row + nodes, indexing="ij")
    squares = (width * (np.stack([x, y], axis=-1)[:, :, None] - places)) ** 2
    weights = np.exp(-0.5 * squares.sum(axis=-1))
    return np.einsum("xyn,xynd->xyd", weights, squares)


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
    found = variances_at_nodes(places, slots, margin, width, NODES)
    assert found.shape == (slots.max() + 1, 6, 6, 2)
    assert not found[0].any()
    for column, row in np.argwhere(slots)[:: 1 + n // 50]:
        expected = directly(places, column, row, width)
        error = np.abs(found[slots[column, row]] - expected)
        assert (error <= 1e-12 * expected.max() + 1e-14 * n).all()
