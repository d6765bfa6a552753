"""`land.select` on rows that it never saw, and for clusters; the cost of learning."""

import time
import warnings
from collections.abc import Iterator

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

import land
from benchmarks.common import Column, Table
from benchmarks.comparison import Data, data_sets
from land.estimators.held_out import Entry, beside, mean_and_error
from land.metrics.bandwidth import automatic_rho, automatic_sigma

Array = NDArray[np.float64]
N_COMPONENTS, TEST = (1, 2, 3, 4), 0.25
DENSITIES = (
    *("normal cloud", "three arcs", "spiral", "S-curve", "two moons", "banana"),
    *("iris", "wine, 3 PCs"),
)
CLUSTERS = ("normal cloud", "two moons", "three arcs", "wave and arc", "iris")
LEARNING, N_LEARNING = ("half-ellipse", "two moons", "iris"), 300
QUICK = ("normal cloud", "banana", "half-ellipse")


def run(quick: bool) -> list[Table]:
    """What is chosen, and how it does."""
    jobs = list(_jobs(quick))
    rows = Parallel(n_jobs=-1)(delayed(job)(name) for job, name in jobs)
    tables = [
        Table(
            title="Held-out log density of the chosen model",
            columns=[
                Column("data", "data"),
                Column("chosen", "chosen"),
                Column("score", "log density", ".2f"),
                Column("0", "GMM of the same K"),
                Column("1", "GMM of best K"),
                Column("2", "KDE"),
                Column("seconds", "select, s", ".0f"),
            ],
            notes=(
                f"{TEST:.0%} of the rows are kept from `land.select`, which tries "
                f"{N_COMPONENTS[0]} to {N_COMPONENTS[-1]} components, flat and with "
                "the diagonal metric, automatic sigma and rho. Columns of rivals are "
                "what they are ahead of the chosen model by, row by row, with the "
                "standard error. The best K is that of the smallest BIC up to 10."
            ),
        ),
        Table(
            title='Clusters chosen with `purpose="clusters"`',
            columns=[
                Column("data", "data"),
                Column("chosen", "chosen"),
                Column("stability", "stability", ".2f"),
                Column("truth", "classes"),
                Column("index", "adjusted Rand index", ".2f"),
                Column("seconds", "select, s", ".0f"),
            ],
            notes="The index compares the clusters of all rows with the classes.",
        ),
        Table(
            title='Cost of sigma="learn" and rho="learn"',
            columns=[
                Column("data", "data"),
                Column("n", "rows"),
                Column("n_components", "K"),
                Column("fixed", "one fit, CPU s", ".1f"),
                Column("learned", "learned, CPU s", ".1f"),
                Column("ratio", "ratio", ".1f"),
                Column("n_tried", "tried"),
            ],
            notes=(
                "One fit has the automatic sigma and rho, given as numbers. Both in "
                "one process, which has compiled what they need."
            ),
        ),
    ]
    order = densities, clusters, learning
    for (job, _), row in zip(jobs, rows, strict=True):
        tables[order.index(job)].rows.append(row)
    return tables


def _jobs(quick: bool) -> Iterator[tuple]:
    tables = (densities, DENSITIES), (clusters, CLUSTERS), (learning, LEARNING)
    for job, names in tables:
        for name in names:
            if not quick or name in QUICK:
                yield job, name


def _data(name: str) -> tuple[Array, Array | None]:
    return _named(name).make(0)


def _named(name: str) -> Data:
    return next(each for each in data_sets() if each.name == name)


def densities(name: str) -> dict:
    """Choose a density, and score rows that were kept aside."""
    X, _ = _data(name)
    order = np.random.default_rng(0).permutation(len(X))
    test, train = np.split(order, [round(TEST * len(X))])
    found, seconds = _select(X[train], "density")
    own = Entry("LAND", "", found.model.score_samples(X[test]), seconds)
    size, flat = found.best["n_components"], found.best["metric"] == "flat"
    rivals = beside(own, size, flat, X, [(train, test)], 0).entries[1:]
    row = {"data": name, "chosen": _chosen(found), "seconds": seconds}
    row["score"], _ = mean_and_error(own.values)
    for k, rival in enumerate(rivals):
        gap, stderr = rival.ahead_of(own)
        row[str(k)] = f"{gap:+.2f} ± {stderr:.2f}"
    return row


def clusters(name: str) -> dict:
    """Choose clusters, and compare them with the classes."""
    X, labels = _data(name)
    found, seconds = _select(X, "clusters")
    row = {"data": name, "chosen": _chosen(found), "seconds": seconds}
    row["stability"], row["truth"] = found.best["stability"], 1
    if labels is not None:
        row["truth"] = len(np.unique(labels))
        row["index"] = adjusted_rand_score(labels, found.model.predict(X))
    return row


def learning(name: str) -> dict:
    """Time of learning sigma and rho, beside that of one fit with given ones."""
    count, X = _named(name).n_components, _data(name)[0][:N_LEARNING]
    sigma = automatic_sigma(X, count, sharp=True)
    rho = automatic_rho(X, sigma, count, sharp=True)
    spent = {}
    for kind, values in (
        ("compiled", (sigma, rho)),
        ("fixed", (sigma, rho)),
        ("learned", ("learn", "learn")),
    ):
        start = time.process_time()
        model = land.LANDMixture(count, sigma=values[0], rho=values[1], random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X)
        spent[kind] = time.process_time() - start
    ratio = spent["learned"] / spent["fixed"]
    tried = {"n_tried": len(model.learning_), "ratio": ratio}
    return {"data": name, "n": len(X), "n_components": count} | spent | tried


def _select(X: Array, purpose: str) -> tuple[land.Selection, float]:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a choice at the edge of the range
        found = land.select(X, N_COMPONENTS, purpose=purpose, random_state=0)
    return found, time.perf_counter() - start


def _chosen(found: land.Selection) -> str:
    return f"{found.best['n_components']}, {found.best['metric']}"
