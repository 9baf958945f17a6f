"""Models that were trained on registered tables: planned, charged by the pipeline, and kept in the folder.

A model is a release: what its training measured is charged once and stored in the ledger, so that the same training on
the same rows costs nothing again. Beside that the model is kept in `models/ID.json`, a JSON document (no pickle) that
only its owner can read; it predicts after the table was removed.

The id of a model is a digest of the release and its numbers, of the parameters of the estimator, which decide what it
says of a row, and of the analyst who trained it. It depends on rows through released numbers alone.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict

from tacit.accounting.conversions import Cost
from tacit.curator.locked_file import make_private_folder
from tacit.engines.protocol import Progress
from tacit.ledger.administration import cost_of
from tacit.ledger.clock import system_clock, time_of
from tacit.privacy import strict_json
from tacit.privacy.arguments import instance, instances, mapping
from tacit.privacy.errors import (
    InvalidInput,
    NameTaken,
    StorageUnavailable,
    TooLarge,
    UnknownName,
    WrongType,
)
from tacit.privacy.extras import import_extra
from tacit.privacy.numbers import agreed
from tacit.privacy.tables import Kind
from tacit.privacy.texts import did_you_mean
from tacit.stats.column_reader import MODULES
from tacit.stats.preparation import CommonOptions
from tacit.stats.releases import PreparedStatistic, StatisticPreview
from tacit.storage.files import new_file

if TYPE_CHECKING:
    from tacit.curator.curated_tables import CuratedTable
    from tacit.learn.estimators.base import PrivateEstimator

FOLDER: Final = "models"
FORMAT: Final = "tacit model 1"
ID_LENGTH: Final = 24
MODELS_MAX: Final = 1_000
"""The greatest number of models that are kept for one analyst, and for the owner."""
_ID: Final = re.compile(f"[0-9a-f]{{{ID_LENGTH}}}")
NUMBER_MAX: Final = 1_000
"""The greatest number of bins, clusters and the like, which planning takes time for, of an estimator by name."""
UNLIMITED: Final = ("rows_per_unit", "random_state")
"""Parameters whose numbers decide about no work."""
NOT_STATED: Final = ("epsilon", "delta", "budget")
"""Parameters of estimators that a training has of its own, or that belong to the data set."""


@dataclass(frozen=True)
class Prediction:
    """What a method of a model says of rows, in their order."""

    method: str
    values: list[Any]
    names: list[str]
    """The names of the columns, where `values` has a list for each row: classes, or transformed features."""


@dataclass(frozen=True)
class KeptModel:
    """A trained model in the folder of a curator; its document is read when it is needed."""

    id: str
    dataset: str
    table: str
    estimator_name: str
    features: tuple[str, ...]
    kinds: tuple[Kind, ...]
    """The kinds of the features."""
    target: str | None
    analyst: str | None
    """The analyst who was charged; None for the owner."""
    permit: str | None
    """The permit of the training; None if it had been released before."""
    trained_at: datetime
    cost: Cost
    """What the training was charged: nothing if the same had been released before."""
    price: Cost
    """What the release costs a budget that it is new to."""
    card: str
    path: Path

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The fitted estimator, as `to_document` writes it; raises UnknownName after the model was removed."""
        found: Mapping[str, Any] = _contents(self.path)["document"]
        return found

    @cached_property
    def estimator(self) -> PrivateEstimator:
        """The fitted estimator."""
        found: PrivateEstimator = _estimators().from_document(self.document)
        return found

    def predict(self, rows: Mapping[str, Sequence[Any]], method: str | None = None) -> Prediction:
        """Return what the model says of rows, given as columns (or a frame) by the names of the features."""
        return predict(self.estimator, self.features, columns_by_name(rows), method)


def columns_by_name(rows: Any) -> Any:
    """Return the columns of a frame by their names; anything else as it is."""
    if isinstance(rows, Mapping) or type(rows).__module__.partition(".")[0] not in MODULES:
        return rows
    names = rows.column_names if hasattr(rows, "column_names") else getattr(rows, "columns", ())
    return {name: rows[name] for name in names}


def predict(
    estimator: PrivateEstimator, features: Sequence[str], rows: Mapping[str, Sequence[Any]], method: str | None
) -> Prediction:
    """Return what a method of a fitted estimator says of columns of rows, or raise an error about them."""
    given = mapping("rows", rows, "a list of values for each feature")
    if unknown := [name for name in given if name not in features]:
        hint = did_you_mean(str(unknown[0]), features, f"the features are {', '.join(features)}")
        raise InvalidInput(f"the model has no feature {unknown[0]!r}; {hint}", name=str(unknown[0]))
    if missing := [name for name in features if name not in given]:
        raise InvalidInput(f"the rows have no column {missing[0]}", name=missing[0])
    if len({len(instances(name, given[name], object, "a list of values")) for name in features}) > 1:
        raise InvalidInput("the columns must have the same number of values", name="rows")
    can: list[str] = [one for one in _estimators().METHODS if hasattr(estimator, one)]
    chosen = can[0] if method is None and can else method
    if chosen not in can:
        raise InvalidInput(
            f"{type(estimator).__name__} has no method {chosen!r}; use {', '.join(can)}", name="method", value=method
        )
    found = getattr(estimator, chosen)({name: given[name] for name in features})
    return Prediction(chosen, found.tolist(), _column_names(estimator, chosen) if found.ndim > 1 else [])


def _column_names(estimator: PrivateEstimator, method: str) -> list[str]:
    if method == "predict_proba":
        return [str(one) for one in estimator.classes_]
    return [str(one) for one in estimator.get_feature_names_out()]


class UnreadableModelWarning(UserWarning):
    """A file among the models cannot be read, and is left out."""


class ModelStore:
    """The models in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder / FOLDER
        self._known: Final[dict[str, KeptModel]] = {}

    def all(self) -> list[KeptModel]:
        """Return the models, oldest first; warn of files that are none, or of another version, and leave them out."""
        found = []
        for path in self._folder.glob("*.json"):
            if _ID.fullmatch(path.stem) is None:
                continue
            if (known := self._known.get(path.stem)) is None:
                try:
                    known = self._known[path.stem] = _read(path)
                except UnknownName:  # removed in between
                    continue
                except (InvalidInput, StorageUnavailable) as error:
                    warnings.warn(f"{error.message}; it is not listed", UnreadableModelWarning, stacklevel=2)
                    continue
            found.append(replace(known))  # a copy, which alone keeps the document in memory
        return sorted(found, key=lambda one: (one.trained_at, one.id))

    def get(self, model: str) -> KeptModel:
        """Return a model by its id, or raise UnknownName."""
        return _read(self._path(model))

    def _path(self, model: str) -> Path:
        """Return the file of a model, which may not exist, or raise UnknownName for what is no id."""
        if _ID.fullmatch(str(model)) is None:
            raise no_model(model)
        return self.path(model)

    def remove(self, model: str) -> None:
        """Delete a model, also one that cannot be read; what was charged for it stays charged."""
        path = self._path(model)
        try:
            os.unlink(path)
        except FileNotFoundError:
            raise no_model(model) from None
        except OSError as error:
            raise StorageUnavailable(f"{path} cannot be removed: {error.strerror}") from None
        self._known.pop(model, None)

    def require_room(self, analyst: str | None) -> None:
        """Raise, before a training is charged, if its model could not be kept."""
        try:
            make_private_folder(self._folder)
        except OSError as error:
            raise StorageUnavailable(
                f"{self._folder} cannot be created: {error.strerror}; nothing was charged"
            ) from None
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise StorageUnavailable(f"models cannot be written to {self._folder}; nothing was charged")
        if sum(one.analyst == analyst for one in self.all()) >= MODELS_MAX:
            raise TooLarge(
                f"{analyst or 'the owner'} has {MODELS_MAX:,} models, the most that are kept; remove some", name="model"
            )

    def keep(self, model: KeptModel, document: Mapping[str, Any]) -> KeptModel:
        """Write a model, or return the one that was written when the same was released before."""
        facts = {
            "format": FORMAT,
            **{name: getattr(model, name) for name in _PLAIN},
            "kinds": [kind.value for kind in model.kinds],
            "trained_at": model.trained_at.isoformat(),
            "cost": _numbers_of(model.cost),
            "price": _numbers_of(model.price),
            "document": document,
        }
        try:
            with new_file(model.path) as aside:
                aside.write_text(json.dumps(facts, allow_nan=False), encoding="utf-8")
        except NameTaken:
            return _read(model.path)
        except (StorageUnavailable, InvalidInput) as error:
            raise StorageUnavailable(
                f"{error.message}; the training was charged, and repeating it costs nothing"
            ) from None
        return model

    def path(self, model: str) -> Path:
        """Return the file of a model."""
        return self._folder / f"{model}.json"


_PLAIN: Final = ("id", "dataset", "table", "estimator_name", "features", "target", "analyst", "permit", "card")


def _numbers_of(cost: Cost) -> list[float | None]:
    return [one if math.isfinite(one) else None for one in (cost.epsilon, cost.delta, cost.rho)]


def _cost_of(numbers: Sequence[float | None]) -> Cost:
    return Cost(*(math.inf if one is None else float(one) for one in numbers))


def no_model(model: object) -> UnknownName:
    """Return the error about a model that is not there."""
    return UnknownName(f"there is no model {model}", name="model", value=model)


def _contents(path: Path) -> Any:
    try:
        return strict_json.loads(path.read_bytes())
    except InvalidInput as error:
        raise InvalidInput(f"{path} is not a model of tacit: {error.message}", name="model") from None
    except FileNotFoundError:
        raise no_model(path.stem) from None
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be read: {error.strerror}") from None


def _read(path: Path) -> KeptModel:
    found = _contents(path)
    if isinstance(found, dict) and found.get("format", FORMAT) != FORMAT:
        raise InvalidInput(f"{path} is a model of another version of tacit", name="model")
    try:
        plain = {name: found[name] for name in _PLAIN if name != "features"}
        if {type(one) for one in plain.values()} - {str, type(None)} or plain["id"] != path.stem:
            raise InvalidInput("its facts are not texts, or of another model", name="model")
        return KeptModel(
            **plain,
            features=instances("features", found["features"], str, "a list of names"),
            kinds=tuple(map(Kind, found["kinds"])),
            trained_at=datetime.fromisoformat(found["trained_at"]).astimezone(UTC),
            cost=_cost_of(found["cost"]),
            price=_cost_of(found.get("price", found["cost"])),
            path=path,
        )
    except (InvalidInput, KeyError, OverflowError, TypeError, ValueError):
        raise InvalidInput(f"{path} is not a model of tacit", name="model") from None


class TrainingOptions(TypedDict, total=False):
    """Options of a training, as statistics have them."""

    delta: object
    """What the training takes of the delta of the data set, if the estimator does not state it; or a small share."""
    analyst: str | None
    key: str | None
    purpose: str
    timeout_s: float | None
    progress: Progress | None


@dataclass(frozen=True)
class PreparedTraining:
    """A planned training; no row was read and nothing was charged."""

    estimator: PrivateEstimator
    table: CuratedTable
    features: tuple[str, ...]
    target: str | None
    analyst: str | None
    prepared: PreparedStatistic
    store: ModelStore

    @classmethod
    def of(
        cls,
        store: ModelStore,
        table: CuratedTable,
        estimator: PrivateEstimator,
        features: Sequence[str],
        target: str | None,
        epsilon: object,
        options: TrainingOptions,
    ) -> Self:
        """Plan the training of a copy of an estimator."""
        given = instance("estimator", estimator, _estimators().PrivateEstimator, "an estimator of tacit.learn")
        if isinstance(features, str):
            raise WrongType("features is a list of columns of the table", name="features", value=features)
        names = tuple(instances("features", features, str, "a list of columns of the table"))
        made = type(given)(**given.get_params(deep=False))
        for one in options:
            if one not in TrainingOptions.__annotations__:
                raise InvalidInput(f"a training has no argument {one}", name=one)
        for name, stated in (("epsilon", epsilon), ("delta", options.get("delta"))):
            made.set_params(**{name: agreed(name, getattr(given, name), stated)})
        others = {name: one for name, one in options.items() if one is not None and name != "delta"}
        prepared = made.prepare_table(table, names, target, **CommonOptions(**others))  # type: ignore[typeddict-item]
        for one in getattr(prepared.plan, "models", (made,)):  # of a search, of which any may be the best
            one.encoded_parameters()  # the model has to be written after the charge
        return cls(made, table, names, target, options.get("analyst"), prepared, store)

    def preview(self) -> StatisticPreview:
        """Return exactly what `release` would charge now."""
        return self.prepared.preview()

    def release(self) -> tuple[PrivateEstimator, KeptModel]:
        """Charge the training, run it, keep the model, and return the fitted estimator with it."""
        self.store.require_room(self.analyst)
        fitted = self.estimator.fit_prepared(self.prepared, self.features)
        document, record = fitted.to_document(), self.table.table
        name = _digest(self.prepared.statistic.digest, self.analyst, document)
        permit = fitted.answer_.permit
        kept = self.store.keep(
            KeptModel(
                id=name,
                dataset=record.dataset,
                table=record.name,
                estimator_name=document["estimator"],
                features=self.features,
                kinds=tuple(fitted.features_.kinds),
                target=self.target,
                analyst=self.analyst,
                permit=None if permit is None else permit.id,
                trained_at=time_of(system_clock()),
                cost=fitted.cost,
                price=cost_of(self.prepared.plan.event, self.table.budget.cap),
                card=fitted.card,
                path=self.store.path(name),
            ),
            document,
        )
        fitted.model_id = kept.id
        return fitted, kept


def _digest(release: str, analyst: str | None, document: Mapping[str, Any]) -> str:
    """Return the id of a model: equal for the same release, numbers and estimator, whatever the training cost now.

    Releases are told apart as well, since two of whole numbers, for other targets or epsilons, may have equal ones.
    """
    fitted = {name: one for name, one in document["fitted"].items() if name != "card_"}
    stated = {name: one for name, one in document["parameters"].items() if name not in NOT_STATED}
    told = [release, analyst, document["estimator"], stated, document["features"], fitted]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:ID_LENGTH]


def estimator_of(name: str, parameters: Mapping[str, Any]) -> PrivateEstimator:
    """Return an estimator of `tacit.learn` by its name, with parameters of its own; epsilon is the training's."""
    kind = _estimators().estimator_class(name)
    own = [one for one in inspect.signature(kind).parameters if one not in NOT_STATED]
    for one in mapping("parameters", parameters, "values by the names of parameters"):
        if one in NOT_STATED:
            raise InvalidInput(
                f"{one} is no parameter of an estimator on a registered table: epsilon and delta are stated with the "
                "training, and the budget is that of the data set",
                name=one,
            )
        if one not in own:
            hint = did_you_mean(str(one), own, f"its parameters are {', '.join(own)}")
            raise InvalidInput(f"{name} has no parameter {one!r}; {hint}", name=str(one))
        if one not in UNLIMITED and isinstance(parameters[one], int | float) and abs(parameters[one]) > NUMBER_MAX:
            raise TooLarge(f"{one} may be {NUMBER_MAX:,} at most", name=one)
    found: PrivateEstimator = kind(**parameters)
    return found


def _estimators() -> Any:
    return import_extra("tacit.learn.estimators.registry", extra="learn", purpose="machine learning")
