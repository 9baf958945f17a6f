"""The place of `clinic.py`, once for a module of tests, with its application running; tests leave it as it is."""

from collections.abc import Iterator

import pytest

from tests.unit.server import clinic
from tests.unit.server.clinic import Clinic


@pytest.fixture(scope="module")
def clinic_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    made = clinic.make(tmp_path_factory.mktemp("clinic"))
    with made.client:
        yield made
    made.close()
