"""The coefficients of the Runge-Kutta method satisfy the conditions of its order."""

import numpy as np

from land.geodesics.dop853 import ERROR_3, ERROR_5, STAGES, STEP, TABLEAU

NODES = TABLEAU.sum(axis=1)


def test_weights_integrate_polynomials_of_degree_seven():
    for degree in range(8):
        moment = STEP @ NODES[:STAGES] ** degree
        np.testing.assert_allclose(moment, 1.0 / (degree + 1), rtol=1e-13)


def test_stages_are_explicit_and_know_the_nodes():
    np.testing.assert_array_equal(np.triu(TABLEAU), 0.0)
    # From the sixth stage on, stages are of order three at least.
    squares = TABLEAU @ NODES**2
    np.testing.assert_allclose(squares[5:], NODES[5:] ** 3 / 3.0, atol=1e-13)


def test_errors_vanish_for_polynomials_that_both_orders_integrate():
    for weights, degrees in ((ERROR_5, 5), (ERROR_3, 3)):
        for degree in range(degrees):
            sums = weights @ NODES[: len(weights)] ** degree
            assert abs(sums) < 1e-13
