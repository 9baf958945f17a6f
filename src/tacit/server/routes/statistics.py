"""Statistics of registered tables, by their names in `tacit.stats`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any, Final

from fastapi import APIRouter, Response

from tacit import stats
from tacit.accounting.bounds import Cost
from tacit.curator.statistics import PlannedStatistic, PlanningTable
from tacit.ledger.answer_size import REAL_BYTES, require_keepable
from tacit.ledger.permits import cost_to_dict
from tacit.privacy.errors import InvalidInput, TooLarge, TooWide
from tacit.server.access import Action
from tacit.server.asking import Key, own_key, remaining, sameness
from tacit.server.documents import Accepted, AnswerGiven, StatisticAsked
from tacit.server.place import Caller, Who
from tacit.server.timing import class_of_statistic
from tacit.server.wire import DEPTH_MAX, read, written
from tacit.stats.asking import Asked
from tacit.stats.plan import Plan

router = APIRouter(prefix="/v1", tags=["statistics"])

FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    name: getattr(stats, name)
    for name in stats.__all__
    if inspect.isfunction(getattr(stats, name)) and name != "workload"
}
"""All but the one whose workloads are objects of the caller's process."""

COMMON: Final = frozenset(Asked.__annotations__) - {"budget", "unit", "analyst", "key", "timeout_s"}
"""What callers can say of any statistic; not who pays, whose rows they are, and how long it may run.

The key is a header, as for questions.
"""
LISTED_MAX: Final = 100_000
"""How many keys can be listed, however few numbers are shown."""

_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@router.post(
    "/statistics",
    response_model=AnswerGiven,
    responses={202: {"model": Accepted, "description": "It takes longer; look for the answer under the job."}},
)
async def ask(who: Who, statistic: StatisticAsked, key: Key = None) -> Response:
    """Compute a statistic of one table privately, and charge it to the budget of its data set.

    The same statistic again is answered from what was released, at no cost.
    """
    server = who.server
    (work, class_s), same = await who.planned(lambda: (_planned(who, statistic, key), sameness(who, statistic)))
    limits = server.settings.limits
    wait_s = limits.wait_s if statistic.wait_s is None else min(statistic.wait_s, limits.wait_s)
    found = await server.jobs.answered(who.name, work, class_s, wait_s, same)
    if isinstance(found, str):
        return Response(json.dumps({"job": found}), 202, {"Location": f"/v1/jobs/{found}"}, "application/json")
    server.metrics.released.labels("yes" if found["permit"] else "no").inc()
    return Response(json.dumps(found, allow_nan=False), 200, None, "application/json")


def _planned(who: Caller, statistic: StatisticAsked, key: str | None) -> tuple[Callable[[], dict[str, Any]], float]:
    """Plan a statistic, and return what is still to be done and in which class of time; nothing is charged."""
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
    arguments = {name: _read(who, value, datasets) for name, value in statistic.arguments.items()}
    if not datasets:
        raise InvalidInput(
            'a statistic is about columns of a table: {"table": "visits", "column": "age"}', name="arguments"
        )
    analyst = who.payer(datasets)
    if analyst is not None:
        arguments["analyst"] = analyst
    limits = who.server.settings.limits
    arguments |= {"key": own_key(who, key), "timeout_s": limits.question_s}

    planned = PlannedStatistic.of(function, arguments)
    _require_shown(planned.plan, limits.rows)

    def work() -> dict[str, Any]:
        return _document(planned.release(), statistic.level, remaining(who, datasets))

    each_s = who.step_s([planned.table.table.name])
    return work, class_of_statistic(planned, who.server.settings.timing_class_s, each_s)


def _require_shown(plan: Plan, rows_max: int) -> None:
    """Raise TooWide if the answer could have more numbers than the server shows, or more bytes than are answered."""
    if plan.numbers > rows_max:
        raise TooWide(
            f"the answer has up to {plan.numbers:,} numbers, and the server shows {rows_max:,}",
            accepted="ask for fewer or coarser cells",
        )
    require_keepable(plan.keys_bytes + 3 * REAL_BYTES * plan.numbers)  # each number, and the ends of its interval


def _check_given(function: Callable[..., Any], statistic: StatisticAsked) -> None:
    for name, one in inspect.signature(function).parameters.items():
        is_needed = one.default is one.empty and one.kind in _NAMED
        if is_needed and name not in statistic.arguments:
            raise InvalidInput(f"{statistic.function} needs its argument {name}", name=name)


def _read(who: Caller, value: Any, datasets: dict[str, None], depth: int = 0) -> Any:
    """Return an argument: columns of tables that the caller may ask about, otherwise what was written."""
    most = max(who.server.settings.limits.rows, LISTED_MAX) + 1  # the edges of as many cells as an answer can show
    if depth > DEPTH_MAX or (isinstance(value, list | dict) and len(value) > most):
        raise TooLarge(f"a value is nested {DEPTH_MAX} deep at most, and has at most {most:,} parts", name="arguments")
    match value:
        case {"table": str() as name, "column": str() as column, **rest} if not rest:
            table = who.table(name, Action.QUESTION_ASK)
            datasets[table.dataset] = None
            return PlanningTable(who.server.curator.table(table.name))[column]
        case dict() if "date" not in value and "time" not in value:
            return {key: _read(who, one, datasets, depth + 1) for key, one in value.items()}
        case list():
            return [_read(who, one, datasets, depth + 1) for one in value]
    return read(value)


def _document(answer: stats.Answer, level: float, left: dict[str, Cost]) -> dict[str, Any]:
    """Return the answer of a statistic as it goes over the wire."""
    keys = answer.keys
    span = answer.interval(level)
    facts: dict[str, Any] = {}
    if isinstance(answer, stats.TestAnswer):
        facts = {"pvalue": answer.pvalue, "statistic": answer.statistic, "estimate": answer.estimate}
    return {
        "label": answer.label,
        "value": written(answer.value),
        "keys": None if keys is None else written(keys),
        "key_names": list(answer.key_names),
        "interval": None if span is None else [written(end) for end in span],
        "level": level,
        "facts": written(facts),
        "picture": answer.plan.picture,
        "cost": cost_to_dict(answer.cost),
        "remaining": {name: cost_to_dict(cost) for name, cost in left.items()},
        "permit": answer.permit.id if answer.permit is not None else None,
        "warnings": list(answer.warnings),
        "card": answer.card,
        "simulated": answer.simulated,
    }
