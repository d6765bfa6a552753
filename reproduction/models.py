"""The paper's three models, fitted without noise and described in numbers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture

import land

# Label, colour (Okabe and Ito's, safe for the colour-blind) and marker of each model.
STYLES = {
    "land": ("LAND", "#0072B2", "o"),
    "least_squares": ("least squares", "#D55E00", "s"),
    "gmm": ("GMM", "#009E73", "^"),
}


def make(kind: str, n_components: int, seed: int, **options: Any) -> Any:
    """An unfitted mixture.

    Parameters
    ----------
    kind : {"land", "land_paper", "least_squares", "gmm"}
        Maximum likelihood with the exact volume or with the paper's Eq. 7, Riemannian
        k-means with empirical covariances, or scikit-learn's Gaussian mixture (the
        best of ten starts).
    n_components : int
        Number of components.
    seed : int
        Randomness of the fit.
    **options
        Of `land.LANDMixture`; the Gaussian mixture has none.
    """
    if kind == "gmm":
        return GaussianMixture(n_components, n_init=10, random_state=seed)
    if kind == "least_squares":
        options["method"] = "least_squares"
    if kind == "land_paper":
        options["volume"] = "paper"
    return land.LANDMixture(n_components, random_state=seed, **options)


def fit(model: Any, data: np.ndarray) -> Any:
    """Fit a model; what it warns of goes into ``model.warnings_``.

    An interrupt ends the experiment. The estimators answer it with the model reached so
    far, which is no result here.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(data)
    if getattr(model, "interrupted_", False):  # scikit-learn's models raise it
        raise KeyboardInterrupt
    model.warnings_ = list(dict.fromkeys(str(each.message) for each in caught))
    return model


def describe(model: Any) -> dict[str, Any]:
    """Parameters of a fitted mixture, and how the fit ended."""
    numbers = {
        "weights": model.weights_,
        "means": model.means_,
        "covariances": model.covariances_,
        "converged": bool(model.converged_),
        "n_iter": int(model.n_iter_),
        "warnings": model.warnings_,
    }
    if isinstance(model, land.LANDMixture):
        numbers |= {
            "log_constants": model.log_constants_,
            "log_constants_stderr": model.log_constants_stderr_,
            "objective": float(model.objective_),
            "failed_log_maps": int(model.n_failed_log_maps_),
        }
        if model.metric is None:
            numbers |= {"sigma": float(model.sigma_), "rho": float(model.rho_)}
    return numbers


def quietly(function: Any, *arguments: Any, **options: Any) -> Any:
    """Call a function whose warnings show in its numbers or settings anyway."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)
