"""LAND against Gaussian mixtures, kernel densities and other clusterings."""

import os
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn import datasets as sklearn_datasets
from sklearn.cluster import HDBSCAN, SpectralClustering
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import StandardScaler

import land
from benchmarks.common import Column, Table

Array = NDArray[np.float64]
N_POINTS, N_SEEDS, HELD_OUT = 400, 3, 0.2
MOST_COMPONENTS = 10  # of a Gaussian mixture
# Parameters of LAND; the others have settings of their own.
MODELS: dict[str, dict] = {
    "learned": {"sigma": "learn", "rho": "learn"},
    "full": {"metric": "full"},
    "auto": {},
    "others": {},
}
# If LAND_DATA_DIR names the folder with them: nights of sleep as band powers, clips of
# motion capture, and images of the first digits.
NIGHTS, N_EPOCHS = ("SC4001", "SC4011", "SC4042"), 500
CLIPS = {"run": "09_01", "jumping jacks": "22_16"}
N_DIGITS = 4


class Data(NamedTuple):
    """A data set; `make` draws it anew for every seed, or returns the same rows."""

    name: str
    n_components: int
    curved: bool
    make: Callable[[int], tuple[Array, Array | None]]
    learn: bool = True


def run(quick: bool) -> list[Table]:
    """Held-out log densities, agreement with classes, seconds."""
    sets = list(data_sets())[: 2 if quick else None]
    jobs = list(all_jobs(len(sets), 1 if quick else N_SEEDS))
    found = Parallel(n_jobs=-1)(delayed(compare)(*job) for job in jobs)
    return tables(sets, dict(zip(jobs, found, strict=True)))


def all_jobs(n_sets: int, n_seeds: int) -> Iterator[tuple[int, int, str]]:
    """Data sets, seeds and models; those that take long first."""
    for model in MODELS:
        for seed in range(1 if model == "learned" else n_seeds):
            for position in reversed(range(n_sets)):
                yield position, seed, model


def tables(sets: list[Data], found: dict[tuple[int, int, str], dict]) -> list[Table]:
    """What all jobs have found."""
    results: list[list[dict]] = []
    for position in range(len(sets)):
        rows: dict[int, dict] = {}
        for (k, seed, _), part in found.items():
            if k == position:
                rows.setdefault(seed, {}).update(part)
        results.append([rows[seed] for seed in sorted(rows)])
    return [_densities(sets, results), _clusters(sets, results)]


def _densities(sets: list[Data], results: list[list[dict]]) -> Table:
    table = Table(
        title="Held-out log density",
        columns=[
            Column("data", "data"),
            Column("n_components", "K"),
            Column("curved", "along curves"),
            Column("gmm", "GMM", ".2f"),
            Column("gain_auto", "LAND"),
            Column("gain_full", "full metric"),
            Column("gain_learned", "learned"),
            Column("gain_best", "GMM of best K"),
            Column("gain_kde", "KDE"),
            Column("seconds_auto", "LAND, s", ".1f"),
            Column("seconds_full", "full, s", ".1f"),
            Column("seconds_learned", "learned, s", ".0f"),
        ],
        notes=(
            f"{HELD_OUT:.0%} of the rows held out, {N_SEEDS} seeds. GMM is "
            "scikit-learn's with n_init=3; the columns after it are gains over it, "
            "with the standard error of the mean over held-out points of all seeds. "
            "LAND has default settings, metric='full', or sigma='learn' and "
            "rho='learn' (one seed; not sleep and most digits, where it takes "
            "minutes). The "
            f"best K of the GMM is that of the smallest BIC up to {MOST_COMPONENTS}; "
            "KDE is a kernel density with a cross-validated bandwidth. Seconds of a "
            "fit, compilation included, one process on each core."
        ),
    )
    for data, rows in zip(sets, results, strict=True):
        gains = {}
        for name in ("auto", "full", "learned", "best", "kde"):
            values = [row[name] - row["gmm"] for row in rows if name in row]
            if values:
                own = np.concatenate(values)
                error = own.std(ddof=1) / np.sqrt(len(own))
                gains[f"gain_{name}"] = f"{own.mean():+.2f} ± {error:.2f}"
        table.rows.append(
            {
                "data": data.name,
                "n_components": data.n_components,
                "curved": "yes" if data.curved else "no",
                "gmm": float(np.mean([row["gmm"].mean() for row in rows])),
                **gains,
                **_means(rows, ("seconds_auto", "seconds_full", "seconds_learned")),
            }
        )
    return table


def _clusters(sets: list[Data], results: list[list[dict]]) -> Table:
    names = {
        "gmm_index": "GMM",
        "auto_index": "LAND",
        "full_index": "LAND, full",
        "learned_index": "LAND, learned",
        "spectral_index": "spectral",
        "hdbscan_index": "HDBSCAN",
    }
    table = Table(
        title="Adjusted Rand index of the clusters of the training data",
        columns=[
            Column("data", "data"),
            Column("n_components", "K"),
            *(Column(key, name, ".2f") for key, name in names.items()),
        ],
        notes=(
            "Means over the seeds. Spectral clustering of the graph of nearest "
            "neighbours, told K; HDBSCAN finds a number of its own. Both with the "
            "other settings of scikit-learn."
        ),
    )
    for data, rows in zip(sets, results, strict=True):
        if "gmm_index" in rows[0]:
            own = {"data": data.name, "n_components": data.n_components}
            table.rows.append(own | _means(rows, tuple(names)))
    return table


def _means(rows: list[dict], names: tuple[str, ...]) -> dict[str, float]:
    """Over the seeds for which they are known."""
    known = {name: [row[name] for row in rows if name in row] for name in names}
    return {name: float(np.mean(own)) for name, own in known.items() if own}


def compare(position: int, seed: int, model: str) -> dict:
    """Fit one model, or all that are not LAND; log densities of held-out rows."""
    data = list(data_sets())[position]
    if model == "learned" and not data.learn:
        return {}
    points, labels = data.make(seed)
    order = np.random.default_rng(seed).permutation(len(points))
    n_test = round(HELD_OUT * len(points))
    test, train = points[order[:n_test]], points[order[n_test:]]
    fit = _fit_others if model == "others" else partial(_fit_land, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row, clusters = fit(train, test, data.n_components, seed)
    if labels is not None:
        truth = labels[order[n_test:]]
        for name, own in clusters.items():
            row[f"{name}_index"] = adjusted_rand_score(truth, own)
    return row


def _fit_land(
    name: str, train: Array, test: Array, count: int, seed: int
) -> tuple[dict, dict]:
    start = time.perf_counter()
    model = land.LANDMixture(count, **MODELS[name], random_state=seed).fit(train)
    seconds = time.perf_counter() - start
    row = {name: model.score_samples(test), f"seconds_{name}": seconds}
    return row, {name: model.predict(train)}


def _fit_others(train: Array, test: Array, count: int, seed: int) -> tuple[dict, dict]:
    gaussian = GaussianMixture(count, n_init=3, random_state=seed).fit(train)
    candidates = [
        GaussianMixture(k, n_init=3, random_state=seed).fit(train)
        for k in range(1, MOST_COMPONENTS + 1)
    ]
    best = min(candidates, key=lambda each: each.bic(train))
    width = np.sqrt(np.mean(np.var(train, axis=0)))
    widths = {"bandwidth": width * np.geomspace(0.03, 1.0, 20)}
    kernels = GridSearchCV(KernelDensity(), widths).fit(train)
    row = {
        "gmm": gaussian.score_samples(test),
        "best": best.score_samples(test),
        "kde": kernels.best_estimator_.score_samples(test),
    }
    spectral = SpectralClustering(count, affinity="nearest_neighbors", random_state=0)
    clusters = {
        "gmm": gaussian.predict(train),
        "spectral": spectral.fit_predict(train),
        "hdbscan": HDBSCAN(copy=True).fit_predict(train),
    }
    return row, clusters


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
    yield Data("three arcs", 3, True, _three_arcs)
    yield Data("banana", 1, True, _banana)
    yield Data("iris", 3, False, _classes(sklearn_datasets.load_iris, None))
    yield Data("wine, 3 PCs", 3, False, _classes(sklearn_datasets.load_wine, 3))
    cancer = _classes(sklearn_datasets.load_breast_cancer, 3)
    yield Data("breast cancer, 3 PCs", 2, False, cancer)
    yield Data("digits 0-3, 3 PCs", 4, False, _digits, learn=False)
    if "LAND_DATA_DIR" in os.environ:
        for night in NIGHTS:
            yield Data(f"sleep bands {night}", 5, False, _night(night), learn=False)
        for name, clip in CLIPS.items():
            yield Data(f"{name}, 2 PCs", 2, True, _clip(clip))
        for dim in (2, 3, 5):
            images = _images(dim)
            yield Data(f"MNIST 0-3, {dim} PCs", N_DIGITS, False, images, learn=dim < 5)


def _three_arcs(seed: int) -> tuple[Array, Array]:
    """Half circles that reach into each other."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=N_POINTS)
    angles, signs = rng.uniform(0.0, np.pi, N_POINTS), np.array([1.0, -1.0, 1.0])
    centers = np.array([[0.0, 0.0], [1.0, 0.5], [2.0, 0.0]])[labels]
    arcs = np.stack([np.cos(angles), signs[labels] * np.sin(angles)], axis=1)
    return centers + arcs + 0.1 * rng.normal(size=(N_POINTS, 2)), labels


def _banana(seed: int) -> tuple[Array, None]:
    """A normal variable and its square, with noise."""
    x, noise = np.random.default_rng(seed).normal(size=(2, N_POINTS))
    return np.stack([x, x**2 + 0.3 * noise], axis=1), None


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


def _clip(name: str) -> Callable:
    def make(seed: int) -> tuple[Array, None]:
        from reproduction.data import load_mocap

        poses = PCA(2, random_state=0).fit_transform(load_mocap(name, download=False))
        return np.random.default_rng(seed).permutation(poses)[:N_POINTS], None

    return make


def _images(dim: int) -> Callable:
    def make(seed: int) -> tuple[Array, Array]:
        from reproduction.data import load_mnist

        images, digits = load_mnist(subset="test", download=False)
        known = digits < N_DIGITS
        points = PCA(dim, random_state=0).fit_transform(images[known])
        rows = np.random.default_rng(seed).permutation(len(points))[:N_POINTS]
        return points[rows], digits[known][rows]

    return make
