"""The requests of the matrix, each with what it is about, made anew for every caller."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tacit.accounting.conversions import Cost
from tacit.attack import Claim, Finding, Verdict
from tacit.attack.finding import ThreatModel
from tacit.learn import LinearRegression
from tacit.privacy import events
from tacit.server.access import Grant, Role
from tacit.wire.responses import ReleaseResponse
from tests.unit.server.clinic import NOBODY, PASSWORD, PEOPLE, Clinic

ABSENT: Final = "nowhere"
FILES: Final = {"visits": ("patient_id", "value"), "labs": ("patient_id", "value"), "secret": ("person", "score")}
_COUNT: Final = itertools.count(1)


def finding_of(permit: str = "", **facts: Any) -> Finding:
    """Return a small finding whose claim names a permit."""
    threat = ThreatModel("counts of subsets", "who the people are", 7)
    claimed = Claim(1.0, permit=permit)
    return Finding("averaging", "", threat, (), Verdict.VIOLATES, "", claimed=claimed, lower_bound=2.0, **facts)


@dataclass(frozen=True)
class Call:
    """A request, and the name in it of what it is about."""

    method: str
    path: str
    body: dict[str, Any] | None = None
    target: str = ""

    def about_nothing(self) -> Call:
        """Return the same request about what is not there."""
        path, body = self.path.replace(self.target, ABSENT), self.body
        if path == self.path:
            body = json.loads(json.dumps(body).replace(self.target, ABSENT))
        return Call(self.method, path, body, ABSENT)


class World:
    """What requests are about."""

    def __init__(self, clinic: Clinic) -> None:
        self.clinic = clinic
        self.server = clinic.app.state.server
        clinic.curator.set_budget("periods", 1.0, 1e-7, per_epoch=True)
        for name, (unit, value) in FILES.items():
            lines = "".join(f"{row // 2},{row % 7},{'FM'[row % 2]}\n" for row in range(20))
            (clinic.folder / f"{name}.csv").write_text(f"{unit},{value},sex\n{lines}")

    def call(self, request: str, who: str) -> Call:
        """Return one request of the matrix as somebody makes it."""
        method, path, *what = request.split(" ", 2)
        make = next((make for prefix, make in MAKERS if path.startswith(prefix)), _plain)
        return make(self, who, method, path, what[0] if what else "")

    def person(self) -> str:
        name = f"person{next(_COUNT)}"
        self.clinic.access.people.add(name)
        self.clinic.access.people.grant(name, Grant(Role.ANALYST, "visits"))
        return name

    def whose(self, what: str, who: str) -> str:
        """Whose a resource is: the caller's own, or somebody's who is there for that alone."""
        return who if what.startswith("own") and who != NOBODY else self.person()

    def release(self, person: str) -> str:
        """Keep an answer about visits in somebody's name, and return its permit."""
        asked = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.01}
        document = self.clinic.call("owner", "POST", "/v1/queries", json=asked).json()
        permit = f"permit-{next(_COUNT)}"
        answer = ReleaseResponse.model_validate(document | {"permit": permit, "permits": [permit]})
        self.server.releases.put(person, answer)
        return permit

    def job(self, person: str) -> str:
        """Store a job about visits in somebody's name, and return its id."""
        job = f"{next(_COUNT):024x}"
        columns = "id, person, process, state, asked_at_us, changed_at_us, expected_s, is_cancelled, document, datasets"
        row = (job, person, "elsewhere", "done", 10**15, 10**15, 0.1, 0, None, '["visits"]')
        places = ", ".join("?" * len(row))
        self.server.database.write((f"INSERT INTO jobs ({columns}) VALUES ({places})", row))
        return job

    def model(self, person: str) -> str:
        """Train a model of visits in somebody's name, and return its id."""
        ledger, asked = self.clinic.curator.ledger, training("age", "visits")
        if person not in PEOPLE:
            ledger.create_caps(person, {"visits": ledger.budget("visits", analyst="known").cap})
        made = LinearRegression(epsilon=asked["epsilon"], **asked["parameters"])
        return str(self.clinic.curator.train("visits", made, ["sex"], "age", analyst=person).model_id)

    def request(self, person: str) -> str:
        ledger = self.clinic.curator.ledger
        for old in ledger.requests(only_open=True):  # not more may wait than a few
            ledger.decide(old, False, "somebody else")
        return ledger.file_request(person, "visits", Cost(0.01, 0.0, float("inf")), "more of them").id

    def finding(self, dataset: str) -> str:
        """Keep a finding about a data set, and return its id."""
        return self.clinic.curator.keep_finding(finding_of(), dataset, by="somebody").id

    def table(self, dataset: str) -> str:
        """Return a table of a data set that nobody needs."""
        name = f"extra_{dataset}"
        if name not in self.clinic.curator.catalog.tables:
            unit = FILES[dataset][0]
            self.clinic.curator.add_table(name, f"{dataset}.csv", unit=unit, dataset=dataset)
        return name


Maker = Callable[[World, str, str, str, str], Call]


def _plain(_world: World, _who: str, method: str, path: str, what: str) -> Call:
    return Call(method, f"{path}?answers=true" if what == "with answers" else path)


def _login(_world: World, who: str, method: str, path: str, _what: str) -> Call:
    return Call(method, path, {"name": "known" if who == NOBODY else who, "password": PASSWORD})


def _people(world: World, who: str, method: str, path: str, what: str) -> Call:
    if path == "/v1/people":
        return Call(method, path, {"name": f"new{next(_COUNT)}"} if method == "POST" else None)
    name = ABSENT if what == "missing" else world.whose(what, who)
    grant: dict[str, Any] = {"role": "curator", "dataset": "secret"}
    if path.endswith("grants") and what == "own" and who == "owner":
        grant = {"role": "analyst", "dataset": "spare"}  # one that gives an owner nothing
    if path.endswith("grants") and method == "DELETE" and name not in PEOPLE:
        world.clinic.access.people.grant(name, Grant(Role.ANALYST, "spare"))
        grant = {"role": "analyst", "dataset": "spare"}
    return Call(method, path.format(name=name), grant if path.endswith("grants") else None, name)


def _tokens(world: World, who: str, method: str, path: str, what: str) -> Call:
    if path == "/v1/tokens":
        if method == "GET":
            return Call(method, path)
        name = world.whose(what, who)
        return Call(method, path, {"person": name, "label": "new", "days": 1}, name)
    made = ABSENT if what == "missing" else world.clinic.access.tokens.create(world.whose(what, who), days=1).id
    return Call(method, path.format(token_id=made), None, made)


def _tables(world: World, _who: str, method: str, path: str, what: str) -> Call:
    if method == "GET":
        return Call(method, path.format(name=what), None, what)
    place, _, name = what.partition(" ")
    if method == "DELETE" or path.endswith("/refresh"):
        name = world.table(name)
        return Call(method, path.format(name=name), None, name)
    is_new = place == "on"
    dataset = "visits" if name == "labs" else name
    unit, value = FILES[name]
    table = f"new_{next(_COUNT)}" if is_new else name
    body = {
        "name": table,
        "source": f"{name}.csv",
        "unit": unit,
        "dataset": dataset,
        "columns": {value: {"bounds": [0, 10]}, "sex": {"categories": ["F", "M"]}},
        "replace": not is_new,
    }
    return Call(method, path, body, table)


def _budgets(_world: World, _who: str, method: str, path: str, what: str) -> Call:
    if path == "/v1/budgets":
        if method == "GET":
            return Call(method, path)
        name = f"data{next(_COUNT)}" if what == "of a new one" else what.removeprefix("of ")
        if what != "of a new one":  # what nothing was charged to can be replaced
            _world.clinic.curator.ledger.reserve(name, events.Laplace(1e-6))
        return Call(method, path, {"dataset": name, "epsilon": 1.0, "delta": 1e-7}, name)
    if what == "own cap on visits":
        return Call(method, f"{path.format(dataset='visits')}?analyst={_who}", None, _who)
    if what == "another's cap":
        name = _world.person()
        _world.clinic.curator.ledger.create_caps(name, {"visits": _world.clinic.curator.budget("visits", "known").cap})
        return Call(method, f"{path.format(dataset='visits')}?analyst={name}", None, name)
    name = f"{what}{next(_COUNT)}" if path.endswith("epochs") else f"group{next(_COUNT)}"
    bodies = {"analysts": {"name": name, "epsilon": 1.0}, "epochs": {"name": name, "epsilon": 0.1}}
    if what == "visits":  # an epoch would be one of all later questions about visits: this one ends before it begins
        bodies["epochs"] = {"name": name, "starts": "2025-02-01", "ends": "2025-01-01"}
    return Call(method, path.format(dataset=what), bodies.get(path.rpartition("/")[2]), what)


def _questions(world: World, _who: str, method: str, path: str, what: str) -> Call:
    epsilon = 0.01 + next(_COUNT) * 1e-6
    if path.startswith("/v1/statistics"):
        column = "age" if what == "visits" else FILES[what][1]
        values = {"table": what, "column": column}
        arguments = {"values": values, "epsilon": epsilon, "rows_per_unit": 2}
        return Call(method, path, {"function": "mean", "arguments": arguments}, what)
    if what == "asked before":
        body = {"sql": "SELECT COUNT(*) AS n FROM secret", "epsilon": 0.02}
        assert world.clinic.call("owner", "POST", path, json=body).status_code == 200
        return Call(method, path, body, "secret")
    first, _, second = what.partition(" and ")
    sql = f"SELECT COUNT(*) AS n FROM {first}"
    if second:
        sql += f" JOIN {second} ON {first}.patient_id = {second}.person"
    return Call(method, path, {"sql": sql, "epsilon": epsilon}, "" if second else first)


def _models(world: World, who: str, method: str, path: str, what: str) -> Call:
    if method == "GET" and not what:
        return Call(method, path)
    if "{model}" in path:
        made = ABSENT if what == "missing" else world.model(world.whose(what, who))
        body = {"columns": {"sex": ["F", "M"]}} if path.endswith("predictions") else None
        return Call(method, path.format(model=made), body, made)
    return Call(method, path, training("age" if what == "visits" else FILES[what][1], what), what)


def training(target: str, table: str) -> dict[str, Any]:
    """Return the request of a small training that was not made before."""
    facts = {"estimator": "LinearRegression", "parameters": {"rows_per_unit": 2}, "features": ["sex"]}
    return {"table": table, "target": target, "epsilon": 0.01 + next(_COUNT) * 1e-6, **facts}


def _requests(world: World, who: str, method: str, path: str, what: str) -> Call:
    if path == "/v1/requests":
        name = what.removeprefix("on ")
        body = {"dataset": name, "epsilon": 0.01, "reason": "more of them"}
        return Call(method, path, body if method == "POST" else None, name)
    analyst = who if what == "own" and who != NOBODY else "somebody"
    made = ABSENT if what == "missing" else world.request(analyst)
    return Call(method, path.format(request=made), {"granted": True}, made)


def _findings(world: World, _who: str, method: str, path: str, what: str) -> Call:
    if method == "GET":
        made = ABSENT if what in ("missing", "") else world.finding(what)
        return Call(method, path.format(finding=made), None, made)
    name = what.rpartition(" ")[2]
    if what.startswith("on "):
        return Call(method, path, {"dataset": name, "finding": finding_of().to_dict()}, name)
    is_missing = what == "for a missing permit"
    permit = ABSENT if is_missing else world.clinic.curator.ledger.reserve(name, events.Laplace(1e-6)).id
    return Call(method, path, {"finding": finding_of(permit).to_dict()}, permit)


def _releases(world: World, who: str, method: str, path: str, what: str) -> Call:
    made = ABSENT if what == "missing" or path == "/v1/releases" else world.release(world.whose(what, who))
    return Call(method, path.format(permit=made), None, made)


def _jobs(world: World, who: str, method: str, path: str, what: str) -> Call:
    made = ABSENT if what == "missing" or path == "/v1/jobs" else world.job(world.whose(what, who))
    return Call(method, path.format(job=made), None, made)


MAKERS: Final[tuple[tuple[str, Maker], ...]] = (
    ("/v1/login", _login),
    ("/v1/people", _people),
    ("/v1/tokens", _tokens),
    ("/v1/tables", _tables),
    ("/v1/budgets", _budgets),
    ("/v1/preview", _questions),
    ("/v1/explain", _questions),
    ("/v1/queries", _questions),
    ("/v1/statistics", _questions),
    ("/v1/models", _models),
    ("/v1/requests", _requests),
    ("/v1/findings", _findings),
    ("/v1/releases", _releases),
    ("/v1/jobs", _jobs),
)
