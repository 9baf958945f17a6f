"""Private machine learning: DP-SGD for PyTorch, estimators with scikit-learn's contract, and PATE.

    make_private, preview_private, resume, PrivateTraining, AdaptiveClip    training with clipped gradients and noise
    replace_batch_norm                                              GroupNorm in the place of BatchNorm, for it
    LinearRegression, GaussianNB, CategoricalNB, KMeans, PCA        estimators with scikit-learn's contract
    LogisticRegression, DecisionTreeClassifier, RandomForestClassifier    classifiers, likewise
    StandardScaler, KBinsDiscretizer, KernelDensity                 preprocessing and densities, likewise
    HistGradientBoostingClassifier                                  boosted additive models, likewise
    PrivateSearch                                                   private selection of hyper-parameters
    from_document                                                   fitted estimators from their documents
    PATE, PrivatePrediction, SanitisedReport                        students of private teachers, and their report
    LNMax, GNMax, ConfidentGNMax, InteractiveGNMax                  how votes of teachers are aggregated
    randomize_labels, LabelDPClassifier, corrected_loss             learning from randomised labels
    randomize_features, debiased_linear_regression, debiased_naive_bayes    learning from randomised rows
    RandomizedLabels, RandomizedRows                                what these two release
    subgroup_report, SubgroupReport, SubgroupWarning                what privacy costs each group of people
    EarlyStopping, normalize_weights, drop_rare_features, share_largest   defences that promise nothing

PyTorch and scikit-learn come with the extra `learn` (`pip install 'tacit[learn]'`); they are imported when a name that
needs them is first used.
"""

from typing import TYPE_CHECKING, Any, Final

from tacit.privacy.extras import import_extra

if TYPE_CHECKING:
    from tacit.learn.defences import EarlyStopping, drop_rare_features, normalize_weights, share_largest
    from tacit.learn.dpsgd.model_checks import replace_batch_norm
    from tacit.learn.dpsgd.private_training import PrivateTraining
    from tacit.learn.dpsgd.schedule import AdaptiveClip
    from tacit.learn.dpsgd.training import make_private, preview_private, resume
    from tacit.learn.estimators.boosting import HistGradientBoostingClassifier
    from tacit.learn.estimators.cluster import KMeans
    from tacit.learn.estimators.decomposition import PCA
    from tacit.learn.estimators.density import KernelDensity
    from tacit.learn.estimators.linear import LinearRegression
    from tacit.learn.estimators.logistic import LogisticRegression
    from tacit.learn.estimators.naive_bayes import CategoricalNB, GaussianNB
    from tacit.learn.estimators.preprocessing import KBinsDiscretizer, StandardScaler
    from tacit.learn.estimators.registry import from_document
    from tacit.learn.estimators.selection import PrivateSearch
    from tacit.learn.estimators.trees import DecisionTreeClassifier, RandomForestClassifier
    from tacit.learn.pate.aggregators import ConfidentGNMax, GNMax, InteractiveGNMax, LNMax
    from tacit.learn.pate.sanitised_epsilon import SanitisedReport
    from tacit.learn.pate.student import PATE, PrivatePrediction
    from tacit.learn.randomized.classifier import LabelDPClassifier
    from tacit.learn.randomized.features import RandomizedRows, randomize_features
    from tacit.learn.randomized.labels import RandomizedLabels, randomize_labels
    from tacit.learn.randomized.losses import corrected_loss
    from tacit.learn.randomized.models import debiased_linear_regression, debiased_naive_bayes
    from tacit.learn.subgroups import SubgroupReport, SubgroupWarning, subgroup_report

__all__ = [
    "PATE",
    "PCA",
    "AdaptiveClip",
    "CategoricalNB",
    "ConfidentGNMax",
    "DecisionTreeClassifier",
    "EarlyStopping",
    "GNMax",
    "GaussianNB",
    "HistGradientBoostingClassifier",
    "InteractiveGNMax",
    "KBinsDiscretizer",
    "KMeans",
    "KernelDensity",
    "LNMax",
    "LabelDPClassifier",
    "LinearRegression",
    "LogisticRegression",
    "PrivatePrediction",
    "PrivateSearch",
    "PrivateTraining",
    "RandomForestClassifier",
    "RandomizedLabels",
    "RandomizedRows",
    "SanitisedReport",
    "StandardScaler",
    "SubgroupReport",
    "SubgroupWarning",
    "corrected_loss",
    "debiased_linear_regression",
    "debiased_naive_bayes",
    "drop_rare_features",
    "from_document",
    "make_private",
    "normalize_weights",
    "preview_private",
    "randomize_features",
    "randomize_labels",
    "replace_batch_norm",
    "resume",
    "share_largest",
    "subgroup_report",
]

_HOMES: Final = {
    "tacit.learn.defences": ("EarlyStopping", "drop_rare_features", "normalize_weights", "share_largest"),
    "tacit.learn.dpsgd.model_checks": ("replace_batch_norm",),
    "tacit.learn.dpsgd.private_training": ("PrivateTraining",),
    "tacit.learn.dpsgd.schedule": ("AdaptiveClip",),
    "tacit.learn.dpsgd.training": ("make_private", "preview_private", "resume"),
    "tacit.learn.estimators.boosting": ("HistGradientBoostingClassifier",),
    "tacit.learn.estimators.cluster": ("KMeans",),
    "tacit.learn.estimators.decomposition": ("PCA",),
    "tacit.learn.estimators.density": ("KernelDensity",),
    "tacit.learn.estimators.linear": ("LinearRegression",),
    "tacit.learn.estimators.logistic": ("LogisticRegression",),
    "tacit.learn.estimators.naive_bayes": ("CategoricalNB", "GaussianNB"),
    "tacit.learn.estimators.preprocessing": ("KBinsDiscretizer", "StandardScaler"),
    "tacit.learn.estimators.selection": ("PrivateSearch",),
    "tacit.learn.estimators.trees": ("DecisionTreeClassifier", "RandomForestClassifier"),
    "tacit.learn.estimators.registry": ("from_document",),
    "tacit.learn.pate.aggregators": ("ConfidentGNMax", "GNMax", "InteractiveGNMax", "LNMax"),
    "tacit.learn.pate.sanitised_epsilon": ("SanitisedReport",),
    "tacit.learn.pate.student": ("PATE", "PrivatePrediction"),
    "tacit.learn.randomized.classifier": ("LabelDPClassifier",),
    "tacit.learn.randomized.features": ("RandomizedRows", "randomize_features"),
    "tacit.learn.randomized.labels": ("RandomizedLabels", "randomize_labels"),
    "tacit.learn.randomized.losses": ("corrected_loss",),
    "tacit.learn.randomized.models": ("debiased_linear_regression", "debiased_naive_bayes"),
    "tacit.learn.subgroups": ("SubgroupReport", "SubgroupWarning", "subgroup_report"),
}

ESTIMATORS: Final = tuple(
    name
    for home, names in _HOMES.items()
    if home.startswith("tacit.learn.estimators.")
    for name in names
    if name[0].isupper()
)
"""The names of estimators, which a curator and a server train."""


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_extra(home, extra="learn", purpose="machine learning"), name)
    raise AttributeError(f"module 'tacit.learn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
