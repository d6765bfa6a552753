"""Default settings against Gaussian mixtures of the same size, on held-out data."""

import os
import time
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn import datasets as sklearn_datasets
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

import land
from benchmarks.common import Column, Table

Array = NDArray[np.float64]
N_POINTS, N_SEEDS, HELD_OUT = 400, 3, 0.2
# Nights of sleep, if LAND_DATA_DIR names the folder with their band powers.
NIGHTS, N_EPOCHS = ("SC4001", "SC4011", "SC4042"), 500


class Data(NamedTuple):
    """A data set; `make` draws it anew for every seed, or returns the same rows."""

    name: str
    n_components: int
    curved: bool
    make: Callable[[int], tuple[Array, Array | None]]


def run(quick: bool) -> list[Table]:
    """Held-out log densities and agreement with classes."""
    sets = list(data_sets())
    sets, seeds = (sets[:2], range(1)) if quick else (sets, range(N_SEEDS))
    jobs = [(k, seed) for k in range(len(sets)) for seed in seeds]
    found = Parallel(n_jobs=-1)(delayed(_compare)(k, seed) for k, seed in jobs)
    table = Table(
        title="Held-out log density, default settings",
        columns=[
            Column("data", "data"),
            Column("n_components", "K"),
            Column("curved", "along curves"),
            Column("gmm", "GMM", ".2f"),
            Column("land", "LAND", ".2f"),
            Column("gain", "gain ± s.e."),
            Column("gmm_index", "ARI of GMM", ".2f"),
            Column("land_index", "ARI of LAND", ".2f"),
            Column("seconds", "s", ".1f"),
        ],
        notes=(
            f"{HELD_OUT:.0%} of the rows held out, {N_SEEDS} seeds; GMM is "
            "scikit-learn's with n_init=3. The gain is LAND's held-out log density "
            "less that of the GMM, with the standard error of its mean over held-out "
            "points of all seeds. ARI: adjusted Rand index of the clusters of the "
            "training data. Seconds of the default fit, compilation included, one "
            "process on each core."
        ),
    )
    for position, data in enumerate(sets):
        rows = [row for (k, _), row in zip(jobs, found, strict=True) if k == position]
        gains = np.concatenate([row["gains"] for row in rows])
        error = gains.std(ddof=1) / np.sqrt(len(gains))
        means = {
            key: float(np.mean([row[key] for row in rows]))
            for key in ("gmm", "land", "seconds")
        }
        indices = {
            key: None if rows[0][key] is None else np.mean([row[key] for row in rows])
            for key in ("gmm_index", "land_index")
        }
        table.rows.append(
            {
                "data": data.name,
                "n_components": data.n_components,
                "curved": "yes" if data.curved else "no",
                "gain": f"{gains.mean():+.2f} ± {error:.2f}",
                **means,
                **indices,
            }
        )
    return [table]


def _compare(position: int, seed: int) -> dict:
    data = list(data_sets())[position]
    points, labels = data.make(seed)
    order = np.random.default_rng(seed).permutation(len(points))
    n_test = round(HELD_OUT * len(points))
    test, train = points[order[:n_test]], points[order[n_test:]]
    count = data.n_components
    gaussian = GaussianMixture(count, n_init=3, random_state=seed).fit(train)
    theirs = gaussian.score_samples(test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model = land.LANDMixture(count, random_state=seed).fit(train)
        spent = time.perf_counter() - start
        ours = model.score_samples(test)
    row = {
        "gmm": theirs.mean(),
        "land": ours.mean(),
        "gains": ours - theirs,
        "gmm_index": None,
        "land_index": None,
        "seconds": spent,
    }
    if labels is not None:
        truth = labels[order[n_test:]]
        row["gmm_index"] = adjusted_rand_score(truth, gaussian.predict(train))
        row["land_index"] = adjusted_rand_score(truth, model.predict(train))
    return row


def data_sets() -> Iterator[Data]:
    """What is compared."""

    def unlabelled(maker: Callable[..., Array]) -> Callable:
        return lambda seed: (maker(N_POINTS, random_state=seed), None)

    def labelled(maker: Callable[..., tuple[Array, Array]]) -> Callable:
        return lambda seed: maker(N_POINTS, random_state=seed)

    def normal(seed: int) -> tuple[Array, None]:
        return np.random.default_rng(seed).normal(size=(N_POINTS, 2)), None

    def uniform(seed: int) -> tuple[Array, None]:
        return np.random.default_rng(seed).uniform(size=(N_POINTS, 2)), None

    makers = land.datasets
    yield Data("normal cloud", 1, False, normal)
    yield Data("uniform square", 1, False, uniform)
    yield Data("half-ellipse", 1, True, unlabelled(makers.make_half_ellipse))
    yield Data("half-ellipse", 2, True, unlabelled(makers.make_half_ellipse))
    yield Data("circle", 1, True, unlabelled(makers.make_circle))
    yield Data("spiral", 1, True, unlabelled(makers.make_spiral))
    yield Data("two moons", 2, True, labelled(makers.make_two_moons))
    yield Data("wave and arc", 2, True, labelled(makers.make_wave_and_arc))
    yield Data("S-curve", 1, True, unlabelled(makers.make_s_curve))
    yield Data("iris", 3, False, _classes(sklearn_datasets.load_iris, None))
    yield Data("wine, 3 PCs", 3, False, _classes(sklearn_datasets.load_wine, 3))
    cancer = _classes(sklearn_datasets.load_breast_cancer, 3)
    yield Data("breast cancer, 3 PCs", 2, False, cancer)
    yield Data("digits 0-3, 3 PCs", 4, False, _digits)
    if "LAND_DATA_DIR" in os.environ:
        for night in NIGHTS:
            yield Data(f"sleep bands {night}", 5, False, _night(night))


def _classes(load: Callable, n_features: int | None) -> Callable:
    def make(_: int) -> tuple[Array, Array]:
        points, labels = load(return_X_y=True)
        if n_features is not None:
            scaled = StandardScaler().fit_transform(points)
            points = PCA(n_features, random_state=0).fit_transform(scaled)
        return points, labels

    return make


def _digits(_: int) -> tuple[Array, Array]:
    points, labels = sklearn_datasets.load_digits(n_class=4, return_X_y=True)
    return PCA(3, random_state=0).fit_transform(points), labels


def _night(record: str) -> Callable:
    def make(seed: int) -> tuple[Array, Array]:
        from reproduction.data import load_sleep_features

        night = load_sleep_features(record, download=False)
        rows = np.random.default_rng(seed).permutation(len(night.features))[:N_EPOCHS]
        return night.features[rows], night.stages[rows]

    return make
