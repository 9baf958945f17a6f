"""Statistics of registered tables, by their names in `tacit.stats`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from fastapi import APIRouter, Response

from tacit import stats
from tacit.accounting.conversions import Cost
from tacit.ledger.permits import REAL_BYTES, require_keepable
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput, TooWide
from tacit.server.access import Action
from tacit.server.context import Caller, Who
from tacit.server.error_responses import AsciiJSONResponse
from tacit.server.query_requests import Key, accepted, more_like_this, own_key, remaining, sameness, wait_s
from tacit.server.response_padding import class_of
from tacit.stats.preparation import Asked
from tacit.stats.statistic import StatisticPlan
from tacit.wire.requests import StatisticRequest
from tacit.wire.responses import (
    AcceptedResponse,
    CostResponse,
    PlanLine,
    PreviewResponse,
    StatisticResponse,
    cost_responses,
)
from tacit.wire.values import decode, encode

router = APIRouter(prefix="/v1", tags=["statistics"])

FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    name: getattr(stats, name)
    for name in stats.__all__
    if inspect.isfunction(getattr(stats, name)) and name not in ("prepare", "preview", "workload")
}
"""The statistics but for the one whose workloads are objects of the caller's process."""

COMMON: Final = frozenset(Asked.__annotations__) - {"budget", "unit", "analyst", "key", "timeout_s", "progress"}
"""What callers can say of any statistic; not who pays, whose rows they are, and how long it may run.

The key is a header, as for questions.
"""
LISTED_MAX: Final = 100_000
"""How many keys can be listed, however few numbers are shown."""

_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@router.post(
    "/statistics",
    response_model=StatisticResponse,
    responses={202: {"model": AcceptedResponse, "description": "It takes longer; look for the answer under the job."}},
)
async def ask(who: Who, statistic: StatisticRequest, key: Key = None) -> Response:
    """Compute a statistic of one table privately, and charge it to the budget of its data set.

    The same statistic again is answered from what was released, at no cost.
    """
    server = who.server
    (work, class_s), same = await who.planned(lambda: (_planned(who, statistic, key), sameness(who, statistic)))
    found = await server.jobs.answered(who.name, work, class_s, wait_s(who, statistic), same)
    if isinstance(found, str):
        return accepted(found)
    server.metrics.released.labels("yes" if found.permit else "no").inc()
    return AsciiJSONResponse(found.model_dump())


@router.post("/statistics/preview")
async def preview(who: Who, statistic: StatisticRequest) -> PreviewResponse:
    """Say exactly what a statistic would cost; spends nothing."""
    return await who.planned(lambda: _preview(who, statistic))


def _preview(who: Caller, statistic: StatisticRequest) -> PreviewResponse:
    found = _prepared(who, statistic, None, Action.QUESTION_PREVIEW)[0].preview()
    return PreviewResponse(
        cost=CostResponse.of(found),
        widths={},
        is_released=found.is_released,
        lines=[PlanLine(label="plan", text=line) for line in found.lines],
        remaining=cost_responses(found.remaining),
        fits=found.fits,
        refusal=found.refusal,
        more_like_this=more_like_this(found, found.remaining),
    )


def _planned(
    who: Caller, statistic: StatisticRequest, key: str | None
) -> tuple[Callable[[], StatisticResponse], float]:
    """Plan a statistic, and return what is still to be done and in which class of time; nothing is charged."""
    planned, datasets = _prepared(who, statistic, key, Action.QUESTION_ASK)

    def work() -> StatisticResponse:
        return _response(planned.release(), statistic.level, remaining(who, datasets))

    return work, class_of(planned.statistic.work, who.server.settings.timing_class_s)


def _prepared(
    who: Caller, statistic: StatisticRequest, key: str | None, action: Action
) -> tuple[stats.PreparedStatistic, dict[str, None]]:
    """Plan a statistic of tables on which the caller may do `action`, and return its data sets beside it."""
    who.require(Action.SERVER_READ)
    function = FUNCTIONS.get(statistic.function)
    if function is None:
        raise InvalidInput(
            f"there is no statistic {statistic.function}; there is {', '.join(FUNCTIONS)}", name="function"
        )
    own = {
        name
        for name, one in inspect.signature(function).parameters.items()
        if one.kind is not inspect.Parameter.VAR_KEYWORD
    }
    for name in statistic.arguments:
        if name not in own | COMMON:
            raise InvalidInput(f"{statistic.function} has no argument {name}", name=name)
    _check_given(function, statistic)
    datasets: dict[str, None] = {}
    arguments = _arguments(who, statistic, datasets, action)
    if not datasets:
        raise InvalidInput(
            'a statistic is about columns of a table: {"table": "visits", "column": "age"}', name="arguments"
        )
    analyst = who.payer(datasets)
    if analyst is not None:
        arguments["analyst"] = analyst
    limits = who.server.settings.limits
    arguments |= {"key": own_key(who, key), "timeout_s": limits.question_s}

    planned = stats.prepare(function, **arguments)
    _require_shown(planned.plan, limits.rows)
    return planned, datasets


def _require_shown(plan: StatisticPlan, rows_max: int) -> None:
    """Raise TooWide if the answer could have more numbers than the server shows, or more bytes than are answered."""
    if plan.numbers > rows_max:
        raise TooWide(
            f"the answer has up to {plan.numbers:,} numbers, and the server shows {rows_max:,}",
            accepted="ask for fewer or coarser cells",
        )
    require_keepable(plan.keys_bytes + 3 * REAL_BYTES * plan.numbers)  # each number, and the ends of its interval


def _check_given(function: Callable[..., Any], statistic: StatisticRequest) -> None:
    for name, one in inspect.signature(function).parameters.items():
        is_needed = one.default is one.empty and one.kind in _NAMED
        if is_needed and name not in statistic.arguments:
            raise InvalidInput(f"{statistic.function} needs its argument {name}", name=name)


def _arguments(who: Caller, statistic: StatisticRequest, datasets: dict[str, None], action: Action) -> dict[str, Any]:
    """Return the arguments of a statistic, and add the data sets of the columns that it is about."""

    def column(table_name: str, name: str, facts: Bounds | Categories | None) -> Any:
        table = who.table(table_name, action)
        datasets[table.dataset] = None
        found = who.server.curator.table(table.name)[name]
        return found if facts is None else found.stated(facts)

    most = max(who.server.settings.limits.rows, LISTED_MAX) + 1  # the edges of as many cells as an answer can show
    return {name: decode(value, column=column, size_max=most) for name, value in statistic.arguments.items()}


def _response(answer: stats.Answer, level: float, left: Mapping[str, Cost]) -> StatisticResponse:
    """Return the answer of a statistic for the wire."""
    keys, span = answer.keys, answer.interval(level)
    facts: dict[str, Any] = {}
    if isinstance(answer, stats.TestAnswer):
        facts = {"pvalue": answer.pvalue, "statistic": answer.statistic, "estimate": answer.estimate}
    if (hypothesis := answer.hypothesis) is not None:
        facts["hypothesis"] = hypothesis
    if bounds := answer.learnt_bounds:
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
        permit=answer.permit.id if answer.permit is not None else None,
        warnings=list(answer.warnings),
        coverage=list(answer.coverage),
        card=answer.card,
        simulated=answer.simulated,
    )
