"""Charges at the nodes of cells stand for the data in them."""

import numpy as np
import pytest

from land.metrics.table import (
    cells_with_data,
    cells_within,
    chebyshev_nodes,
    sums_at_nodes,
)

NODES, _ = chebyshev_nodes(6)
POWERS = [(2, 0), (1, 1), (0, 2), (0, 0)]


def directly(places, column, row):
    """Sums at the nodes of a cell, datum by datum."""
    nodes = 0.5 * (NODES + 1.0)
    x, y = np.meshgrid(column + nodes, row + nodes, indexing="ij")
    offsets = places - np.stack([x, y], axis=-1)[:, :, None]
    weights = np.exp(-0.5 * np.sum(offsets**2, axis=-1))
    terms = [np.prod(offsets**powers, axis=-1) for powers in POWERS]
    return np.einsum("xyn,dxyn->xyd", weights, terms)


@pytest.mark.parametrize("n", [1, 2, 500])
def test_sums_are_those_of_the_data(n):
    margin = 9  # what lies beyond is below rounding
    rng = np.random.default_rng(n)
    places = margin + rng.uniform(0.0, [3.0, 5.0], (n, 2))
    places[0] = margin  # on a corner of its cell
    occupied = cells_with_data(places, (2 * margin + 3, 2 * margin + 5))
    slots = cells_within(occupied, (margin, margin))
    cells = np.argwhere(occupied)
    for place in np.ndindex(slots.shape):
        near = np.abs(cells - place).max(axis=1).min() <= margin
        assert (slots[place] > 0) == near
    assert sorted(slots[slots > 0]) == list(range(1, slots.max() + 1))
    found = sums_at_nodes(places, slots, margin, NODES, POWERS)
    assert found.shape == (slots.max() + 1, 6, 6, 4)
    assert not found[0].any()  # the slot of cells without data
    for column, row in np.argwhere(slots)[:: 1 + n // 50]:
        expected = directly(places, column, row)
        error = np.abs(found[slots[column, row]] - expected)
        assert (error <= 1e-12 * np.abs(expected).max() + 1e-14 * n).all()
