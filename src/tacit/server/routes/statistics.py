"""Routes of statistics over registered tables, by their names in `tacit.stats`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from fastapi import APIRouter, Response

from tacit import stats
from tacit.accounting.conversions import Cost
from tacit.ledger.answer_storage import REAL_BYTES, require_storable
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput, TooWide
from tacit.server.access import Action
from tacit.server.context import Caller, CallerDep
from tacit.server.jobs import class_of
from tacit.server.query_requests import (
    Key,
    ledger_key,
    remaining,
    run_or_respond_with_job,
    statistic_preview,
)
from tacit.stats.preparation import CommonOptions
from tacit.stats.statistic import StatisticPlan
from tacit.wire.requests import STATISTICS, StatisticRequest
from tacit.wire.responses import (
    AcceptedResponse,
    CostResponse,
    PreviewResponse,
    StatisticResponse,
    cost_responses,
)
from tacit.wire.values import decode, encode

router = APIRouter(prefix="/v1", tags=["statistics"])

FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {name: getattr(stats, name) for name in STATISTICS}

COMMON: Final = frozenset(CommonOptions.__annotations__) - {"budget", "unit", "analyst", "key", "timeout_s", "progress"}
"""Arguments that every statistic takes over REST; payer, unit and time limit are the server's, the key is a header."""
LISTED_MAX: Final = 100_000
"""Keys that a request may list, even if the limit on rows is lower."""

_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@router.post(
    "/statistics",
    response_model=StatisticResponse,
    responses={
        202: {"model": AcceptedResponse, "description": "The statistic takes longer; its answer will be in the job."}
    },
)
async def ask(caller: CallerDep, statistic: StatisticRequest, key: Key = None) -> Response:
    """Compute a private statistic of one table, and charge it to the budget of its data set.

    The same statistic on the same data is answered from what was released, at no cost.
    """
    return await run_or_respond_with_job(caller, statistic, key, _plan)


@router.post("/statistics/preview")
async def preview(caller: CallerDep, statistic: StatisticRequest) -> PreviewResponse:
    """Return the exact price of a statistic; spends nothing."""
    return await caller.run_planning(lambda: _preview(caller, statistic))


def _preview(caller: Caller, statistic: StatisticRequest) -> PreviewResponse:
    return statistic_preview(_prepare(caller, statistic, None, Action.QUESTION_PREVIEW)[0])


def _plan(
    caller: Caller, statistic: StatisticRequest, key: str | None
) -> tuple[Callable[[], StatisticResponse], float, Iterable[str]]:
    """Plan a statistic; return the function that runs it, its time class and its data sets; charges nothing."""
    planned, datasets = _prepare(caller, statistic, key, Action.QUESTION_ASK)

    def run() -> StatisticResponse:
        answer = planned.release()
        return _response(answer, statistic.level, remaining(caller, datasets), planned.budget.payer)

    return run, class_of(planned.statistic.work, caller.server.settings.timing_class_s), datasets


def _prepare(
    caller: Caller, statistic: StatisticRequest, key: str | None, action: Action
) -> tuple[stats.PreparedStatistic, dict[str, None]]:
    """Plan a statistic of tables on which the caller may perform `action`; return it with its data sets."""
    caller.require(Action.SERVER_READ)
    function = FUNCTIONS.get(statistic.function)
    if function is None:
        raise InvalidInput(
            f"there is no statistic {statistic.function}; choose one of {', '.join(FUNCTIONS)}", name="function"
        )
    own = {
        name
        for name, one in inspect.signature(function).parameters.items()
        if one.kind is not inspect.Parameter.VAR_KEYWORD
    }
    for name in statistic.arguments:
        if name not in own | COMMON:
            raise InvalidInput(f"{statistic.function} has no argument {name}", name=name)
    _require_arguments(function, statistic)
    datasets: dict[str, None] = {}
    arguments = _arguments(caller, statistic, datasets, action)
    if not datasets:
        raise InvalidInput(
            'a statistic is about columns of a table: {"table": "visits", "column": "age"}', name="arguments"
        )
    analyst = caller.payer(datasets)
    if analyst is not None:
        arguments["analyst"] = analyst
    limits = caller.server.settings.limits
    arguments |= {"key": ledger_key(caller, key), "timeout_s": limits.question_s}

    planned = stats.prepare(function, **arguments)
    planned.budget.preview(planned.plan.event)  # what would be refused anyway is not worked on
    _require_size(planned.plan, limits.rows)
    return planned, datasets


def _require_size(plan: StatisticPlan, rows_max: int) -> None:
    """Raise TooWide if the answer could have more numbers than the server returns, or more bytes than are stored."""
    if plan.numbers > rows_max:
        raise TooWide(
            f"the answer has up to {plan.numbers:,} numbers, and the limit of the server is {rows_max:,}",
            accepted="ask for fewer or coarser cells",
        )
    require_storable(plan.keys_bytes + 3 * REAL_BYTES * plan.numbers)  # each number, and the ends of its interval


def _require_arguments(function: Callable[..., Any], statistic: StatisticRequest) -> None:
    for name, one in inspect.signature(function).parameters.items():
        is_needed = one.default is one.empty and one.kind in _NAMED
        if is_needed and name not in statistic.arguments:
            raise InvalidInput(f"{statistic.function} needs its argument {name}", name=name)


def _arguments(
    caller: Caller, statistic: StatisticRequest, datasets: dict[str, None], action: Action
) -> dict[str, Any]:
    """Return the arguments of a statistic, and add the data sets of its columns to `datasets`."""

    def column(table_name: str, name: str, facts: Bounds | Categories | None) -> Any:
        table = caller.table(table_name, action)
        datasets[table.dataset] = None
        found = caller.server.curator.table(table.name)[name]
        return found if facts is None else found.stated(facts)

    most = max(caller.server.settings.limits.rows, LISTED_MAX) + 1  # the edges of as many cells as an answer may have
    return {name: decode(value, column=column, size_max=most) for name, value in statistic.arguments.items()}


def _response(answer: stats.Answer, level: float, left: Mapping[str, Cost], analyst: str | None) -> StatisticResponse:
    """Return the response of a statistic."""
    keys, span = answer.keys, answer.interval(level)
    facts: dict[str, Any] = {}
    if isinstance(answer, stats.TestAnswer):
        facts = {"pvalue": answer.pvalue, "statistic": answer.statistic, "estimate": answer.estimate}
    if (hypothesis := answer.hypothesis) is not None:
        facts["hypothesis"] = hypothesis
    if bounds := answer.learned_bounds:
        facts["bounds"] = bounds
    return StatisticResponse(
        label=answer.label,
        value=encode(answer.value),
        keys=None if keys is None else encode(keys),
        key_names=list(answer.key_names),
        interval=None if span is None else encode(span),
        level=level,
        facts=encode(facts),
        picture=answer.plan.picture,
        cost=CostResponse.of(answer.cost),
        remaining=cost_responses(left),
        analyst=analyst,
        permit=answer.permit.id if answer.permit is not None else None,
        warnings=list(answer.warnings),
        coverage=list(answer.coverage),
        card=answer.card,
        simulated=answer.simulated,
    )
