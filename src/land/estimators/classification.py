"""Discriminant analysis: a locally adaptive normal distribution for each class."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from land._validation import as_generator, check_count, check_points, shown
from land.density import log_constant
from land.density.nodes import invert
from land.estimators.base import RiemannianEstimator, draw_integers
from land.estimators.density import LAND
from land.estimators.rows import check_rows, check_rows_and_classes
from land.estimators.scoring import log_joint, log_shares
from land.fitting import normal_frame

Array = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class LANDClassifier(ClassifierMixin, RiemannianEstimator):
    """Classifier with a locally adaptive normal distribution for each class.

    With a flat metric it is quadratic or linear discriminant analysis or Gaussian naive
    Bayes, with covariances of maximum likelihood.

    Parameters
    ----------
    covariance : {"full", "shared", "diag"}
        A covariance for each class (quadratic); one for all classes, in normal
        coordinates at their means (linear); diagonal ones (naive Bayes).
    priors : array_like of shape (n_classes,) or None
        Probabilities of the classes; None takes their shares of the data.
    sigma, rho, metric
        The metric, see `LAND`. Each class has its own, learned from its rows, or the
        flat one where that suffices. With a shared covariance there is one metric,
        learned from all rows.
    n_samples, max_iter, tol, random_state, n_jobs
        See `LAND`.

    Attributes
    ----------
    classes_, priors_ : ndarray of shape (n_classes,)
    distributions_ : list of LAND
        One for each class.
    n_iter_ : int
        Largest number of steps of their fits.
    n_features_in_, feature_names_in_
        See `LAND`.

    Examples
    --------
    >>> import land
    >>> X, y = land.datasets.make_two_moons(40, random_state=0)
    >>> model = land.LANDClassifier(sigma=0.5, n_samples=200, tol=0.1).fit(X, y)
    >>> model.predict_proba(X).shape
    (40, 2)
    """

    covariance: str = "full"
    priors: Any = None
    _: KW_ONLY
    n_samples: int = 3000

    def fit(self, X: ArrayLike, y: Any) -> Self:
        """Fit the classes `y`, (N,), of the rows of `X`, (N, D)."""
        self._check_parameters()
        data, y = check_rows_and_classes(self, X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        counts = np.bincount(codes)
        if len(counts) < 2:
            raise ValueError("y must have at least 2 classes, got 1 class")
        if counts.min() < 2:
            least = self.classes_[np.argmin(counts)]
            raise ValueError(
                f"y must have at least 2 rows of each class, got 1 of {least!r}"
            )
        shares = counts / len(codes)
        self.priors_ = self._check_priors(shares)
        shared = self.covariance == "shared"
        options = self.get_params(deep=False)
        del options["priors"], options["covariance"], options["random_state"]
        if shared:
            options["metric"] = self._learn_metric(data)
        options["covariance_type"] = "diag" if self.covariance == "diag" else "full"
        seeds = draw_integers(self.random_state, len(counts))
        self.distributions_ = [
            LAND(random_state=seed, **options).fit(data[codes == k])
            for k, seed in enumerate(seeds)
        ]
        self.n_iter_ = max(each.n_iter_ for each in self.distributions_)
        if shared:
            _share_covariance(self.distributions_, shares)
        return self

    # The inherited docstring refers to a page of scikit-learn's documentation.
    def score(self, X: ArrayLike, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows of `X`, (n, D), whose class is predicted correctly."""
        return float(super().score(X, y, sample_weight))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable classes."""
        best = np.argmax(self.predict_log_proba(X), axis=1)
        return self.classes_[best]

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes, (n, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Log probabilities of the classes, (n, n_classes).

        A class that no geodesic reaches is left out, with a warning. Where none is
        reached they are those of the priors.
        """
        return log_shares(self._log_joint(X), log_joint(np.zeros(1), self.priors_))

    def decision_function(self, X: ArrayLike) -> Array:
        """Log of prior times density, (n, n_classes).

        For two classes their difference, (n,), which is positive for the second.
        """
        joint = self._log_joint(X)
        return joint[:, 1] - joint[:, 0] if len(self.classes_) == 2 else joint

    def score_samples(self, X: ArrayLike) -> Array:
        """Log densities of the rows, whatever their class, (n,): low for outliers."""
        return np.asarray(logsumexp(self._log_joint(X), axis=1))

    def sample(
        self, n: int = 1, random_state: Any = None
    ) -> tuple[Array, NDArray[Any]]:
        """Draw n independent points (n, D), and their classes (n,), in their order."""
        check_is_fitted(self)
        rng = as_generator(random_state)
        counts = rng.multinomial(check_count("n", n), self.priors_)
        pairs = zip(self.distributions_, counts.tolist(), strict=True)
        points = [each.sample(count, rng)[0] for each, count in pairs if count]
        return np.concatenate(points), np.repeat(self.classes_, counts)

    def _check_priors(self, shares: Array) -> Array:
        if self.priors is None:
            return shares
        priors = check_points("priors", self.priors)
        if priors.shape != shares.shape:
            raise ValueError(
                f"priors must have shape {shares.shape}, one for each class, "
                f"got {priors.shape}"
            )
        if priors.min() < 0.0 or not np.isclose(priors.sum(), 1.0):
            raise ValueError(
                f"priors must not be negative, and sum to one, got {shown(self.priors)}"
            )
        return priors

    @property
    def _words(self) -> tuple[str, ...]:
        return ("auto",) if self.covariance == "shared" else ("auto", "learn")

    @property
    def _parts(self) -> int:
        return len(self.classes_)

    def _log_joint(self, X: ArrayLike) -> Array:
        """Log of prior times density, (n, n_classes); no density if not reached."""
        check_is_fitted(self)
        points = check_rows(self, X, reset=False)
        scores = [each.score_samples(points) for each in self.distributions_]
        return log_joint(np.stack(scores, axis=1), self.priors_)


def _share_covariance(models: list[LAND], shares: Array) -> None:
    """Give models the mean of their covariances in normal coordinates."""
    frames = [normal_frame(model.metric_, model.mean_) for model in models]
    pooled = sum(
        share * root @ model.covariance_ @ root
        for share, model, (root, _) in zip(shares, models, frames, strict=True)
    )
    for model, (_, inverse) in zip(models, frames, strict=True):
        covariance = inverse @ pooled @ inverse
        constant = log_constant(
            model.metric_,
            model.mean_,
            covariance,
            n_samples=model.n_samples,
            random_state=model.random_state,
            reference="lebesgue",
        )
        model._store_normal(model.mean_, covariance, invert(covariance), constant)
