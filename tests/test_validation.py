"""Arguments that make no sense get a ValueError that names them."""

import numpy as np
import pytest

from land._validation import (
    as_generator,
    check_count,
    check_points,
    check_positive,
    check_word,
)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1.0, 10**400]], "x must be an array of real numbers"),
        ([["a", "b"]], "x must be an array of real numbers"),
        ([[1j, 0.0]], "x must be an array of real numbers: got complex"),
        ([[1e200, 0.0]], r"x must be at most 1e\+150 in size, got 1e\+200"),
        ([[np.nan, np.inf]], "x must be finite, got 2 NaN or infinite values"),
        ([[0.0]], "x must have 2 coordinates on its last axis, got 1"),
        (np.zeros((0, 2)), "x must not be empty"),
        (3.0, "x must have at least one axis"),
        ([[1.0, 2.0], [3.0]], "x must be an array of real numbers"),
        (np.ma.masked_greater([[1.0, 5.0]], 2.0), "x has masked values; drop"),
        (np.array([["2026-01-01"] * 2], "M8[D]"), "x has dates or times"),
    ],
)
def test_points(value, message):
    with pytest.raises(ValueError, match=message):
        check_points("x", value, 2)


@pytest.mark.parametrize(
    "value",
    [0, -1.0, np.nan, np.inf, True, "1", None, 1j, [1, 2], 10**400, 1e200, 1e-200],
)
def test_positive_numbers(value):
    with pytest.raises(ValueError, match="sigma must be"):
        check_positive("sigma", value)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.array(3), np.array([4.0])])
def test_numbers_of_any_type(value):
    assert check_positive("sigma", value) == float(np.squeeze(value))
    assert check_positive("noise", 0, or_zero=True) == 0.0


def test_messages_are_short():
    for check in (check_count, check_positive):
        with pytest.raises(ValueError, match="n must be") as caught:
            check("n", 10**400)
        assert len(str(caught.value)) < 100
    words = 100_000 * "x"
    for check in (check_points, check_positive, check_count):
        with pytest.raises(ValueError, match="n must be") as caught:
            check("n", words)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("value", ["foo", 1000 * "x", None, np.ones(3), [1], {1: 2}])
def test_words(value):
    with pytest.raises(ValueError, match=r"law must be 'a', 'b' or 'c', got") as caught:
        check_word("law", value, ("a", "b", "c"))
    assert len(str(caught.value)) < 150
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [0, -1, 2.0, True, "1", None, 10**12, 10**400])
def test_counts(value):
    with pytest.raises(ValueError, match="n must be"):
        check_count("n", value)


def test_generators():
    rng = np.random.default_rng(0)
    assert as_generator(rng) is rng
    assert as_generator(3).random() == as_generator(np.int64(3)).random()
    shared = np.random.RandomState(0)
    assert as_generator(shared).random() != as_generator(shared).random()
    for wrong in (-1, 0.5, "0", [1, 2]):
        with pytest.raises(ValueError, match="random_state must be None, an integer"):
            as_generator(wrong)
