"""Requests are strict, responses are read with unknown fields left out, and both are the same on either side."""

from __future__ import annotations

import inspect
import math
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from tacit.accounting import Cost
from tacit.privacy.errors import InvalidInput
from tacit.wire import requests, responses
from tacit.wire.requests import QueryRequest, RequestModel
from tacit.wire.responses import CostResponse, LoginResponse, ResponseModel


def models(module: object, base: type) -> list[type]:
    return [one for _, one in inspect.getmembers(module, inspect.isclass) if issubclass(one, base) and one is not base]


@pytest.mark.parametrize("model", models(requests, RequestModel), ids=lambda one: one.__name__)
def test_a_request_refuses_fields_that_it_does_not_have(model: type[RequestModel]) -> None:
    with pytest.raises(ValidationError) as caught:
        model.model_validate({"from_the_future": 1})
    assert "extra_forbidden" in {one["type"] for one in caught.value.errors()}


@pytest.mark.parametrize("model", models(responses, ResponseModel), ids=lambda one: one.__name__)
def test_a_response_is_read_with_fields_that_it_does_not_have_left_out(model: type[ResponseModel]) -> None:
    with pytest.raises(ValidationError) as caught:
        model.model_validate({"from_the_future": 1})
    assert {one["type"] for one in caught.value.errors()} == {"missing"}


def test_a_request_that_is_wrong_in_form_names_the_field_and_not_its_value() -> None:
    with pytest.raises(InvalidInput, match="epsilon: input should be greater than 0") as caught:
        QueryRequest.of(sql="SELECT 1", epsilon=-0.123)
    assert caught.value.name == "epsilon"
    assert "0.123" not in caught.value.message
    assert caught.value.__context__ is None


def test_only_what_is_stated_is_sent() -> None:
    request = QueryRequest.of(sql="SELECT 1", epsilon=0.5, rho=None)
    assert request.model_dump(exclude_unset=True) == {"sql": "SELECT 1", "epsilon": 0.5}


def test_an_infinite_cost_is_null_on_the_wire() -> None:
    written = CostResponse.of(Cost(0.5, 0.0, math.inf))
    assert written.model_dump() == {"epsilon": 0.5, "delta": 0.0, "rho": None}
    assert written.cost == Cost(0.5, 0.0, math.inf)


def test_moments_are_iso_texts_on_the_wire() -> None:
    at = datetime(2024, 1, 31, 12, 0, 0, 5, tzinfo=UTC)
    written = LoginResponse(name="ana", csrf="x", expires_at=at).model_dump()
    assert written["expires_at"] == "2024-01-31T12:00:00.000005+00:00"
    assert LoginResponse.model_validate(written).expires_at == at
