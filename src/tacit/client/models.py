"""Models of a server: `client.train(...)`, `client.models()` and `client.model(id)`.

A model predicts at the server, which needs no extra here; `estimator` is the fitted estimator itself, downloaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tacit.accounting.conversions import Cost
from tacit.client.errors import require_readable
from tacit.client.queries import listed_facts
from tacit.client.transport import Transport
from tacit.curator.models import NOT_STATED, Prediction, columns_by_name
from tacit.privacy import texts
from tacit.privacy.arguments import instances, mapping
from tacit.privacy.errors import InvalidInput, WrongType
from tacit.privacy.extras import import_extra
from tacit.privacy.numbers import agreed
from tacit.privacy.tables import Kind
from tacit.wire.requests import PredictionRequest, TrainingRequest
from tacit.wire.responses import ModelResponse, PredictionResponse, TrainingResponse, costs_of
from tacit.wire.values import encode, encode_number

if TYPE_CHECKING:
    from tacit.learn.estimators.base import PrivateEstimator


@dataclass(frozen=True)
class RemoteModel:
    """A trained model of a server."""

    id: str
    dataset: str
    table: str
    estimator_name: str
    features: tuple[str, ...]
    kinds: tuple[Kind, ...]
    """The kinds of the features."""
    target: str | None
    analyst: str | None
    """The analyst who was charged; None for those who manage the budget."""
    permit: str | None
    trained_at: datetime
    cost: Cost
    """What the training was charged; in the answer of `train`, what it was charged now."""
    price: Cost
    """What the release costs a budget that it is new to."""
    card: str
    transport: Transport = field(repr=False, compare=False)
    remaining: Mapping[str, Cost] = field(default_factory=dict, compare=False)
    """In the answer of `train`, what was left of the budget afterwards."""
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, response: ModelResponse, transport: Transport, training: TrainingResponse | None = None) -> RemoteModel:
        """Return the model of a response, with what its training was charged now."""
        return cls(
            response.id,
            response.dataset,
            response.table,
            response.estimator,
            tuple(one.name for one in response.features),
            tuple(one.kind for one in response.features),
            response.target,
            response.analyst,
            response.permit,
            response.trained_at,
            (response if training is None else training).cost.cost,
            response.price.cost,
            response.card,
            transport,
            {} if training is None else costs_of(training.remaining),
            () if training is None else tuple(training.warnings),
        )

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The fitted estimator as JSON, downloaded."""
        found = self.transport.get(ModelResponse, "models", self.id).document
        with require_readable("the model"):
            return mapping("document", found or {}, "an object")

    @cached_property
    def estimator(self) -> PrivateEstimator:
        """The fitted estimator, downloaded; needs the extra `learn`."""
        registry = import_extra("tacit.learn.estimators.registry", extra="learn", purpose="machine learning")
        found: PrivateEstimator = registry.from_document(self.document)
        return found

    def predict(self, rows: Mapping[str, Sequence[Any]], method: str | None = None) -> Prediction:
        """Return what the model says of rows, given as columns (or a frame) by the names of the features."""
        columns = {name: encode(one, tagged=True) for name, one in columns_by_name(rows).items()}
        body = PredictionRequest.of(columns=columns, method=method)
        said = self.transport.post(PredictionResponse, "models", self.id, "predictions", body=body, is_repeatable=True)
        return Prediction(said.method, said.values, said.names)


def _require_known_to_servers(estimator: object) -> None:
    """Raise WrongType for what a server does not train."""
    kind = type(estimator)
    if getattr(estimator, "is_for_servers", True) is False:
        raise WrongType(
            f"a server trains no {kind.__name__}, as its running time has to stay secret; train one estimator with one "
            "setting here, or search in the curator's process with curator.train",
            name="estimator",
        )
    if not kind.__module__.startswith("tacit.learn.estimators."):
        raise WrongType(
            f"a server trains estimators of tacit.learn alone, such as tacit.learn.LogisticRegression, and this is "
            f"a {kind.__module__}.{kind.__name__}",
            name="estimator",
        )


def training_request(
    table: str,
    estimator: PrivateEstimator | str,
    features: Sequence[str],
    target: str | None,
    epsilon: object,
    delta: object,
    parameters: Mapping[str, Any] | None,
    purpose: str,
) -> TrainingRequest:
    """Return the request of a training; an estimator is sent as its name and its parameters."""
    words = "values by the names of parameters"
    stated = dict(mapping("parameters", {} if parameters is None else parameters, words))
    name = estimator
    if not isinstance(estimator, str):
        if stated:
            raise InvalidInput("an estimator has its parameters; leave parameters= out", name="parameters")
        _require_known_to_servers(estimator)
        name, given = type(estimator).__name__, estimator.get_params(deep=False)
        if given.get("budget") is not None:
            raise InvalidInput("a server pays from the data set's budget; leave budget= out", name="budget")
        epsilon, delta = (agreed(one, given.get(one), its) for one, its in (("epsilon", epsilon), ("delta", delta)))
        stated = {one: value for one, value in given.items() if one not in NOT_STATED and value is not None}
    return TrainingRequest.of(
        table=texts.name("table", table),
        estimator=name,
        parameters=encode({one: listed_facts(value) for one, value in stated.items()}, tagged=True) or None,
        features=list(instances("features", features, str, "a list of columns of the table")),
        target=target,
        epsilon=encode_number("epsilon", epsilon),
        delta=None if delta is None else encode_number("delta", delta),
        purpose=texts.note("purpose", purpose) or None,
    )
