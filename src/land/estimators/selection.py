"""Choice of the number of components, the metric and the measure."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_array

from land._validation import check_count, refuse
from land.estimators.base import check_choice, draw_integers
from land.estimators.contest import Contest, Criterion, Purpose, Row, rank
from land.estimators.held_out import LEAST_ROWS, Candidate
from land.estimators.mixture import LANDMixture
from land.metrics import KINDS, EuclideanMetric, Metric


@dataclass(frozen=True, eq=False)
class Selection:
    """Candidates of `select` and the one chosen.

    Attributes
    ----------
    table : pandas.DataFrame, or list of dict where pandas is not installed
        One row for each candidate, the best first, and one for each other model, see
        `select`.
    best : dict
        The row of the chosen candidate.
    model : LANDMixture
        The chosen model, fitted to all rows of the data.
    sentence : str
        Whether geometry pays for these data, or how stable the clusters are.
    criterion, purpose : str
        What it was chosen by, and for.
    interrupted : bool
        Whether an interrupt (Ctrl-C) has ended the search.
    """

    table: Any
    best: Row
    model: LANDMixture
    sentence: str
    criterion: Criterion
    purpose: Purpose
    interrupted: bool = False


def select(
    X: ArrayLike,
    n_components: Any = (1, 2, 3, 4),
    metric: Any = ("flat", "diagonal"),
    reference: Any = "lebesgue",
    *,
    purpose: Purpose = "density",
    criterion: Criterion = "held_out",
    labels: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    **parameters: Any,
) -> Selection:
    """Choose the number of components, the metric and the measure of a mixture.

    Candidates are compared by the log density of rows that were held out of their fits.
    All are fitted to few rows first, and roughly; the best third goes on with more, and
    the last ones with all. Flat candidates, which are Gaussian mixtures, go all the
    way. Of those within a standard error of the best, flat ones and then those of
    fewer components are preferred. The chosen one is fitted to all rows.

    A candidate that fails leaves its error in the table, and the others go on. An
    interrupt (Ctrl-C) ends the search and chooses among the candidates so far. A
    RuntimeError if there are none.

    Parameters
    ----------
    X : array_like of shape (N, D)
        The data, 25 rows at least.
    n_components : int or sequence of int
        Numbers of components to try.
    metric : {"flat", "diagonal", "full", "density"}, Metric or sequence of these
        Metrics to try, see `LAND`; the flat one always is.
    reference : {"lebesgue", "riemannian"} or sequence of these
        Measures to try, see `LAND`.
    purpose : {"density", "clusters"}
        ``"clusters"`` takes for each number of components the metric with the best
        density, and chooses the number whose clusters are the most stable: models
        fitted to two halves of the rows agree on them. One component is chosen unless
        others have a better density.
    criterion : {"held_out", "bic", "aic"}
        What to choose a density by. BIC and AIC are those of fits to all rows, and
        there is one round.
    labels : sequence of length N, optional
        Known classes of the rows, None where unknown. The clusters of each candidate
        are compared with them; they have no part in the choice.
    n_jobs : int, optional
        Number of candidates fitted at the same time, in processes of their own, see
        `LAND`. Each compiles for itself: one job is faster for a few small fits.
    random_state : None, int, RandomState or Generator
        Randomness of the fits and of the choice of the held-out rows, the same for all
        candidates.
    verbose : int
        Whether to report every candidate on the standard error stream, and about how
        much time is left.
    **parameters
        Further parameters of `LANDMixture`. With ``sigma="learn"`` or ``rho="learn"``
        they are learned for the two best candidates, and automatic for the others.

    Returns
    -------
    Selection
        Its table has ``model``, ``n_components``, ``metric`` and ``reference``;
        ``sigma`` and ``rho``, medians over the fits; the ``round`` in which the
        candidate dropped out; of that round the mean log density ``held_out`` (with
        respect to dx), by how much it is ``behind`` the best and the ``stderr`` of
        that; ``stability``, the mean adjusted Rand index of the halves; ``bic`` and
        ``aic`` if asked for; ``f_measure``, the agreement with `labels`;
        ``n_log_maps`` and ``seconds``, over all rounds; whether it was ``chosen``; and
        the ``error`` if it failed. Other models are Gaussian mixtures and a kernel
        density, fitted and scored as the candidates of the last round.

    Examples
    --------
    >>> import numpy as np
    >>> from land import select
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> X[20:] += 9.0
    >>> found = select(X, (1, 2, 3), metric="flat", random_state=0)
    >>> found.best["n_components"], found.model.means_.shape
    (2, (2, 2))
    """
    check_choice("criterion", criterion)
    check_choice("purpose", purpose)
    if purpose == "clusters" and criterion != "held_out":
        raise ValueError(f"criterion={criterion!r} is for purpose='density' only")
    rows = check_array(
        X, dtype=np.float64, ensure_min_samples=LEAST_ROWS, input_name="X"
    )
    whole = isinstance(random_state, Integral)
    # One seed for all candidates, so that they differ by what is compared.
    seed = random_state if whole else draw_integers(random_state, 1)[0]
    template = LANDMixture(**parameters, random_state=seed)
    grid = {"n_components": n_components, "metric": metric, "reference": reference}
    candidates = _candidates(grid, template, rows.shape[1])
    known = _check_labels(labels, len(rows))
    contest = Contest(rows, candidates, purpose, criterion, known, seed)
    reason, interrupted = "", False
    try:
        contest.run(n_jobs, verbose > 0)
    except (KeyboardInterrupt, Exception) as error:
        # Errors of a fit are in its row: this is Ctrl-C, or a process that was killed.
        if not contest.judged:
            raise
        interrupted = isinstance(error, KeyboardInterrupt)
        reason = "interrupted" if interrupted else f"{type(error).__name__}: {error}"
        warnings.warn(
            f"the search ended early ({reason}); the choice is among the candidates "
            "so far",
            UserWarning if interrupted else RuntimeWarning,
            stacklevel=2,
        )
    chosen = contest.choose()
    others: list[Row] = []
    sentence = ""
    if criterion == "held_out" and not reason:
        others, sentence = contest.compare(chosen)
    best = contest.rows[chosen]
    _warn_about_edge(contest.rows, best)
    model = contest.candidates[chosen].for_rows(rows)
    model.fit(X if hasattr(X, "columns") else rows)  # names of columns are kept
    if chosen in contest.learning:
        model.learning_ = contest.learning[chosen]
    table: Any = sorted(contest.rows, key=rank) + others
    with suppress(ImportError):
        import pandas

        counts = dict.fromkeys(("n_components", "round", "n_log_maps"), "Int64")
        table = pandas.DataFrame(table).astype(counts)
    return Selection(table, best, model, sentence, criterion, purpose, interrupted)


def _candidates(
    grid: dict[str, Any], template: LANDMixture, dim: int
) -> list[Candidate]:
    """All combinations, without repetitions; the flat ones first."""
    tried = {}
    for name, given in grid.items():
        one = np.ndim(given) == 0 or isinstance(given, Metric)
        tried[name] = list(dict.fromkeys([given] if one else given))
        if not tried[name]:
            raise ValueError(f"{name} must have at least one value to try")
    for each in tried["metric"]:
        if not isinstance(each, Metric) and each not in ("flat", *KINDS):
            refuse("metric", ("flat", *KINDS), ["a Metric"], each)
    for count in tried["n_components"]:
        check_count("n_components", count)
    flat = {"n_components": tried["n_components"], "metric": [EuclideanMetric(dim)]}
    curved = tried | {"metric": [each for each in tried["metric"] if each != "flat"]}
    found = []
    for values in ParameterGrid([flat, curved] if curved["metric"] else [flat]):
        model = clone(template).set_params(**values)
        model._check_parameters()
        found.append(Candidate(model))
    return found


def _check_labels(labels: Any, n: int) -> NDArray[Any] | None:
    if labels is None:
        return None
    values = list(labels)
    if len(values) != n:
        raise ValueError(
            f"labels must have one entry for each row of X, {n}, got {len(values)}"
        )
    if all(label is None for label in values):
        raise ValueError("labels must be known (not None) for at least one row")
    return np.array(values, dtype=object)


def _warn_about_edge(rows: list[Row], chosen: Row) -> None:
    """Warn of a choice at the edge of the numbers of components fitted."""
    counts = {row["n_components"] for row in rows if not row["error"]}
    best = chosen["n_components"]
    if len(counts) > 1 and (best == max(counts) or best == min(counts) > 1):
        largest = best == max(counts)
        edge, remedy = ("largest", "more") if largest else ("smallest", "fewer")
        warnings.warn(
            f"the chosen number of components, {best}, is the {edge} that was tried; "
            f"try {remedy} of them",
            UserWarning,
            stacklevel=3,
        )
