"""Choice of the number of components and of sigma."""

from __future__ import annotations

import math
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, train_test_split
from sklearn.utils import check_array

from land._validation import check_count
from land.estimators.base import check_choice, draw_integers, is_learned
from land.estimators.callbacks import tell
from land.estimators.clustering import f_measure
from land.estimators.density import information_criteria
from land.estimators.held_out import try_out
from land.estimators.mixture import LANDMixture
from land.estimators.scoring import spread

Criterion = Literal["bic", "aic", "held_out"]
Row = dict[str, Any]

# Signs that make the best value the smallest.
SIGNS = {"bic": 1.0, "aic": 1.0, "held_out": -1.0}


@dataclass(frozen=True, eq=False)
class Selection:
    """Candidates of `select` and the one chosen.

    Attributes
    ----------
    table : pandas.DataFrame, or list of dict where pandas is not installed
        One row for each candidate, in the order of the grid, see `select`.
    best : dict
        The row of the chosen candidate.
    model : LANDMixture
        The chosen model, fitted to all rows of the data.
    criterion : str
        What it was chosen by.
    interrupted : bool
        Whether an interrupt (Ctrl-C) has ended the search.
    """

    table: Any
    best: Row
    model: LANDMixture
    criterion: Criterion
    interrupted: bool = False


def select(
    X: ArrayLike,
    n_components: Any = (1, 2, 3, 4),
    sigma: Any = None,
    *,
    estimator: LANDMixture | None = None,
    labels: Any = None,
    criterion: Criterion = "bic",
    held_out: bool = False,
    test_size: float = 0.25,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    **parameters: Any,
) -> Selection:
    """Fit mixtures over a grid of components and sigmas, and choose one.

    A candidate that fails leaves its error in the table, and the others go on. An
    interrupt (Ctrl-C) ends the search and chooses among the candidates finished so far.
    A RuntimeError if no candidate can be chosen.

    Parameters
    ----------
    X : array_like of shape (N, D)
        The data.
    n_components : int or sequence of int
        Numbers of components to try.
    sigma : float, "auto" or sequence of these, optional
        Values of sigma to try; by default that of `estimator`.
    estimator : LANDMixture, optional
        Template of the candidates: its other parameters are used for all of them.
    labels : sequence of length N, optional
        Known classes of the rows, None where unknown. The clusters of each candidate
        are compared with them; they have no part in the choice.
    criterion : {"bic", "aic", "held_out"}
        What to choose by: the smallest BIC or AIC on all rows, or the largest mean log
        density of held-out rows.
    held_out : bool
        Whether to compute the held-out log density although another criterion decides.
        It needs a second fit of each candidate.
    test_size : float
        Share of the rows held out, between 0 and 1.
    n_jobs : int, optional
        Number of candidates fitted at the same time, in processes of their own, see
        `LAND`. Each compiles for itself: one job is faster for a few small fits.
    random_state : None, int, RandomState or Generator
        Randomness of the fits and of the choice of the held-out rows, the same for all
        candidates; by default that of `estimator`.
    verbose : int
        Whether to report every candidate on the standard error stream.
    **parameters
        Further parameters of `LANDMixture`, in place of those of `estimator`.

    Returns
    -------
    Selection
        Its table has ``n_components``, ``sigma`` and ``rho`` (NaN if the metric was
        given), and of the model fitted to all rows ``log_likelihood`` (with respect to
        dx), ``aic``, ``bic``, ``objective``, ``converged`` and ``n_failed_log_maps``;
        the mean log density ``held_out``, if known; ``f_measure``, the agreement with
        `labels`; ``seconds``, compilation included; ``warnings`` of the fit, repeated
        for the chosen model only; and the ``error`` if it failed.

    Notes
    -----
    AIC and BIC do not count the metric as parameters, although it is learned from the
    same rows. They are made to compare numbers of components; held-out rows also tell
    sigmas apart.

    Examples
    --------
    >>> import numpy as np
    >>> from land import select
    >>> from land.metrics import EuclideanMetric
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> X[20:] += 9.0
    >>> flat = EuclideanMetric(2)
    >>> found = select(X, (1, 2, 3), metric=flat, n_samples=200, random_state=0)
    >>> found.best["n_components"], found.model.means_.shape
    (2, (2, 2))
    """
    if not isinstance(estimator, (LANDMixture, type(None))):
        raise ValueError(
            f"estimator must be an instance of land.LANDMixture, got {estimator!r}"
        )
    template = clone(estimator or LANDMixture()).set_params(**parameters)
    check_choice("criterion", criterion)
    rows = check_array(X, dtype=np.float64, ensure_min_samples=2, input_name="X")
    if not hasattr(X, "columns"):  # data frames keep the names of their columns
        X = rows
    if random_state is None:
        random_state = template.random_state
    # One seed for all candidates, so that they differ by what is compared.
    whole = isinstance(random_state, Integral)
    seed = random_state if whole else draw_integers(random_state, 1)[0]
    parts = None
    if held_out or criterion == "held_out":
        parts = train_test_split(X, test_size=test_size, random_state=seed)
    grid = _grid(n_components, sigma, template)
    models = [clone(template).set_params(**each, random_state=seed) for each in grid]
    classes = _check_labels(labels, len(rows))
    fit = partial(_fit_candidate, X=X, parts=parts, labels=classes)
    report = partial(_report, criterion, len(models)) if verbose else None
    candidates, interrupted = _fit_all(fit, models, n_jobs, report)
    chosen = _choose(candidates, criterion)
    _warn_about_edge(candidates, chosen)
    if chosen.row["warnings"]:
        warnings.warn(
            f"the chosen model warns: {chosen.row['warnings']}",
            RuntimeWarning,
            stacklevel=2,
        )
    table: Any = [candidate.row for candidate in candidates]
    with suppress(ImportError):
        import pandas

        table = pandas.DataFrame(table)
    return Selection(table, chosen.row, chosen.model, criterion, interrupted)


def _grid(n_components: Any, sigma: Any, template: LANDMixture) -> ParameterGrid:
    """All combinations, without repetitions."""
    if not is_learned(template.metric) and sigma is not None:
        raise ValueError(
            "sigma has no effect where a metric is given; leave one of them out"
        )
    tried = [n_components, template.sigma if sigma is None else sigma]
    counts, sigmas = ([one] if np.ndim(one) == 0 else list(one) for one in tried)
    counts = [check_count("n_components", each) for each in counts]
    values = {"n_components": counts, "sigma": sigmas}
    return ParameterGrid({name: list(dict.fromkeys(values[name])) for name in values})


def _check_labels(labels: Any, n: int) -> list[Any] | None:
    if labels is None:
        return None
    values = list(labels)
    if len(values) != n:
        raise ValueError(
            f"labels must have one entry for each row of X, {n}, got {len(values)}"
        )
    if all(label is None for label in values):
        raise ValueError("labels must be known (not None) for at least one row")
    return values


class _Candidate(NamedTuple):
    """A row of the table, and the model behind it if it could be fitted."""

    row: Row
    model: Any = None


def _fit_all(fit, models, n_jobs, report) -> tuple[list[_Candidate], bool]:
    """Fit all candidates, and say whether an interrupt came in between."""
    done: dict[int, _Candidate] = {}
    reason, interrupted = "", False
    try:
        for position, candidate in spread(fit, models, n_jobs):
            done[position] = candidate
            if report is not None:
                report(len(done), candidate.row)
    except (KeyboardInterrupt, Exception) as error:
        # Errors of a fit are in its row: this is Ctrl-C, or a process that was killed.
        if not any(candidate.model is not None for candidate in done.values()):
            raise
        interrupted = isinstance(error, KeyboardInterrupt)
        reason = "interrupted" if interrupted else f"{type(error).__name__}: {error}"
        warnings.warn(
            f"the search ended after {len(done)} of {len(models)} candidates "
            f"({reason}); the choice is among these",
            UserWarning if interrupted else RuntimeWarning,
            stacklevel=3,
        )
    missing = [_Candidate(_empty_row(model) | {"error": reason}) for model in models]
    return [done.get(k, missing[k]) for k in range(len(models))], interrupted


def _fit_candidate(model: LANDMixture, X: Any, parts: Any, labels: Any) -> _Candidate:
    """Fit and score one candidate; what goes wrong is written into its row.

    `parts` are rows to fit and rows held out, if there are any.
    """
    row, fitted = _empty_row(model), None
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted, values, _ = try_out(clone(model), X, X)
            total = float(np.sum(values))
            row |= {
                "sigma": float(getattr(fitted, "sigma_", math.nan)),
                "rho": float(getattr(fitted, "rho_", math.nan)),
                "log_likelihood": total,
                **information_criteria(total, fitted.n_parameters_, len(values)),
                "objective": float(fitted.objective_),
                "converged": bool(fitted.converged_),
                "n_failed_log_maps": int(fitted.n_failed_log_maps_),
            }
            if labels is not None:
                pairs = zip(labels, fitted.predict(X).tolist(), strict=True)
                known = [pair for pair in pairs if pair[0] is not None]
                row["f_measure"] = f_measure(*zip(*known, strict=True))
            if parts is not None:
                row["held_out"] = float(np.mean(try_out(clone(model), *parts).values))
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"
    row["seconds"] = time.perf_counter() - start
    row["warnings"] = "; ".join(dict.fromkeys(str(each.message) for each in caught))
    return _Candidate(row, fitted)


def _empty_row(model: LANDMixture) -> Row:
    numbers = "sigma rho log_likelihood aic bic held_out f_measure objective seconds"
    row: Row = {"n_components": model.n_components}
    row |= dict.fromkeys(numbers.split(), math.nan)
    if is_learned(model.metric) and isinstance(model.sigma, Real):
        row["sigma"] = float(model.sigma)
    failed = {"n_failed_log_maps": math.nan, "warnings": "", "error": ""}
    return row | {"converged": False} | failed


def _choose(candidates: list[_Candidate], criterion: Criterion) -> _Candidate:
    """The best candidate; the first of several that are equally good."""
    eligible = [each for each in candidates if math.isfinite(each.row[criterion])]
    if eligible:
        return min(eligible, key=lambda each: SIGNS[criterion] * each.row[criterion])
    reasons = (each.row["error"] or each.row["warnings"] for each in candidates)
    first = next(filter(None, reasons), "no reason is known")
    what = f"all {len(candidates)} candidates failed"
    if any(each.model is not None for each in candidates):
        what = f"none of {len(candidates)} candidates has a finite {criterion}"
    raise RuntimeError(f"{what}; the first: {first}")


def _warn_about_edge(candidates: list[_Candidate], chosen: _Candidate) -> None:
    """Warn of a choice at the edge of the numbers of components fitted."""
    counts = {each.row["n_components"] for each in candidates if each.model is not None}
    best = chosen.row["n_components"]
    if len(counts) > 1 and (best == max(counts) or best == min(counts) > 1):
        largest = best == max(counts)
        edge, remedy = ("largest", "more") if largest else ("smallest", "fewer")
        warnings.warn(
            f"the chosen number of components, {best}, is the {edge} that was tried; "
            f"try {remedy} of them",
            UserWarning,
            stacklevel=3,
        )


def _report(criterion: Criterion, total: int, done: int, row: Row) -> None:
    outcome = row["error"] or f"{criterion} {row[criterion]:.6g}"
    sigma = "" if math.isnan(row["sigma"]) else f"sigma {row['sigma']:.4g}  "
    tell(
        f"select: {done} of {total}  n_components {row['n_components']}  "
        f"{sigma}{outcome}  {row['seconds']:.1f} s"
    )
