"""Findings over REST: kept without people, hidden like absent ones, refused if malformed or too large."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tacit.attack import Finding
from tacit.ledger.record_fields import DOCUMENT_BYTES_MAX
from tacit.privacy import events
from tests.unit.server.cases import finding_of
from tests.unit.server.clinic import Clinic


def post(place: Clinic, who: str, finding: dict[str, Any], **body: Any) -> Any:
    headers = {"Content-Type": "application/json"}
    return place.call(who, "POST", "/v1/findings", content=json.dumps({"finding": finding, **body}), headers=headers)


def test_a_finding_is_kept_without_people_beside_its_permit_in_the_name_of_the_caller(clinic_place: Clinic) -> None:
    permit = clinic_place.curator.ledger.reserve("visits", events.Laplace(0.01)).id
    told = finding_of(permit, worst=({"person": "person-7731"},), details={"refusal": "person-7731", "people": 3})
    made = post(clinic_place, "auditor.visits", told.to_dict())
    assert made.status_code == 201, made.text
    assert (made.json()["by"], made.json()["permit"], made.json()["dataset"]) == ("auditor.visits", permit, "visits")
    assert Finding.from_dict(made.json()["document"]) == told.without_people()
    assert clinic_place.call("owner", "GET", f"/v1/findings/{made.json()['id']}").json() == made.json()
    assert clinic_place.call("curator.visits", "GET", f"/v1/findings?permit={permit}").json() == [made.json()]
    assert clinic_place.call("curator.secret", "GET", f"/v1/findings?permit={permit}").json() == []
    assert "person-7731" not in "".join(clinic_place.curator.ledger.export_lines())


def test_the_list_shows_what_the_caller_may_see_in_pages(clinic_place: Clinic) -> None:
    ids = {name: [clinic_place.curator.keep_finding(finding_of(), name, by="olga").id for _ in range(3)]
           for name in ("visits", "secret")}  # fmt: skip

    def listed(who: str, query: str) -> list[Any]:
        found: list[Any] = clinic_place.call(who, "GET", f"/v1/findings?{query}").json()
        return found

    assert [one["id"] for one in listed("auditor.secret", "")][-3:] == ids["secret"]
    assert {one["dataset"] for one in listed("auditor.secret", "")} == {"secret"}
    refused = [clinic_place.call("auditor.secret", "GET", f"/v1/findings?dataset={one}") for one in ("visits", "none")]
    assert [one.status_code for one in refused] == [404, 404]
    assert refused[0].text.replace("visits", "none") == refused[1].text, (
        "a hidden data set is refused like an absent one"
    )
    assert listed("curator.labs", "") == []
    assert [one["id"] for one in listed("owner", "dataset=visits")][-3:] == ids["visits"]
    *_, first, _, _ = listed("owner", "dataset=secret")
    page = listed("owner", f"dataset=secret&first={first['record'] + 1}&limit=1")
    assert [one["id"] for one in page] == ids["secret"][1:2]
    assert clinic_place.call("owner", "GET", "/v1/findings?limit=101").status_code == 400


GOOD = finding_of().to_dict()


@pytest.mark.parametrize(
    ("finding", "code"),
    [
        (GOOD | {"schema_version": 2}, "T100"),
        ({}, "T100"),
        (GOOD | {"verdict": "safe"}, "T100"),
        (GOOD | {"confidence": "much"}, "T100"),
        (GOOD | {"another": 1}, "T100"),
        (GOOD | {"reason": "x" * DOCUMENT_BYTES_MAX}, "T106"),
        (GOOD | {"reason": "\ud800"}, "T100"),
        (GOOD | {"attack": "\x1b]0;title\x07"}, "T100"),
        (GOOD | {"lower_bound": 10**400}, "T100"),
    ],
    ids=range(9),
)
def test_a_malformed_or_oversized_finding_is_refused_and_nothing_is_kept(
    clinic_place: Clinic, finding: dict[str, Any], code: str
) -> None:
    before = clinic_place.curator.ledger.head()
    refused = post(clinic_place, "owner", finding, dataset="visits")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, code)
    assert clinic_place.curator.ledger.head() == before


def test_a_body_that_is_nested_too_deeply_or_too_large_is_refused(clinic_place: Clinic) -> None:
    deep: dict[str, Any] = {}
    for _ in range(40):
        deep = {"x": deep}
    assert post(clinic_place, "owner", GOOD | {"details": deep}, dataset="visits").json()["error"]["code"] == "T106"
    large = post(clinic_place, "owner", GOOD | {"reason": "x" * 2**20}, dataset="visits")
    assert (large.status_code, large.json()["error"]["code"]) == (413, "T701")


def test_a_finding_without_permit_and_data_set_and_one_of_two_data_sets_are_refused(clinic_place: Clinic) -> None:
    assert post(clinic_place, "owner", GOOD).json()["error"]["code"] == "T105"
    permit = clinic_place.curator.ledger.reserve("secret", events.Laplace(0.01)).id
    texts = []
    for named in (permit, "9-nowhere"):
        refused = post(clinic_place, "curator.visits", finding_of(named).to_dict(), dataset="visits")
        assert refused.status_code == 404
        texts.append(refused.text.replace(named, "it"))
    assert texts[0] == texts[1], "a permit of a hidden data set is refused like one that does not exist"
