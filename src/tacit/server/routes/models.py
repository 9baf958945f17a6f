"""Routes of models: trainings on registered tables, and predictions of what was trained.

Training needs what a query of the table needs. A model is read by whoever may read the releases of the person who was
charged for it, and deleted by whoever may change the catalog of its table. A model that is hidden from the caller is
answered as if it did not exist. Predictions read no private rows and cost nothing; they run in planning threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from fastapi import APIRouter, Response

from tacit.curator.models import KeptModel, PreparedTraining, estimator_of, no_model
from tacit.privacy.errors import TooLarge
from tacit.server.access import Action, Resource
from tacit.server.access.audit import DONE
from tacit.server.context import Caller, CallerDep
from tacit.server.jobs import class_of
from tacit.server.query_requests import (
    Key,
    ledger_key,
    remaining,
    run_or_respond_with_job,
    statistic_preview,
)
from tacit.wire.requests import PredictionRequest, TrainingRequest
from tacit.wire.responses import (
    AcceptedResponse,
    ColumnResponse,
    CostResponse,
    ModelResponse,
    PredictionResponse,
    PreviewResponse,
    TrainingResponse,
    cost_responses,
)
from tacit.wire.values import decode, encode

router = APIRouter(prefix="/v1", tags=["models"])

NUMBERS_MAX: Final = 2**28
"""The greatest number of rows, times the numbers that the model reads for each, of one request for predictions."""


@router.post(
    "/models",
    response_model=TrainingResponse,
    responses={
        202: {"model": AcceptedResponse, "description": "The training takes longer; its answer will be in the job."}
    },
)
async def train(caller: CallerDep, training: TrainingRequest, key: Key = None) -> Response:
    """Train an estimator on columns of a table, charge it to the budget of the data set, and keep the model.

    The same training of the same data is answered from what was released, at no cost.
    """
    return await run_or_respond_with_job(caller, training, key, _plan)


@router.post("/models/preview")
async def preview(caller: CallerDep, training: TrainingRequest) -> PreviewResponse:
    """Return the exact price of a training; spends nothing."""
    return await caller.run_planning(
        lambda: statistic_preview(_prepare(caller, training, None, Action.QUESTION_PREVIEW).prepared)
    )


@router.get("/models")
def list_models(caller: CallerDep, dataset: str | None = None) -> list[ModelResponse]:
    """Return the models that the caller may read, oldest first, without their documents."""
    caller.require_somewhere(Action.RELEASE_READ)
    found = caller.server.curator.models.all()
    return [_response(one) for one in found if dataset in (None, one.dataset) and _sees(caller, one)]


@router.get("/models/{model}")
def show_model(caller: CallerDep, model: str) -> ModelResponse:
    """Return a model with its document, from which `tacit.learn` makes the fitted estimator."""
    found = _found(caller, model, Action.RELEASE_READ)
    return _response(found).model_copy(update={"document": dict(found.document)})


@router.post("/models/{model}/predictions")
async def predict(caller: CallerDep, model: str, prediction: PredictionRequest) -> PredictionResponse:
    """Return what a model says of rows that the caller sends; costs nothing."""
    return await caller.run_planning(lambda: _predict(caller, model, prediction))


@router.delete("/models/{model}", status_code=204)
def remove_model(caller: CallerDep, model: str) -> None:
    """Delete a model; what was charged for it stays charged."""
    found = _found(caller, model, Action.CATALOG_WRITE)
    caller.require(Action.CATALOG_WRITE, replace(_resource(found), person=None))
    caller.server.curator.models.remove(found.id)
    caller.server.access.audit.record(caller.name, "model.remove", _resource(found), DONE, caller.address)


def _predict(caller: Caller, model: str, prediction: PredictionRequest) -> PredictionResponse:
    found = _found(caller, model, Action.RELEASE_READ)
    rows_max = caller.server.settings.limits.rows
    if (count := max(map(len, prediction.columns.values()), default=0)) > rows_max:
        raise TooLarge(f"there are {count:,} rows, and the limit of the server is {rows_max:,}", name="columns")
    numbers = found.estimator.numbers_for_a_row
    if count * numbers > NUMBERS_MAX:
        raise TooLarge(
            f"{count:,} rows of a model that reads {numbers:,} numbers for each take too long here; send at most "
            f"{NUMBERS_MAX // numbers:,} rows at once, or download the model (client.model(id).estimator, tacit learn "
            "export) and predict on your machine",
            name="columns",
        )
    said = found.predict(_decoded(prediction.columns, rows_max), prediction.method)
    return PredictionResponse(method=said.method, values=encode(said.values), names=said.names)


def _plan(
    caller: Caller, training: TrainingRequest, key: str | None
) -> tuple[Callable[[], TrainingResponse], float, list[str]]:
    """Plan a training; return the function that runs it, its time class and its data sets; charges nothing."""
    planned = _prepare(caller, training, key, Action.QUESTION_ASK)
    prepared = planned.prepared
    prepared.budget.preview(prepared.plan.event)  # what would be refused anyway is not worked on
    datasets = [planned.table.table.dataset]

    def run() -> TrainingResponse:
        fitted, kept = planned.release()
        permit = fitted.answer_.permit
        return TrainingResponse(
            model=_response(kept),
            cost=CostResponse.of(fitted.cost),
            remaining=cost_responses(remaining(caller, datasets)),
            analyst=planned.analyst,
            permit=None if permit is None else permit.id,
            warnings=list(fitted.answer_.warnings),
        )

    return run, class_of(prepared.statistic.work, caller.server.settings.timing_class_s), datasets


def _prepare(caller: Caller, training: TrainingRequest, key: str | None, action: Action) -> PreparedTraining:
    """Plan a training on a table on which the caller may perform `action`."""
    caller.require(Action.SERVER_READ)
    table = caller.table(training.table, action)
    limits = caller.server.settings.limits
    return caller.server.curator.prepare_training(
        table.name,
        estimator_of(training.estimator, _decoded(training.parameters, limits.rows)),
        training.features,
        training.target,
        training.epsilon,
        delta=training.delta,
        analyst=caller.payer([table.dataset]),
        key=ledger_key(caller, key),
        purpose=training.purpose,
        timeout_s=limits.question_s,
    )


def _decoded(values: dict[str, Any], size_max: int) -> dict[str, Any]:
    return {name: decode(one, size_max=size_max) for name, one in values.items()}


def _found(caller: Caller, model: str, action: Action) -> KeptModel:
    """Return a model that the caller may read; raise the same error, after the same reads, for a hidden one.

    The facts of all models are looked at, and the file of this one is not read before the caller may see it.
    """
    caller.require_somewhere(Action.RELEASE_READ)
    found = {one.id: one for one in caller.server.curator.models.all()}.get(model)
    resource = Resource() if found is None else _resource(found)
    if not caller.may(Action.RELEASE_READ, resource) or found is None:
        caller.record(action, resource)
        raise no_model(model)
    return found


def _sees(caller: Caller, model: KeptModel) -> bool:
    return caller.may(Action.RELEASE_READ, _resource(model))


def _resource(model: KeptModel) -> Resource:
    return Resource(model.dataset, model.table, model.analyst)


def _response(model: KeptModel) -> ModelResponse:
    return ModelResponse(
        id=model.id,
        estimator=model.estimator_name,
        dataset=model.dataset,
        table=model.table,
        features=[ColumnResponse(name=name, kind=kind) for name, kind in zip(model.features, model.kinds, strict=True)],
        target=model.target,
        analyst=model.analyst,
        permit=model.permit,
        trained_at=model.trained_at,
        cost=CostResponse.of(model.cost),
        price=CostResponse.of(model.price),
        card=model.card,
    )
