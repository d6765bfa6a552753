"""What users of scikit-learn look for in every estimator: tags, names, a picture."""

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import estimator_html_repr, get_tags

import land
from land.metrics import EuclideanMetric

FLAT = {"metric": EuclideanMetric(2), "random_state": 0}
KINDS = [
    (land.LAND(**FLAT), "density_estimator"),
    (land.LANDMixture(2, **FLAT), "density_estimator"),
    (land.RiemannianKMeans(2, **FLAT), "clusterer"),
    (land.LANDClassifier(**FLAT), "classifier"),
    (land.GeodesicPCA(1, **FLAT), None),
]


@pytest.mark.parametrize(("model", "kind"), KINDS, ids=lambda each: type(each).__name__)
def test_tags_names_and_picture(model, kind, cloud):
    assert get_tags(model).estimator_type == kind
    assert type(model).__name__ in estimator_html_repr(model)
    frame = pd.DataFrame(cloud, columns=["east", "north"])
    model.fit(frame, np.arange(len(cloud)) % 2)
    assert model.n_features_in_ == 2
    assert model.feature_names_in_.tolist() == ["east", "north"]
    assert "fitted" in estimator_html_repr(model)


@pytest.mark.parametrize("name", ["LANDMixture", "RiemannianKMeans"])
def test_clusters_are_found_and_named_at_once(name, cloud):
    model = getattr(land, name)(2, **FLAT)
    labels = model.fit_predict(cloud)
    np.testing.assert_array_equal(labels, model.predict(cloud))
    assert set(labels) == {0, 1}


@pytest.mark.parametrize("name", ["GeodesicPCA", "RiemannianKMeans"])
def test_transformers_give_frames(name, cloud):
    model = getattr(land, name)(2, **FLAT).set_output(transform="pandas")
    frame = model.fit_transform(cloud)
    assert frame.columns.tolist() == [f"{name.lower()}{k}" for k in range(2)]


def test_a_fit_goes_on_from_an_earlier_one(cloud):
    first = land.RiemannianKMeans(2, **FLAT).fit(cloud)
    again = land.RiemannianKMeans(2, init=first.cluster_centers_, **FLAT).fit(cloud)
    assert again.n_iter_ <= first.n_iter_
    np.testing.assert_allclose(again.cluster_centers_, first.cluster_centers_)


@pytest.mark.parametrize("name", ["LAND", "LANDMixture"])
def test_a_warm_start_begins_with_the_last_means(name, arc):
    options = {"sigma": 0.5, "rho": 0.1, "n_samples": 400, "init": "random"}
    options["random_state"] = 0
    model = getattr(land, name)(**options, tol=1e-2, warm_start=True).fit(arc)
    means, maps = model.history_[-1].means, model.n_log_maps_
    model.fit(arc)
    np.testing.assert_allclose(model.history_[0].means, means)
    assert model.n_log_maps_ < maps
    cold = getattr(land, name)(**options, tol=1e-2).fit(arc)
    assert not np.allclose(cold.history_[0].means, means)
