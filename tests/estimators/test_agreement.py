"""The F-measure of a clustering: cases computed by hand."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from land import f_measure


@pytest.mark.parametrize(
    ("classes", "clusters", "expected"),
    [
        # Two classes of the same size in one cluster: P = 1/2, R = 1.
        ("aabb", "0000", 2 / 3),
        # Singletons: P = 1, R = 1/2 for each class.
        ("aabb", "0123", 2 / 3),
        # Every cluster holds half of every class: P = R = 1/2.
        ("aabb", "0101", 1 / 2),
        # a: best with 0, P = 3/4, R = 3/4. b: 1, P = 2/3, R = 2/3. c: 2, P = R = 1.
        ("aaaabbbc", "00010112", 4 / 8 * 3 / 4 + 3 / 8 * 2 / 3 + 1 / 8),
        # Both classes are matched with the cluster 0: a 2*3/(3+5), b 2*2/(4+5) > 1/3.
        ("aaabbbb", "0000012", 3 / 7 * 3 / 4 + 4 / 7 * 4 / 9),
        # One row.
        ("a", "0", 1.0),
    ],
)
def test_by_hand(classes, clusters, expected):
    assert f_measure(list(classes), list(clusters)) == pytest.approx(expected)


@pytest.mark.parametrize(
    "classes",
    [
        ["w", "w", "n1", "rem", "rem"],
        np.array(["w", "w", "n1", "rem", "rem"]),
        np.array([0.5, 0.5, -1.0, 2.0, 2.0]),
        jnp.array([0, 0, 1, 2, 2]),
        pd.Series(["w", "w", "n1", "rem", "rem"], index=[9, 8, 7, 6, 5]),
        pd.Series(["w", "w", "n1", "rem", "rem"], dtype="category"),
        pd.Series([1, 1, 2, 3, 3], dtype="Int64"),
    ],
)
def test_any_kind_of_labels(classes):
    # Two rows with F = 1, one with 2*1/(1+2), two with 2*1/(2+1).
    assert f_measure(classes, [0, 0, 1, 1, 2]) == pytest.approx(
        2 / 5 + 1 / 5 * 2 / 3 + 2 / 5 * 2 / 3
    )


@pytest.mark.parametrize(
    ("classes", "clusters", "message"),
    [
        ([0, 1], [0], "same length, got 2 and 1"),
        ([], [], "minimum of 1"),
        (np.zeros((3, 1)), [0, 0, 0], r"one label for each row, got shape \(3, 1\)"),
        ("ab", [0, 0], "labels_true must be numbers or words"),
        (3, [0], "labels_true must be numbers or words"),
        (np.array([0, "a"], dtype=object), [0, 0], "must be numbers or words"),
        ([0, 0], [np.nan, 1.0], "labels_pred contains NaN"),
        (pd.Series([1, None], dtype="Int64"), [0, 0], "labels_true contains NaN"),
    ],
)
def test_what_makes_no_sense_is_refused(classes, clusters, message):
    with pytest.raises(ValueError, match=message):
        f_measure(classes, clusters)
