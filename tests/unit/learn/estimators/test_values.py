"""Without noise, fitted attributes are those of scikit-learn on the same rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import cluster, decomposition, naive_bayes, neighbors, preprocessing

from tacit import learn
from tacit.privacy.errors import NotBounded, TooWide, WrongKind
from tests.support.estimators import BOUNDS, CLASSES, EXACT, GROUPS, LABELS, NUMBERS, ROWS

RANDOM = np.random.default_rng(3)
CODES = RANDOM.integers(0, 4, (400, 3))
CODES[:, 0] = (CODES[:, 0] + (LABELS == "high")) % 4


def test_gaussian_naive_bayes() -> None:
    ours = learn.GaussianNB(epsilon=EXACT, bounds=BOUNDS, classes=CLASSES).fit(NUMBERS, LABELS)
    theirs = naive_bayes.GaussianNB().fit(NUMBERS, LABELS)
    assert ours.theta_ == pytest.approx(theirs.theta_, abs=1e-3)
    assert ours.var_ == pytest.approx(theirs.var_, abs=2e-3)
    assert ours.class_prior_ == pytest.approx(theirs.class_prior_)
    assert ours.predict_proba(NUMBERS) == pytest.approx(theirs.predict_proba(NUMBERS), abs=0.01)
    assert ours.classes_.tolist() == theirs.classes_.tolist()


def test_categorical_naive_bayes() -> None:
    listed = {f"x{place}": [0, 1, 2, 3] for place in range(3)}
    ours = learn.CategoricalNB(epsilon=EXACT, categories=listed, classes=CLASSES).fit(CODES.astype(float), LABELS)
    theirs = naive_bayes.CategoricalNB().fit(CODES, LABELS)
    for mine, its in zip(ours.feature_log_prob_, theirs.feature_log_prob_, strict=True):
        assert mine == pytest.approx(its)
    assert ours.predict_proba(CODES) == pytest.approx(theirs.predict_proba(CODES))


def test_a_category_that_is_not_listed_tells_nothing() -> None:
    model = learn.CategoricalNB(epsilon=EXACT, categories=GROUPS, classes=CLASSES).fit(ROWS[["group"]], LABELS)
    assert model.predict_proba(ROWS[["group"]].assign(group="other"))[0] == pytest.approx(model.class_prior_)


def test_standard_scaler() -> None:
    ours = learn.StandardScaler(epsilon=EXACT, bounds=BOUNDS).fit(NUMBERS)
    theirs = preprocessing.StandardScaler().fit(NUMBERS)
    assert ours.mean_ == pytest.approx(theirs.mean_, abs=1e-3)
    assert ours.scale_ == pytest.approx(theirs.scale_, abs=1e-3)
    assert ours.transform(NUMBERS) == pytest.approx(theirs.transform(NUMBERS), abs=2e-3)
    assert ours.inverse_transform(ours.transform(NUMBERS)) == pytest.approx(NUMBERS.to_numpy())
    low, high = ours.output_bounds_["a"]
    assert low <= ours.transform(NUMBERS)[:, 0].min() <= ours.transform(NUMBERS)[:, 0].max() <= high


def test_principal_components() -> None:
    ours = learn.PCA(1, epsilon=EXACT, bounds=BOUNDS).fit(NUMBERS)
    theirs = decomposition.PCA(1).fit(NUMBERS)
    assert np.abs(ours.components_) == pytest.approx(np.abs(theirs.components_), abs=1e-3)
    assert ours.explained_variance_ratio_ == pytest.approx(theirs.explained_variance_ratio_, abs=1e-3)
    assert ours.singular_values_ == pytest.approx(theirs.singular_values_, rel=1e-3)
    assert ours.noise_variance_ == pytest.approx(theirs.noise_variance_, rel=1e-2)
    assert np.abs(ours.transform(NUMBERS)) == pytest.approx(np.abs(theirs.transform(NUMBERS)), abs=0.01)


def test_bins_of_equal_numbers_and_of_equal_width() -> None:
    ours = learn.KBinsDiscretizer(4, epsilon=EXACT, bounds=BOUNDS, encode="ordinal").fit(NUMBERS)
    theirs = preprocessing.KBinsDiscretizer(4, encode="ordinal", quantile_method="averaged_inverted_cdf").fit(NUMBERS)
    for mine, its in zip(ours.bin_edges_, theirs.bin_edges_, strict=True):
        assert mine[1:-1] == pytest.approx(its[1:-1], abs=0.03)
    assert (ours.transform(NUMBERS) == theirs.transform(NUMBERS)).mean() > 0.99
    even = learn.KBinsDiscretizer(4, epsilon=1.0, bounds=BOUNDS, strategy="uniform").fit(NUMBERS)
    assert even.bin_edges_[0].tolist() == [-5, -2.5, 0, 2.5, 5]
    assert even.cost.epsilon == 0
    assert even.transform(NUMBERS).sum(axis=1).tolist() == [2] * len(NUMBERS)


def test_kernel_density() -> None:
    column = NUMBERS[["a"]]
    ours = learn.KernelDensity(epsilon=EXACT, bounds=BOUNDS["a"], bandwidth=0.5).fit(column)
    theirs = neighbors.KernelDensity(bandwidth=0.5).fit(column)
    assert ours.score_samples(column) == pytest.approx(theirs.score_samples(column), abs=0.01)
    drawn = ours.sample(2000, random_state=1)
    assert drawn.mean() == pytest.approx(column.to_numpy().mean(), abs=0.2)
    with pytest.raises(TooWide):
        learn.KernelDensity(epsilon=1.0, bounds=BOUNDS, bins=1000).fit(NUMBERS)


def test_clusters() -> None:
    middles = np.array([[-3, -3], [3, 3], [-3, 3], [3, -2]])
    rows = np.clip(middles[RANDOM.integers(0, 4, 800)] + RANDOM.normal(0, 0.6, (800, 2)), -5, 5)
    ours = learn.KMeans(4, epsilon=EXACT, bounds=(-5, 5)).fit(rows)
    theirs = cluster.KMeans(4, n_init=5, random_state=0).fit(rows)
    assert ours.score(rows) == pytest.approx(-theirs.inertia_, rel=1e-3)
    order, other = np.lexsort(ours.cluster_centers_.T.round(1)), np.lexsort(theirs.cluster_centers_.T.round(1))
    assert ours.cluster_centers_[order] == pytest.approx(theirs.cluster_centers_[other], abs=0.01)
    assert ours.cluster_counts_.sum() == pytest.approx(800)
    assert not hasattr(ours, "labels_")


@pytest.mark.parametrize("name", ["StandardScaler", "PCA", "KBinsDiscretizer", "KernelDensity", "KMeans"])
def test_texts_are_no_numbers(name: str) -> None:
    with pytest.raises((WrongKind, NotBounded)):
        getattr(learn, name)(epsilon=1.0, bounds=BOUNDS).fit(ROWS)
