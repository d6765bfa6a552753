"""Table 1 of the paper: sleep stages from EEG, as F-measures of three clusters.

For one recording the paper's features are computed from the raw signal: factors of the
short-time spectrum. For all ten recordings, band powers stand in for them; these are
not the paper's features. Clusters are compared with wake, REM and non-REM sleep.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import land
from land.experiments import sleep_report
from land.experiments.models import fit, make, quietly
from land.experiments.runner import Outcome, Task
from land.experiments.sleep_report import PAPER
from land.metrics.bandwidth import automatic_rho

TITLE = "F-measures of clusters against sleep stages"
NMF, BANDS = "NMF", "bands"
N_CLUSTERS = 3
_RAW_RECORD = "SC4001"


def settings(quick: bool) -> dict[str, Any]:
    """The settings of the full and of the quick run."""
    common = {"quick": quick, "rho": "auto"}
    if quick:
        return common | {
            "records": ["SC4001"],
            "n_metric": 80,
            "n_fit": 80,
            "n_predict": 1000,
            "seeds": [0],
            "gmm_seeds": 10,
            "sigmas": [1.0, 1.4],
            "n_samples": 300,
            "tol": 1e-2,
            "n_starts": 1,
            "nmf_iter": 200,
            "variants": ["chosen"],
            "other_rhos": [],
        }
    return common | {
        "records": list(PAPER),
        "n_metric": None,
        "n_fit": 500,
        "n_predict": 2000,
        "seeds": [0, 1],
        "gmm_seeds": 20,
        "sigmas": [0.5, 0.75, 1.0, 1.25, 1.5],
        "n_samples": 600,
        "tol": 1e-3,
        "n_starts": 10,
        "nmf_iter": 2000,
        "variants": ["chosen", "raw amplitudes", "not standardised", "no wake margins"],
        "other_rhos": [1e-3, 1.0, 100.0],
    }


def run(settings: dict[str, Any], task: Task) -> Outcome:
    """Cluster all recordings with three models."""
    rows = [_row(settings, task, NMF, _RAW_RECORD)]
    rows += [_row(settings, task, BANDS, record) for record in settings["records"]]
    variants = {name: _variant(settings, task, name) for name in settings["variants"]}
    others = _other_rhos(settings, task)
    numbers = {"rows": rows, "variants": variants, "other_rhos": others}
    claims = [sleep_report.outperforms(rows), sleep_report.tuned(rows)]
    figures = {"": sleep_report.draw(rows)}
    notes = sleep_report.notes(settings, variants, others)
    return Outcome(numbers, figures, claims, sleep_report.table(rows), notes)


def three_stages(stages: np.ndarray) -> np.ndarray:
    """0 wake, 1 non-REM, 2 REM, from codes 0 W, 1 to 4 sleep but REM, 5 REM."""
    return np.select([stages == 0, stages == 5], [0, 2], 1)


def _features(
    settings: dict, task: Task, kind: str, record: str, variant: str = "chosen"
) -> tuple[np.ndarray, np.ndarray]:
    """Five features and one of three stages for every window of a recording."""
    if kind == BANDS:
        night = land.datasets.load_sleep_features(record, data_home=task.data_home)
        return _standardised(night.features), three_stages(night.stages_rk)
    eeg = land.datasets.load_sleep_eeg(record, data_home=task.data_home)
    names = ("n_starts", "nmf_iter")

    def compute() -> dict[str, Any]:
        margin = 60 if variant == "no wake margins" else 0
        kept = slice(margin, len(eeg.stages) - margin)
        length = round(30 * eeg.sampling_rate)
        features, labels = quietly_nmf(
            eeg.signal[kept.start * length : kept.stop * length],
            eeg.sampling_rate,
            eeg.stages_rk[kept],
            n_starts=settings["n_starts"],
            max_iter=settings["nmf_iter"],
            scaling="raw" if variant == "raw amplitudes" else "amplitude",
            standardize=variant != "not standardised",
            random_state=0,
        )
        return {"features": np.round(features, 5), "labels": labels}

    used = {"record": record, "variant": variant} | {n: settings[n] for n in names}
    found = task.pieces.get(f"NMF of {record}, {variant}", used, compute)
    return np.array(found["features"]), three_stages(np.array(found["labels"]))


def quietly_nmf(*arguments: Any, **options: Any) -> Any:
    """NMF features; that a start was stopped early shows in the settings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return land.datasets.sleep_nmf_features(*arguments, **options)


def _standardised(features: np.ndarray) -> np.ndarray:
    return (features - features.mean(axis=0)) / features.std(axis=0)


def _row(settings: dict, task: Task, kind: str, record: str) -> dict[str, Any]:
    """All F-measures of one recording."""
    data = _features(settings, task, kind, record)
    gmm = _gaussian(data, settings["gmm_seeds"])
    place = settings, task, f"{kind} {record}", data
    at_one = {
        model: [_fitted(*place, model, 1.0, seed) for seed in settings["seeds"]]
        for model in ("land", "least_squares")
    }
    first = settings["seeds"][0]
    by_sigma = {
        f"{sigma:g}": _fitted(*place, "land", sigma, first)["f_measure"]
        for sigma in settings["sigmas"]
    }
    return {
        "features": kind,
        "record": record,
        "n_rows": len(data[0]),
        "stages": np.bincount(data[1], minlength=3),
        "gmm": gmm,
        "land": [each["f_measure"] for each in at_one["land"]],
        "least_squares": [each["f_measure"] for each in at_one["least_squares"]],
        "by_sigma": by_sigma,
        "best_sigma": float(max(by_sigma, key=lambda key: by_sigma[key])),
        "best": max(by_sigma.values()),
        "fits": at_one,
    }


def _gaussian(data: tuple[np.ndarray, np.ndarray], n_seeds: int) -> list[float]:
    """F-measures of Gaussian mixtures, one start each, fitted to all rows."""
    features, labels = data
    found = []
    for seed in range(n_seeds):
        model = make("gmm", N_CLUSTERS, seed).set_params(n_init=1)
        found.append(land.f_measure(labels, fit(model, features).predict(features)))
    return found


def _fitted(
    settings: dict,
    task: Task,
    name: str,
    data: tuple,
    kind: str,
    sigma: float,
    seed: int,
) -> dict[str, Any]:
    """Fit one mixture to some rows, label others too: a piece.

    The metric is learned from `n_metric` rows, from all of them if that is None.
    """
    features, labels = data
    options = {name: settings[name] for name in ("n_samples", "tol")}

    def compute() -> dict[str, Any]:
        order = np.random.default_rng(seed).permutation(len(features))
        known = features[order[: settings["n_metric"]]]
        rho = settings["rho"]
        rho = automatic_rho(known, sigma) if rho == "auto" else rho
        metric = land.metrics.LocalDiagonalMetric(known, sigma, rho)
        some = features[order[: settings["n_fit"]]]
        model = fit(make(kind, N_CLUSTERS, seed, metric=metric, **options), some)
        rows = order[: settings["n_predict"]]
        found = quietly(model.predict, features[rows])
        return {
            "f_measure": land.f_measure(labels[rows], found),
            "rho": rho,
            "converged": bool(model.converged_),
            "weights": model.weights_,
            "warnings": model.warnings_,
        }

    names = ("rho", "n_metric", "n_fit", "n_predict", "n_starts", "nmf_iter")
    used = {"data": name, "model": kind, "sigma": sigma, "seed": seed}
    used |= options | {name: settings[name] for name in names}
    key = f"{name}, {kind}, sigma {sigma:g}, seed {seed}"
    return task.pieces.get(key, used, compute)


def _variant(settings: dict, task: Task, variant: str) -> list[float]:
    """How a GMM fares with another choice of what the paper leaves open."""
    data = _features(settings, task, NMF, _RAW_RECORD, variant)
    return _gaussian(data, settings["gmm_seeds"])


def _other_rhos(settings: dict, task: Task) -> dict[str, float]:
    """How LAND(1) fares with other values of rho."""
    if not settings["other_rhos"]:
        return {}
    data = _features(settings, task, NMF, _RAW_RECORD)
    seed, found = settings["seeds"][0], {}
    for rho in settings["other_rhos"]:
        name = f"{NMF} {_RAW_RECORD}, rho {rho:g}"
        place = settings | {"rho": rho}, task, name, data
        found[f"{rho:g}"] = _fitted(*place, "land", 1.0, seed)["f_measure"]
    return found
