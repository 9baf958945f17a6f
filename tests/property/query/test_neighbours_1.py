"""Generated questions put to generated worlds, part 1 of 2; `test_soak_pairs` is the long run."""

from tests.property.query.parts import everything_was_tried, part


def test_removing_or_exchanging_one_unit_moves_the_answer_by_no_more_than_was_charged() -> None:
    everything_was_tried(part(1))
