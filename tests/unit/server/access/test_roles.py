"""The table of roles: exactly what the contract says, and narrowing that never widens."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.privacy.errors import EmptyInput, InvalidInput
from tacit.server.access import Action, Actor, Grant, Resource, Role, TokenLimit, may
from tacit.server.access.roles import RULES, GrantScope

TABLE = """
catalog.read      x x x x
catalog.write     x x - -
budget.read       x x x x
budget.write      x x - -
question.preview  x x x -
question.ask      x x x -
request.file      - - x -
request.read      x x o x
request.decide    x x - -
release.read      x x o -
finding.read      x x - x
finding.write     x x - x
ledger.read       x - - x
ledger.export     x - - -
audit.read        x - - x
people.read       x - - -
people.write      x - - -
token.read        x o o o
token.write       x o o o
job.read          x o o -
job.cancel        x o o -
metrics.read      x - - x
server.read       x x x x
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]
EVERYTHING = ("ledger.read", "ledger.export", "audit.read", "people.read", "people.write", "metrics.read")
SOMEBODYS = ("request.read", "request.decide", "release.read", "token.read", "token.write", "job.read", "job.cancel")


def test_the_table_has_every_action() -> None:
    assert [row[0] for row in ROWS] == [str(action) for action in Action] == [str(action) for action in RULES]


@pytest.mark.parametrize(
    ("action", "role", "cell"),
    [(row[0], role, cell) for row in ROWS for role, cell in zip(Role, row[1:], strict=True)],
)
def test_every_cell_of_the_table_is_what_was_agreed(action: str, role: Role, cell: str) -> None:
    ana = Actor("ana", (Grant(role),))
    others = Resource("visits", "visits", "bob" if action in SOMEBODYS else None)
    own = Resource("visits", "visits", "ana")
    assert may(ana, Action(action), others) == (cell == "x")
    assert may(ana, Action(action), own) == (cell in "xo" and action != "request.decide")


@pytest.mark.parametrize(("role", "action"), list(itertools.product(Role, Action)))
def test_a_role_on_one_data_set_is_nothing_on_another_and_nothing_on_everything(role: Role, action: Action) -> None:
    if role is Role.OWNER or action is Action.SERVER_READ:
        return
    ana = Actor("ana", (Grant(role, "visits"),))
    assert not may(ana, action, Resource("salaries", "salaries", "bob"))
    assert not may(ana, action, Resource("salaries"))
    if RULES[action].kind is not GrantScope.PERSON:
        assert not may(ana, action, Resource())
        assert not may(ana, action, Resource("salaries", person="ana"))
    if action in EVERYTHING:
        assert not may(ana, action, Resource("visits"))


def test_a_data_set_covers_its_tables_and_a_table_does_not_cover_its_data_set() -> None:
    whole, part = (Actor("ana", (Grant(Role.CURATOR, "clinic", table),)) for table in (None, "visits"))
    assert may(whole, Action.CATALOG_WRITE, Resource("clinic", "visits"))
    assert may(whole, Action.BUDGET_WRITE, Resource("clinic"))
    assert may(part, Action.CATALOG_WRITE, Resource("clinic", "visits"))
    assert not may(part, Action.CATALOG_WRITE, Resource("clinic", "drugs"))
    assert not may(part, Action.CATALOG_WRITE, Resource("other", "visits"))
    assert not may(part, Action.BUDGET_WRITE, Resource("clinic"))
    assert not may(part, Action.REQUEST_DECIDE, Resource("clinic", person="bob"))


def test_a_grant_on_a_table_shows_what_is_left_of_the_data_set_and_only_ones_own_answers() -> None:
    for role in (Role.CURATOR, Role.ANALYST):
        part = Actor("ana", (Grant(role, "clinic", "visits"),))
        assert may(part, Action.BUDGET_READ, Resource("clinic"))
        assert not may(part, Action.BUDGET_READ, Resource("clinic", person="bob"))
        assert may(part, Action.RELEASE_READ, Resource("clinic", person="ana"))
        assert not may(part, Action.RELEASE_READ, Resource("clinic", person="bob"))
        assert not may(part, Action.RELEASE_READ, Resource("clinic"))
    assert may(Actor("ana", (Grant(Role.ANALYST, "clinic", "visits"),)), Action.REQUEST_FILE, Resource("clinic"))


def test_an_analyst_sees_the_own_cap_and_what_is_left_but_nobody_elses_cap() -> None:
    bob = Actor("bob", (Grant(Role.ANALYST, "visits"),))
    assert may(bob, Action.BUDGET_READ, Resource("visits"))
    assert may(bob, Action.BUDGET_READ, Resource("visits", person="bob"))
    assert not may(bob, Action.BUDGET_READ, Resource("visits", person="eve"))


def test_nobody_decides_their_own_request_not_even_an_owner_nor_one_whose_filer_is_not_known() -> None:
    ana = Actor("ana", (Grant(Role.OWNER),))
    assert may(ana, Action.REQUEST_DECIDE, Resource("visits", person="bob"))
    assert not may(ana, Action.REQUEST_DECIDE, Resource("visits", person="ana"))
    assert not may(ana, Action.REQUEST_DECIDE, Resource("visits"))


def test_somebody_without_grants_may_ask_who_they_are_and_nothing_else() -> None:
    new = Actor("new")
    allowed = [action for action in Action if may(new, action, Resource("visits", "visits", "new"))]
    assert allowed == [Action.SERVER_READ]


def test_a_narrowed_token_of_an_owner_does_what_the_role_does_on_that_data_set() -> None:
    token = Actor("ana", (Grant(Role.OWNER),), "0" * 12, limit=TokenLimit(Role.ANALYST, "visits"))
    assert may(token, Action.QUESTION_ASK, Resource("visits", "visits"))
    assert not may(token, Action.QUESTION_ASK, Resource("salaries", "salaries"))
    assert not may(token, Action.PEOPLE_WRITE, Resource())
    assert not may(token, Action.REQUEST_FILE, Resource("visits")), "an owner may not file, so no token of one may"
    assert not may(token, Action.JOB_READ, Resource(person="bob"))
    for action in (Action.JOB_READ, Action.JOB_CANCEL):
        assert may(token, action, Resource("visits", person="ana"))
        assert not may(token, action, Resource("visits", person="bob"))
        assert not may(token, action, Resource("salaries", person="ana"))
        assert not may(token, action, Resource(person="ana")), "a job whose data sets are unknown"


def test_a_narrowed_token_makes_no_tokens_since_those_could_be_wider() -> None:
    for limit in (TokenLimit(Role.OWNER), TokenLimit(None, "visits")):
        token = Actor("ana", (Grant(Role.OWNER),), "0" * 12, limit=limit)
        assert not may(token, Action.TOKEN_WRITE, Resource(person="ana"))
    assert may(Actor("ana", (Grant(Role.OWNER),), "0" * 12), Action.TOKEN_WRITE, Resource(person="bob"))


names = st.sampled_from(["visits", "salaries"])
tables = st.one_of(st.none(), st.sampled_from(["a", "b"]))
grants = st.one_of(
    st.just(Grant(Role.OWNER)),
    st.builds(Grant, st.sampled_from([Role.CURATOR, Role.ANALYST, Role.AUDITOR]), st.one_of(st.none(), names)),
    st.builds(Grant, st.sampled_from([Role.CURATOR, Role.ANALYST, Role.AUDITOR]), names, tables),
)
limits = st.builds(TokenLimit, st.one_of(st.none(), st.sampled_from(Role)), st.one_of(st.none(), names))
resources = st.builds(Resource, st.one_of(st.none(), names), tables, st.sampled_from([None, "ana", "bob"]))


@given(st.lists(grants, max_size=3), limits, st.sampled_from(Action), resources)
def test_a_token_may_never_do_what_its_person_may_not(
    given_: list[Grant], limit: TokenLimit, action: Action, resource: Resource
) -> None:
    person, token = Actor("ana", tuple(given_)), Actor("ana", tuple(given_), "0" * 12, limit=limit)
    assert may(person, action, resource) >= may(token, action, resource)


@given(st.lists(grants, max_size=2), grants, st.sampled_from(Action), resources)
def test_a_further_grant_never_takes_a_right_away(
    given_: list[Grant], further: Grant, action: Action, resource: Resource
) -> None:
    before, after = Actor("ana", tuple(given_)), Actor("ana", (*given_, further))
    assert may(after, action, resource) >= may(before, action, resource)


def test_grants_that_mean_nothing_are_refused() -> None:
    with pytest.raises(InvalidInput, match="the role owner cannot be limited"):
        Grant(Role.OWNER, "visits")
    with pytest.raises(InvalidInput, match="also needs its data set"):
        Grant(Role.ANALYST, None, "visits")
    with pytest.raises(EmptyInput):
        Grant(Role.ANALYST, "")
