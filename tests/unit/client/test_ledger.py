"""A copy of a server's ledger is whole, or there is none."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tacit.privacy.errors import InvalidInput, NameTaken, NotPermitted, ServerUnreachable
from tests.unit.client.contract import Served, in_order, refused

FIRST = b'{"format":"tacit-ledger","version":1}\n'
LAST = b'{"answers":0,"records":0}\n'


def test_an_export_is_written_as_it_came(tmp_path: Path) -> None:
    served = Served(in_order(httpx.Response(200, content=FIRST + LAST)))
    assert served.client.ledger.export(tmp_path / "ledger.jsonl").read_bytes() == FIRST + LAST
    assert served.requests[0].url.query == b"answers=false"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (httpx.Response(200, content=FIRST), ServerUnreachable),
        (httpx.Response(200, content=b""), ServerUnreachable),
        (httpx.ReadError("cut off"), ServerUnreachable),
        (refused("T400", 403), NotPermitted),
    ],
)
def test_an_export_that_was_cut_off_leaves_no_half_of_a_file(
    tmp_path: Path, answer: httpx.Response | Exception, error: type[Exception]
) -> None:
    with pytest.raises(error):
        Served(in_order(answer)).client.ledger.export(tmp_path / "ledger.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_an_export_is_a_new_file(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").write_text("the old one", encoding="ascii")
    served = Served(in_order(httpx.Response(200, content=FIRST + LAST)))
    with pytest.raises(NameTaken, match="name a new file"):
        served.client.ledger.export(tmp_path / "ledger.jsonl")
    assert (tmp_path / "ledger.jsonl").read_text(encoding="ascii") == "the old one"
    with pytest.raises(InvalidInput, match="there is no folder"):
        served.client.ledger.export(tmp_path / "nowhere" / "ledger.jsonl")
    assert not served.requests
