"""How well clusters agree with classes that are known."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from typing import Any


def f_measure(labels_true: Any, labels_pred: Any) -> float:
    r"""F-measure of a clustering against known classes.

    Every class is matched with the cluster that recovers it best, and the scores of
    the classes are averaged with their sizes as weights:

    .. math::

        F = \sum_c \frac{n_c}{n} \max_k F_{ck}, \qquad
        F_{ck} = \frac{2 P_{ck} R_{ck}}{P_{ck} + R_{ck}}
               = \frac{2 n_{ck}}{n_c + n_k}

    where :math:`n_{ck}` rows of class :math:`c` lie in cluster :math:`k`, the precision
    :math:`P_{ck} = n_{ck} / n_k` is the share of the cluster that belongs to the class
    and the recall :math:`R_{ck} = n_{ck} / n_c` the share of the class that the cluster
    has found.

    Parameters
    ----------
    labels_true : sequence of length n
        The class of each row. Any hashable labels: numbers, strings, tuples; a list, an
        array or a pandas Series.
    labels_pred : sequence of length n
        The cluster of each row.

    Returns
    -------
    float
        Above 0 and at most 1; 1 if and only if clusters and classes are the same
        groups, whatever their names.

    Raises
    ------
    ValueError
        If the sequences differ in length, are empty, or hold missing or unhashable
        labels.

    Notes
    -----
    The number of clusters need not be that of the classes, and several classes may be
    matched with the same cluster. Classes and clusters do not play the same part:
    ``f_measure(a, b)`` and ``f_measure(b, a)`` differ in general.

    The value is not corrected for chance: a single cluster reaches
    :math:`\sum_c 2 n_c^2 / (n (n_c + n))`, 2/3 for two classes of the same size.
    Compare it between clusterings of the same data.

    The LAND paper uses this measure for its sleep stages, citing [1]_ without printing
    the formula.

    References
    ----------
    .. [1] R. Marxer, H. Purwins, A. Hazan. "An F-measure for evaluation of unsupervised
       clustering with non-determined number of clusters". Report of the EmCAP project
       (European Commission FP6-IST), 2008.

    Examples
    --------
    The names of the labels do not matter:

    >>> from land.estimators.agreement import f_measure
    >>> f_measure(["wake", "wake", "rem"], [1, 1, 0])
    1.0

    Class ``a`` is best recovered by cluster 0 (precision 1, recall 2/3), class ``b``
    by cluster 1 (precision 2/3, recall 1); each scores 4/5:

    >>> f_measure(["a", "a", "a", "b", "b"], [0, 0, 1, 1, 1])
    0.8
    """
    classes = _as_labels("labels_true", labels_true)
    clusters = _as_labels("labels_pred", labels_pred)
    if len(classes) != len(clusters):
        raise ValueError(
            "labels_true and labels_pred must have the same length, "
            f"got {len(classes)} and {len(clusters)}"
        )
    class_sizes, cluster_sizes = Counter(classes), Counter(clusters)
    best: dict[Hashable, float] = {}
    # Pairs that share no row score zero, and every class shares one with some cluster.
    for (c, k), shared in Counter(zip(classes, clusters, strict=True)).items():
        score = 2.0 * shared / (class_sizes[c] + cluster_sizes[k])
        best[c] = max(best.get(c, 0.0), score)
    total = math.fsum(size * best[c] for c, size in class_sizes.items())
    return total / len(classes)


def _as_labels(name: str, value: Any) -> list[Hashable]:
    """The labels as a list; arrays of more than one axis are refused."""
    shape = getattr(value, "shape", None)
    if shape is not None and len(shape) != 1:
        raise ValueError(
            f"{name} must have one axis, one label for each row, got shape "
            f"{tuple(shape)}"
        )
    if isinstance(value, (str, bytes)):
        raise ValueError(f"{name} must be a sequence of labels, got {value!r}")
    try:
        # NumPy scalars become Python's, so that an array and a list give equal labels.
        labels = value.tolist() if hasattr(value, "tolist") else list(value)
        set(labels)
    except TypeError as error:
        raise ValueError(
            f"{name} must be a sequence of hashable labels: {error}"
        ) from None
    if not labels:
        raise ValueError(f"{name} must not be empty")
    missing = sum(_is_missing(label) for label in labels)
    if missing:
        raise ValueError(f"{name} has {missing} missing labels (NaN); drop them first")
    return labels


def _is_missing(label: Hashable) -> bool:
    """Whether it is not equal to itself, as NaN, NaT and pandas' NA."""
    try:
        return bool(label != label)
    except TypeError:
        return True
