"""LANDClassifier against the classifiers of scikit-learn, by cross-validation."""

import time
import warnings
from collections.abc import Iterator

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn import datasets as sklearn_datasets
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import land
from benchmarks.common import Column, Table
from benchmarks.comparison import data_sets

Array = NDArray[np.float64]
N_FOLDS, N_ROWS, N_MORE_ROWS, N_BINS = 4, 200, 400, 10
MEASURES = {
    "accuracy": "Accuracy",
    "log_loss": "Log loss",
    "brier": "Brier score",
    "ece": "Expected calibration error",
    "seconds": "Seconds of a fit and its predictions",
}


def classifiers() -> dict:
    """What is compared; those with a choice to make choose by cross-validation."""
    neighbours = {"n_neighbors": [1, 3, 5, 10, 20]}
    widths = {"svc__C": [0.1, 1.0, 10.0, 100.0], "svc__gamma": [0.1, 0.3, 1.0, 3.0]}
    scaled = make_pipeline(StandardScaler(), SVC(probability=True, random_state=0))
    options = {"n_samples": 300, "tol": 1e-2, "random_state": 0}
    return {
        "LAND": land.LANDClassifier(**options),
        "QDA": QuadraticDiscriminantAnalysis(),
        "LDA": LinearDiscriminantAnalysis(),
        "naive Bayes": GaussianNB(),
        "k-NN": GridSearchCV(KNeighborsClassifier(), neighbours),
        "SVC": GridSearchCV(scaled, widths),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    }


def run(quick: bool) -> list[Table]:
    """One table for each measure."""
    sets = dict(labelled_sets())
    names = list(sets)[: 1 if quick else None]
    jobs = [(name, *sets[name], model) for name in names for model in classifiers()]
    scores = Parallel(n_jobs=-1)(delayed(judge)(*job[1:]) for job in jobs)
    found = {(job[0], job[3]): own for job, own in zip(jobs, scores, strict=True)}
    return [_table(measure, names, found) for measure in MEASURES]


def _table(measure: str, names: list[str], found: dict) -> Table:
    digits = ".2f" if measure == "seconds" else ".3f"
    table = Table(
        title=MEASURES[measure],
        columns=[Column("data", "data")]
        + [Column(model, model, digits) for model in classifiers()],
    )
    for name in names:
        row = {model: found[name, model][measure] for model in classifiers()}
        table.rows.append({"data": name, **row})
    if measure == list(MEASURES)[-1]:
        table.notes = (
            f"Held-out rows of {N_FOLDS} folds; at most {N_ROWS} rows, digits and "
            f"sleep {N_MORE_ROWS}. LAND has n_samples=300 and tol=0.01, other settings "
            "at their defaults. k-NN and SVC choose neighbours, C and gamma by "
            "cross-validation inside each fold. Log loss with probabilities of at "
            "least 1e-6; Brier score summed over classes; calibration error of the "
            f"most probable class, in {N_BINS} bins."
        )
    return table


def judge(X: Array, y: Array, model: str) -> dict[str, float]:
    """Scores of held-out rows, all folds together."""
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    chances, seconds = np.zeros((len(y), len(np.unique(y)))), 0.0
    for train, test in folds.split(X, y):
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = classifiers()[model].fit(X[train], y[train])
            chances[test] = fitted.predict_proba(X[test])
        seconds += time.perf_counter() - start
    codes = np.unique(y, return_inverse=True)[1]
    own = chances[np.arange(len(y)), codes]
    right, top = chances.argmax(axis=1) == codes, chances.max(axis=1)
    bins = np.minimum((top * N_BINS).astype(int), N_BINS - 1)
    gaps = [abs(np.sum((right - top)[bins == k])) for k in range(N_BINS)]
    return {
        "accuracy": float(right.mean()),
        "log_loss": float(-np.log(np.maximum(own, 1e-6)).mean()),
        "brier": float(
            np.mean(np.sum((chances - np.eye(chances.shape[1])[codes]) ** 2, 1))
        ),
        "ece": float(sum(gaps) / len(y)),
        "seconds": seconds / N_FOLDS,
    }


def labelled_sets() -> Iterator[tuple[str, tuple[Array, Array]]]:
    """Data sets by name; sleep only with the folder of data in LAND_DATA_DIR."""
    yield "two moons", land.datasets.make_two_moons(N_ROWS, noise=0.2, random_state=0)
    yield "spirals", _spirals()
    circles = {"factor": 0.5, "noise": 0.12, "random_state": 0}
    yield "rings", sklearn_datasets.make_circles(N_ROWS, **circles)
    wave = land.datasets.make_wave_and_arc(N_ROWS, noise=0.2, random_state=0)
    yield "wave and arc", wave
    yield "iris", sklearn_datasets.load_iris(return_X_y=True)
    yield (
        "wine, 3 PCs",
        _reduced(*sklearn_datasets.load_wine(return_X_y=True), 3, N_ROWS),
    )
    yield (
        "breast cancer, 3 PCs",
        _reduced(*sklearn_datasets.load_breast_cancer(return_X_y=True), 3, N_ROWS),
    )
    yield (
        "digits, 5 PCs",
        _reduced(*sklearn_datasets.load_digits(return_X_y=True), 5, N_MORE_ROWS),
    )
    for data in data_sets():
        if data.name == "sleep bands SC4001":
            yield "sleep SC4001, 3 PCs", _reduced(*data.make(0), 3, N_MORE_ROWS)


def _spirals() -> tuple[Array, Array]:
    """Two arms, one turned by half a turn."""
    options = {"n_turns": 1.25, "noise": 0.1}
    arms = [
        land.datasets.make_spiral(N_ROWS // 2, random_state=k, **options)
        for k in (0, 1)
    ]
    return np.concatenate([arms[0], -arms[1]]), np.repeat([0, 1], N_ROWS // 2)


def _reduced(X: Array, y: Array, n_features: int, n_rows: int) -> tuple[Array, Array]:
    rows = np.random.default_rng(0).permutation(len(X))[:n_rows]
    spread = X.std(axis=0) > 0.0
    points = StandardScaler().fit_transform(X[rows][:, spread])
    return PCA(n_features, random_state=0).fit_transform(points), y[rows]
