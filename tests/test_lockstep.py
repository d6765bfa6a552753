"""Solvers side by side: each gets what it asked for, and answers in its place."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from land._device import in_lockstep


def count_down(name, sizes):
    """Ask once for each size; the answer is what was heard."""
    heard = []
    for size in sizes:
        points = np.full((size, 2), float(name))
        doubled, added = yield points, np.ones((size, 1))
        assert doubled.shape == (size, 2)
        assert added.shape == (size, 1)
        heard.append((float(doubled.sum()), float(added.sum())))
    return heard


def evaluate(points, vectors):
    return 2.0 * points, points[:, :1] + vectors


@given(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=5))
def test_every_solver_hears_its_own_replies(sizes):
    solvers = [count_down(k, own) for k, own in enumerate(sizes)]
    answers = in_lockstep(evaluate, solvers)
    expected = [
        [(4.0 * k * size, (k + 1.0) * size) for size in own]
        for k, own in enumerate(sizes)
    ]
    assert answers == expected


def test_evaluations_are_shared():
    calls = []

    def counted(points, vectors):
        calls.append(len(points))
        return evaluate(points, vectors)

    in_lockstep(counted, [count_down(0, [3, 1, 1]), count_down(1, [2, 2])])
    assert calls == [5, 3, 1]
