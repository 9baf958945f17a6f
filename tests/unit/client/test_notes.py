"""What the embedded curator says about an answer, and how more budget is asked for, over REST."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tacit
from tests.unit.client.serving import Place, served

CLAMPED = "values of age below 0 or above 120 count as 0 or 120; intervals do not include the effect of this"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with served(tmp_path_factory.mktemp("notes") / "clinic") as found:
        yield found


def test_clamping_is_said_by_previews_cards_and_coverage(place: Place) -> None:
    with place.client("ana") as client:
        sql, age = "SELECT AVG(age) AS a FROM visits", client.table("visits")["age"]
        assert CLAMPED in [line.text for line in client.preview(sql, 0.5).lines]
        assert CLAMPED[1:] in client.sql(sql, 0.5).card
        answer = client.stats.mean(age, epsilon=0.5)
        assert answer.coverage == (CLAMPED,)
        assert "Rows without a value of patient are left out." in answer.card
        assert CLAMPED in [line.text for line in client.stats.previews.mean(age, epsilon=0.5).lines]


def test_a_refused_analyst_is_told_how_to_ask_for_more_and_can(place: Place) -> None:
    with place.client("ben") as ben, place.client("olga") as olga:
        with pytest.raises(
            tacit.BudgetExceeded,
            match=r"tacit budget request visits --epsilon E --reason TEXT, or client\.file_request",
        ):
            ben.sql("SELECT COUNT(*) FROM visits", 0.7)
        filed = ben.file_request("visits", epsilon=0.25, reason="more")
        assert filed.cost.epsilon == 0.25
        with pytest.raises(tacit.TacitError, match="or a Cost or Budget"):
            ben.file_request("visits", reason="more")
        assert olga.decide(filed, True).state == "granted"


def test_a_body_without_a_content_type_is_told_which_one(place: Place) -> None:
    body, token = b'{"sql": "SELECT COUNT(*) FROM visits", "epsilon": 0.1}', place.tokens["ana"]
    response = place.http.post("/v1/preview", content=body, headers={"Authorization": f"Bearer {token}"})
    assert response.status_code == 400
    assert response.json()["error"]["message"] == "send Content-Type: application/json"
