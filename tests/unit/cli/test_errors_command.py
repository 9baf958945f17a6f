"""`tacit errors`: the whole tree, for people and for programs."""

import csv
import json

import pytest

from tacit.cli.app import run
from tacit.privacy import errors


def test_every_error_is_listed_in_the_order_of_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["errors"]) == 0
    header, *rows = csv.reader(capsys.readouterr().out.splitlines())
    assert header == ["code", "error", "exit code", "meaning"]
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.TacitError)]
    assert [row[0] for row in rows] == sorted(kind.code for kind in kinds)
    assert ["T300", "BudgetExceeded", "3", errors.BudgetExceeded.__doc__] in rows


def test_with_json_every_error_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["errors", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["errors"]
    assert {
        "code": "T101",
        "name": "NotPositive",
        "parent": "InvalidInput",
        "exit_code": 2,
        "meaning": errors.NotPositive.__doc__,
    } in listed
