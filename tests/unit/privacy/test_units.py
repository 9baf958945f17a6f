"""Units: whom the guarantee protects, and how a table leads to them."""

import pytest

from tacit.privacy import ForeignKey, Unit
from tacit.privacy.errors import EmptyInput


def test_a_unit_without_foreign_keys_is_in_the_table_itself() -> None:
    assert Unit("patient_id").is_direct


def test_a_unit_behind_a_foreign_key_is_not_in_the_table_itself() -> None:
    key = ForeignKey("visit_id", "visits", "id")
    assert not Unit("patient_id", through=(key,)).is_direct


def test_a_unit_without_a_column_is_refused() -> None:
    with pytest.raises(EmptyInput, match="whom the guarantee protects"):
        Unit("")


@pytest.mark.parametrize("names", [("", "visits", "id"), ("visit_id", "", "id"), ("visit_id", "visits", "")])
def test_a_foreign_key_with_a_missing_name_is_refused(names: tuple[str, str, str]) -> None:
    with pytest.raises(EmptyInput):
        ForeignKey(*names)
