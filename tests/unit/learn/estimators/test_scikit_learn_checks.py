"""scikit-learn's own checks of estimators, with a list of those that a private estimator cannot pass, and why.

CategoricalNB is left out: the rows of the checks are real numbers, and its features are listed categories.
"""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator

from tacit import learn

NOISE = "noise is fresh in every fit, and the check compares two fits nearly exactly"
MISSING = "rows with missing values are left out, and infinite ones are clamped to the bounds"
OBJECTS = "what is no value of the declared kind is missing, so that no row decides about another one"
INFINITE = "infinite targets are clamped to their bounds, or are none of the classes"
CLASSES = "classes are public and stated, and the labels of the check are others"

MAY_FAIL = {
    "check_fit_idempotent": NOISE,
    "check_pipeline_consistency": NOISE,
    "check_regressor_data_not_an_array": NOISE,
    "check_classifier_data_not_an_array": NOISE,
    "check_transformer_data_not_an_array": NOISE,
    "check_transformer_general": NOISE,
    "check_supervised_y_2d": NOISE,
    "check_regressors_int": NOISE,
    "check_methods_sample_order_invariance": NOISE,
    "check_estimators_nan_inf": MISSING,
    "check_supervised_y_no_nan": INFINITE,
    "check_dtype_object": OBJECTS,
    "check_classifiers_classes": CLASSES,
    "check_classifiers_train": CLASSES,
    "check_classifiers_regression_target": "the target is refused by an error of tacit, with its code",
    "check_decision_proba_consistency": "three classes are listed, and the check has scores of two",
    "check_clustering": "the clusters of private rows are not released, so there is no labels_",
}

STATED: dict[str, dict[str, Any]] = {
    "LinearRegression": {"target_bounds": (-500, 500)},
    "GaussianNB": {"classes": [0, 1, 2]},
    "LogisticRegression": {"classes": [0, 1, 2], "max_iter": 5},
    "DecisionTreeClassifier": {"classes": [0, 1, 2], "max_depth": 2},
    "RandomForestClassifier": {"classes": [0, 1, 2], "max_depth": 2, "n_estimators": 2},
    "StandardScaler": {},
    "KBinsDiscretizer": {},
    "PCA": {},
    "KMeans": {"n_clusters": 2},
    "KernelDensity": {"bins": 3},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", STATED)
def test_scikit_learn_finds_no_other_fault(name: str) -> None:
    model = getattr(learn, name)(epsilon=1e6, bounds=(-50, 50), **STATED[name])
    results = check_estimator(model, on_fail=None, on_skip=None)
    failed = {one["check_name"]: one["exception"] for one in results if one["status"] == "failed"}
    assert len(results) > 40
    assert {check: str(why) for check, why in failed.items() if check not in MAY_FAIL} == {}
