"""The ladder of fidelity: from few data and quadrature points to all of them."""

from __future__ import annotations

from dataclasses import dataclass

# Rows of the search for a start.
_SEARCH_ROWS, _ROWS_PER_DIMENSION = 100, 10
# Rows of samples of many data, for each component: the optimum of a sample is so near
# that of all data that one or two steps there reach it.
_SAMPLES = (2000, 50_000)
# Relative error of geodesics: with it objectives are right to the default tolerance.
_MAP_TOL = 1e-4
# The search ends with a tolerance of its own, geodesics are less accurate, and
# constants leave out a tail: candidates differ by more.
_SEARCH_TOL, _SEARCH_MAP_TOL, _SEARCH_TAIL = 5e-3, 1e-3, 1e-2


@dataclass(frozen=True)
class Fidelity:
    """How closely a rung of the ladder looks.

    Attributes
    ----------
    n_rows : int
        Number of data; a sample if there are more.
    n_points : int
        Quadrature points of each constant.
    tol : float
        Stop when a step is predicted to lower the objective by less than this.
    map_tol : float
        Relative error of geodesics.
    tail : float
        Mass that constants may leave out.
    stage : {"search", "fit"}
        The last rung is the fit, what comes before is the search for its start.
    """

    n_rows: int
    n_points: int
    tol: float
    map_tol: float
    tail: float = 1e-3
    stage: str = "search"


def ladder(
    n_rows: int, n_components: int, dim: int, n_points: int, tol: float
) -> list[Fidelity]:
    """Rungs for so many rows with weight: the search, samples of many data, all."""
    few = max(_SEARCH_ROWS, _ROWS_PER_DIMENSION * dim) * (n_components + 1) // 2
    search = Fidelity(
        n_rows=few,
        n_points=n_points // 2,
        tol=max(tol, _SEARCH_TOL),
        map_tol=_SEARCH_MAP_TOL,
        tail=_SEARCH_TAIL,
    )
    fine = n_points, tol, min(_MAP_TOL, tol)
    samples = [size * n_components for size in _SAMPLES]
    rungs = [Fidelity(size, *fine) for size in samples if 2 * size < n_rows]
    return [search, *rungs, Fidelity(n_rows, *fine, stage="fit")]
