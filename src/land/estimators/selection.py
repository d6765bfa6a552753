"""Choice of the number of components and of sigma."""

from __future__ import annotations

import importlib
import itertools
import math
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.utils import check_array, check_random_state

from land._validation import check_count, check_positive
from land.estimators.mixture import LANDMixture
from land.estimators.parallel import check_n_jobs, spread

Criterion = Literal["bic", "aic", "held_out"]
Row = dict[str, Any]

# Signs that make the best value the smallest.
_SIGNS = {"bic": 1.0, "aic": 1.0, "held_out": -1.0}
_NUMBERS = (
    "sigma",
    "rho",
    "log_likelihood",
    "aic",
    "bic",
    "held_out",
    "objective",
    "seconds",
)


@dataclass(frozen=True, eq=False)
class Selection:
    """Candidates of `select` and the one chosen.

    Attributes
    ----------
    table : pandas.DataFrame, or list of dict where pandas is not installed
        One row for each candidate, in the order of the grid; its columns are listed
        in `select`.
    best : dict
        The row of the chosen candidate.
    model : LANDMixture
        The chosen model, fitted to all rows of the data.
    criterion : str
        What it was chosen by.
    interrupted : bool
        Whether an interrupt (Ctrl-C) has ended the search before all candidates were
        fitted.
    """

    table: Any
    best: Row
    model: LANDMixture
    criterion: Criterion
    interrupted: bool = False


class _Candidate(NamedTuple):
    """A row of the table, and the model behind it if it could be fitted."""

    row: Row
    model: LANDMixture | None


def select(
    X: ArrayLike,
    n_components: Any = (1, 2, 3, 4),
    sigma: Any = None,
    *,
    estimator: LANDMixture | None = None,
    criterion: Criterion = "bic",
    held_out: bool = False,
    test_size: float = 0.25,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> Selection:
    """Fit mixtures over a grid of components and sigmas, and choose one.

    A candidate that fails leaves its error in the table, and the others go on. An
    interrupt (Ctrl-C) ends the search and chooses among the candidates finished so far.

    Parameters
    ----------
    X : array_like of shape (N, D)
        The data.
    n_components : int or sequence of int
        Numbers of components to try.
    sigma : float, "auto" or sequence of these, optional
        Values of sigma to try. Default: the `sigma` of `estimator`, ``"auto"`` without
        one.
    estimator : LANDMixture, optional
        Template of the candidates: its other parameters are used for all of them. It
        is not changed.
    criterion : {"bic", "aic", "held_out"}
        What to choose by: the smallest BIC or AIC on all rows, or the largest mean log
        density of held-out rows.
    held_out : bool
        Whether to compute the held-out log density although another criterion decides.
        It needs a second fit of each candidate.
    test_size : float
        Share of the rows held out, between 0 and 1.
    n_jobs : int, optional
        Number of candidates fitted at the same time, in processes of their own (see
        joblib; -1 for one on each core). None is one, or what `joblib.parallel_config`
        says. Each process compiles for itself, which takes some seconds: one job is
        faster for a few small fits, and on an accelerator.
    random_state : None, int or RandomState
        Randomness of the fits and of the choice of the held-out rows, the same for all
        candidates. With an integer, the chosen model is the one that a `LANDMixture` of
        this `random_state` gives. Default: that of `estimator`.
    verbose : int
        Whether to report every candidate on the standard error stream.

    Returns
    -------
    Selection
        With `table`, `best`, `model`, `criterion` and `interrupted`. The columns of
        the table:

        n_components
            Number of components.
        sigma, rho
            The values used; NaN if the metric was given.
        log_likelihood
            Sum of the log densities of all rows with respect to dx.
        aic, bic
            Information criteria of the model fitted to all rows; lower is better.
        held_out
            Mean log density, with respect to dx, of the held-out rows under a model
            (metric included) fitted to the others; higher is better. NaN if not
            computed.
        objective
            What the fit has minimised, see `LANDMixture`.
        seconds
            Time the candidate took, compilation included.
        converged
            Whether the fit has converged.
        n_failed_log_maps
            Log maps that failed at the end of the fit.
        warnings
            What the fit has warned about. `select` repeats it for the chosen model
            only.
        error
            Why the candidate failed; empty if it did not.

    Raises
    ------
    ValueError
        If an argument makes no sense.
    RuntimeError
        If no candidate can be chosen; the message has the first reason.

    Notes
    -----
    AIC and BIC count the means, covariances and weights as parameters, but not the
    metric, although it is learned from the same rows. They are made to compare numbers
    of components; held-out rows also tell sigmas apart.

    Examples
    --------
    >>> import numpy as np
    >>> from land import LANDMixture
    >>> from land.estimators.selection import select
    >>> from land.metrics import EuclideanMetric
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> X[20:] += 9.0
    >>> template = LANDMixture(metric=EuclideanMetric(2), n_samples=200)
    >>> found = select(X, (1, 2), estimator=template, random_state=0)
    >>> found.best["n_components"], found.model.means_.shape
    (2, (2, 2))
    """
    template = _check_template(estimator)
    _check_options(criterion, held_out, test_size, n_jobs)
    data = check_array(X, dtype=np.float64, ensure_min_samples=2, input_name="X")
    if not hasattr(X, "columns"):  # data frames keep the names of their columns
        X = data
    seed = _seed(template.random_state if random_state is None else random_state)
    models = [
        clone(template).set_params(n_components=k, sigma=s, random_state=seed)
        for k, s in _grid(n_components, sigma, template)
    ]
    parts = None
    if held_out or criterion == "held_out":
        _check_enough_rows(len(data), test_size)
        parts = train_test_split(X, test_size=test_size, random_state=seed)
    candidates, interrupted = _fit_all(
        models, X, parts, n_jobs, criterion if verbose else None
    )
    chosen = _choose(candidates, criterion)
    if chosen.row["warnings"]:
        warnings.warn(
            f"the chosen model warns: {chosen.row['warnings']}",
            RuntimeWarning,
            stacklevel=2,
        )
    rows = [candidate.row for candidate in candidates]
    assert chosen.model is not None
    return Selection(
        _table(rows), dict(chosen.row), chosen.model, criterion, interrupted
    )


def _fit_all(
    models: list[LANDMixture],
    X: Any,
    parts: Any,
    n_jobs: int | None,
    reported: Criterion | None,
) -> tuple[list[_Candidate], bool]:
    """Fit all candidates, and say whether an interrupt came in between.

    Those that nothing came back from carry the reason.
    """
    fit = partial(_fit_candidate, X=X, parts=parts)
    done: dict[int, _Candidate] = {}
    reason, interrupted = "", False
    try:
        for position, candidate in spread(fit, models, n_jobs):
            done[position] = candidate
            if reported is not None:
                _report(candidate.row, reported, len(done), len(models))
    except KeyboardInterrupt:
        if not any(candidate.model is not None for candidate in done.values()):
            raise
        reason, interrupted = "interrupted before it was fitted", True
        warnings.warn(
            f"the search was interrupted after {len(done)} of {len(models)} "
            "candidates; the choice is among these",
            UserWarning,
            stacklevel=3,
        )
    except Exception as error:  # the pool broke: a process was killed, for example
        reason = _describe_error(error)
        if done:
            warnings.warn(
                f"only {len(done)} of {len(models)} candidates could be fitted, try "
                f"fewer n_jobs: {reason}",
                RuntimeWarning,
                stacklevel=3,
            )
    candidates = [
        done.get(position, _Candidate(_empty_row(model, reason), None))
        for position, model in enumerate(models)
    ]
    return candidates, interrupted


def _fit_candidate(model: LANDMixture, X: Any, parts: Any) -> _Candidate:
    """Fit and score one candidate; what goes wrong is written into its row."""
    row = _empty_row(model)
    fitted: LANDMixture | None = None
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted = _fit(clone(model), X)
            row.update(_scores(fitted, X))
            if parts is not None:
                rest = _fit(clone(model), parts[0])
                row["held_out"] = rest.score(parts[1])
        except Exception as error:
            row["error"] = _describe_error(error)
    row["seconds"] = time.perf_counter() - start
    messages = dict.fromkeys(str(each.message) for each in caught)
    row["warnings"] = "; ".join(messages)
    return _Candidate(row, fitted)


def _fit(model: LANDMixture, X: Any) -> LANDMixture:
    """Fit; pass on the interrupt that a fit answers with what it has so far."""
    model.fit(X)
    if model.interrupted_:
        raise KeyboardInterrupt
    return model


def _scores(model: LANDMixture, X: Any) -> Row:
    values = model.score_samples(X)
    total = float(np.sum(values))
    n_parameters = model.n_parameters_
    return {
        "sigma": float(getattr(model, "sigma_", math.nan)),
        "rho": float(getattr(model, "rho_", math.nan)),
        "log_likelihood": total,
        "aic": 2.0 * n_parameters - 2.0 * total,
        "bic": math.log(len(values)) * n_parameters - 2.0 * total,
        "objective": float(model.objective_),
        "converged": bool(model.converged_),
        "n_failed_log_maps": int(model.n_failed_log_maps_),
    }


def _empty_row(model: LANDMixture, error: str = "") -> Row:
    given = model.metric is None and not isinstance(model.sigma, str)
    return {
        "n_components": model.n_components,
        **dict.fromkeys(_NUMBERS, math.nan),
        **({"sigma": float(model.sigma)} if given else {}),
        "converged": False,
        "n_failed_log_maps": math.nan,
        "warnings": "",
        "error": error,
    }


def _choose(candidates: list[_Candidate], criterion: Criterion) -> _Candidate:
    """The best candidate; the first of several that are equally good."""
    fitted = [each for each in candidates if each.model is not None]
    eligible = [each for each in fitted if math.isfinite(each.row[criterion])]
    if eligible:
        return min(eligible, key=lambda each: _SIGNS[criterion] * each.row[criterion])
    reasons = (each.row["error"] or each.row["warnings"] for each in candidates)
    first = next(filter(None, reasons), "no reason is known")
    if fitted:
        raise RuntimeError(
            f"none of {len(candidates)} candidates has a finite {criterion}; "
            f"the first: {first}"
        )
    raise RuntimeError(f"all {len(candidates)} candidates failed; the first: {first}")


def _table(rows: list[Row]) -> Any:
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


def _report(row: Row, criterion: Criterion, done: int, total: int) -> None:
    outcome = row["error"] or f"{criterion} {row[criterion]:.6g}"
    sigma = "" if math.isnan(row["sigma"]) else f"sigma {row['sigma']:.4g}  "
    sys.stderr.write(
        f"select: {done} of {total}  n_components {row['n_components']}  "
        f"{sigma}{outcome}  {row['seconds']:.1f} s\n"
    )
    sys.stderr.flush()


def _grid(
    n_components: Any, sigma: Any, template: LANDMixture
) -> Iterator[tuple[int, Any]]:
    """All combinations, without repetitions."""
    counts = [
        check_count("n_components", each)
        for each in _as_sequence("n_components", n_components)
    ]
    counts = list(dict.fromkeys(counts))
    if template.metric is None:
        wanted = template.sigma if sigma is None else sigma
        sigmas = [_check_sigma(each) for each in _as_sequence("sigma", wanted)]
        return itertools.product(counts, dict.fromkeys(sigmas))
    if sigma is not None:
        raise ValueError(
            "sigma has no effect where estimator has a metric; leave one of them out"
        )
    return itertools.product(counts, [template.sigma])


def _as_sequence(name: str, value: Any) -> list[Any]:
    try:
        values = [value] if isinstance(value, str) else list(value)
    except TypeError:  # a number
        values = [value]
    if not values:
        raise ValueError(f"{name} must have at least one value to try, got {value!r}")
    return values


def _check_sigma(value: Any) -> float | str:
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f"sigma must be 'auto' or positive numbers, got {value!r}")
        return value
    return check_positive("sigma", value)


def _check_template(estimator: Any) -> LANDMixture:
    if estimator is None:
        return LANDMixture()
    if not isinstance(estimator, LANDMixture):
        raise ValueError(
            f"estimator must be an instance of land.LANDMixture, got {estimator!r}"
        )
    return estimator


def _check_options(criterion: Any, held_out: Any, test_size: Any, n_jobs: Any) -> None:
    if not isinstance(criterion, str) or criterion not in _SIGNS:
        words = ", ".join(repr(word) for word in _SIGNS)
        raise ValueError(f"criterion must be one of {words}, got {criterion!r}")
    if not isinstance(held_out, (bool, np.bool_)):
        raise ValueError(f"held_out must be True or False, got {held_out!r}")
    if not 0.0 < check_positive("test_size", test_size) < 1.0:
        raise ValueError(f"test_size must be between 0 and 1, got {test_size!r}")
    check_n_jobs(n_jobs)


def _check_enough_rows(n: int, test_size: float) -> None:
    rest = n - math.ceil(test_size * n)
    if rest < 2:
        raise ValueError(
            f"test_size={test_size:g} leaves {rest} of {n} rows to fit; at least 2 are "
            "needed"
        )


def _seed(random_state: Any) -> int:
    """One seed for all candidates, so that they differ by what is compared."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def _describe_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
