"""The notation of events: what it means, how it is written back, and where a text is refused."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from tacit.privacy import Relation, events, notation
from tacit.privacy.errors import InvalidInput, MixedRelations, NotationError, TooLarge
from tacit.privacy.events import (
    Approximate,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Disjoint,
    Event,
    Exponential,
    Gaussian,
    Grouped,
    Laplace,
    Pure,
    RandomizedResponse,
    Repeated,
    Sampled,
    SampledWithoutReplacement,
    Selected,
    Shuffled,
    ZeroConcentrated,
)
from tacit.privacy.notation import parse, signatures, write

A, B, C = Laplace(0.5), Gaussian(2), Pure(1)


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("pure(1)", Pure(1)),
        ("approximate(1, 1e-6)", Approximate(1, 1e-6)),
        ("laplace(0.1)", Laplace(0.1)),
        ("laplace(.5)", Laplace(0.5)),
        ("laplace(2.)", Laplace(2)),
        ("laplace(25E-1)", Laplace(2.5)),
        ("discrete_laplace(1)", DiscreteLaplace(1)),
        ("discrete_laplace(1, 4)", DiscreteLaplace(1, 4)),
        ("discrete_laplace(1, steps=4)", DiscreteLaplace(1, 4)),
        ("discrete_laplace(steps=4, epsilon=1)", DiscreteLaplace(1, 4)),
        ("gaussian(1.5)", Gaussian(1.5)),
        ("discrete_gaussian(2, scalar=true)", DiscreteGaussian(2, scalar=True)),
        ("discrete_gaussian(2, 3, false)", DiscreteGaussian(2, 3)),
        ("exponential(0.5)", Exponential(0.5)),
        ("randomized_response(1, 8)", RandomizedResponse(1, 8)),
        ("zero_concentrated(0.02)", ZeroConcentrated(0.02)),
        ("shuffled(1, 1e6)", Shuffled(1, 1_000_000)),
        ("noisy_max(2)", events.NoisyMax(2)),
        ("tree_aggregation(2, 1024)", events.TreeAggregation(2, 1024)),
        ("sampled(0.01, gaussian(1.0))", Sampled(0.01, Gaussian(1))),
        ("sampled(256/60000, gaussian(1))", Sampled(256 / 60000, Gaussian(1))),
        ("sampled_without_replacement(10, 100, laplace(1))", SampledWithoutReplacement(10, 100, Laplace(1))),
        ("grouped(laplace(0.5), 3)", Grouped(A, 3)),
        ("selected(laplace(0.5), 1, 0.1)", Selected(A, 1, 0.1)),
        ("disjoint(laplace(0.5), gaussian(2), pure(1))", Disjoint((A, B, C))),
        ("disjoint(laplace(0.5) + gaussian(2), pure(1))", Disjoint((Composed((A, B)), C))),
        ("10 x laplace(0.5)", Repeated(A, 10)),
        ("10x laplace(0.5)", Repeated(A, 10)),
        ("repeated(laplace(0.5), 10)", Repeated(A, 10)),
        ("3 x 4 x laplace(0.5)", Repeated(Repeated(A, 4), 3)),
        ("laplace(0.5) + gaussian(2) + pure(1)", Composed((A, B, C))),
        ("composed(laplace(0.5), gaussian(2), pure(1))", Composed((A, B, C))),
        ("laplace(0.5) + (gaussian(2) + pure(1))", Composed((A, Composed((B, C))))),
        ("2 x laplace(0.5) + gaussian(2)", Composed((Repeated(A, 2), B))),
        ("2 x (laplace(0.5) + gaussian(2))", Repeated(Composed((A, B)), 2)),
        ("composed(laplace(0.5))", Composed((A,))),
        (" \t\n( ( laplace ( 0.5 ) ) ) ", A),
    ],
)
def test_a_text_means_this_event(text: str, event: Event) -> None:
    assert parse(text) == event
    assert type(parse(text)) is type(event)
    assert parse(write(event)) == event


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Laplace(0.1), "laplace(0.1)"),
        (Gaussian(1.0), "gaussian(1)"),
        (Gaussian(1e-7), "gaussian(1e-7)"),
        (Gaussian(1.5e22), "gaussian(1.5e22)"),
        (DiscreteGaussian(2, scalar=True), "discrete_gaussian(2, scalar=true)"),
        (DiscreteLaplace(1, 2**53), "discrete_laplace(1, steps=9007199254740992)"),
        (Repeated(Composed((A, B)), 1000), "1000 x (laplace(0.5) + gaussian(2))"),
        (Composed((Repeated(A, 2), Composed((B, C)))), "2 x laplace(0.5) + (gaussian(2) + pure(1))"),
        (Sampled(0.01, Composed((A, B))), "sampled(0.01, laplace(0.5) + gaussian(2))"),
        (Composed((Composed((A,)), B)), "composed(laplace(0.5)) + gaussian(2)"),
    ],
)
def test_an_event_is_written_in_the_fewest_words(event: Event, text: str) -> None:
    assert write(event) == text


@pytest.mark.parametrize("relation", list(Relation))
def test_the_relation_applies_to_every_event_of_the_text(relation: Relation) -> None:
    event = parse("disjoint(2 x laplace(1), gaussian(1) + sampled(0.1, pure(1)))", relation=relation)
    assert event.relation is relation


def test_without_a_relation_every_kind_has_its_usual_one_and_they_are_not_mixed() -> None:
    assert parse("gaussian(1)").relation is Relation.ADD_REMOVE
    assert parse("shuffled(1, 100)").relation is Relation.REPLACE_ONE
    with pytest.raises(NotationError, match="composed mixes add-remove and replace-one events") as refusal:
        parse("gaussian(1) + shuffled(1, 100)")
    assert isinstance(refusal.value.__cause__, MixedRelations)


@pytest.mark.parametrize(
    ("text", "position", "sentence"),
    [
        ("", 0, "column 1, at the end: expected an event such as gaussian(1)"),
        ("   ", 3, "column 4, at the end: expected an event"),
        ("gausian(1)", 0, "column 1, at 'gausian(1)': no event is called gausian; did you mean gaussian?"),
        ("discrete-laplace(1)", 0, "did you mean discrete_laplace?"),
        ("Laplace(1)", 0, "did you mean laplace?"),
        ("secret(1)", 0, "no event is called secret; there are pure, approximate,"),
        ("gaussian", 8, "at the end: expected ( and the parameters of gaussian(sigma)"),
        ("gaussian(", 9, "at the end: expected a number for sigma of gaussian(sigma)"),
        ("gaussian()", 9, "at ')': sigma is missing in gaussian(sigma)"),
        ("composed()", 9, "events is missing in composed(event, …)"),
        ("gaussian(1", 10, "expected a comma or )"),
        ("gaussian(1, 2)", 12, "too many arguments for gaussian(sigma)"),
        ("gaussian(1 2)", 11, "expected a comma or )"),
        ("gaussian(1) gaussian(2)", 12, "expected + and another event, or the end"),
        ("(gaussian(1)", 12, "expected + or )"),
        ("gaussian(1))", 11, "expected + and another event, or the end"),
        ("gaussian(1) +", 13, "expected an event such as gaussian(1)"),
        ("+ gaussian(1)", 0, "expected an event such as gaussian(1)"),
        ("gaussian(?)", 9, "? is for calibration only; write a number"),
        ("gaussian(rho=1)", 9, "rho is not a parameter of gaussian(sigma)"),
        ("gaussian(under=1)", 9, "under is not a parameter of gaussian(sigma)"),
        ("composed(events=pure(1))", 9, "events is not a parameter of composed(event, …)"),
        ("gaussian(sigma=1, sigma=2)", 18, "duplicate parameter sigma in gaussian(sigma)"),
        ("gaussian(1, sigma=2)", 12, "duplicate parameter sigma in gaussian(sigma)"),
        ("approximate(epsilon=1, 1e-6)", 23, "positional argument follows a named one"),
        ("gaussian(pure(1))", 9, "expected a number for sigma of gaussian(sigma)"),
        ("gaussian(nan)", 9, "expected a number for sigma"),
        ("gaussian(true)", 9, "expected a number for sigma"),
        ("discrete_gaussian(1, 1, 1)", 24, "expected true or false for scalar of discrete_gaussian("),
        ("sampled(0.1, 0.2)", 16, "expected x and an event after a number, as in 10 x laplace(0.1)"),
        ("sampled(gaussian(1), 0.1)", 8, "expected a number for rate of sampled(rate, event)"),
        ("10 laplace(1)", 3, "expected x and an event after a number"),
        ("10 x", 4, "expected an event such as gaussian(1)"),
        ("10 * laplace(1)", 3, "'*' is written x, as in 10 x laplace(0.1)"),
        ("10 × laplace(1)", 3, "'×' is written x, as in 10 x laplace(0.1)"),
        ("laplace(1); pure(1)", 10, "';' has no meaning in an event"),
        ("laplace(ε)", 8, "'ε' has no meaning in an event"),
        ("laplace(\x00)", 8, r"'\x00' has no meaning in an event"),
        ("laplace(1__0)", 9, "'_' has no meaning in an event"),
        ("laplace(--1)", 8, "'-' has no meaning in an event"),
        ("gaussian(1/0)", 11, "division by 0"),
        ("gaussian(1/)", 11, "expected a number after /"),
        ("gaussian(1/2/3)", 12, "expected a comma or )"),
        ("gaussian(1e401)", 9, "an exponent of at most 400"),
        ("gaussian(1e999999999999)", 9, "an exponent of at most 400"),
        ("gaussian(1e400)", 9, "the number is too large for a double"),
        (f"gaussian({'1' * 401})", 9, "a number has at most 400 characters"),
    ],
)
def test_a_text_is_refused_where_it_goes_wrong(text: str, position: int, sentence: str) -> None:
    with pytest.raises(NotationError) as refusal:
        parse(text)
    assert sentence in refusal.value.message
    assert refusal.value.message.startswith(f"column {position + 1}, at ")
    assert (refusal.value.position, refusal.value.text, refusal.value.code) == (position, text, "T112")


@pytest.mark.parametrize(
    ("text", "position", "sentence"),
    [
        ("gaussian(0)", 9, "sigma must be above 0, not 0"),
        ("gaussian(-1)", 9, "sigma must be above 0, not -1"),
        ("gaussian(1e-400)", 9, "sigma must be above 0, not 0"),
        ("pure(1) + approximate(1, 1)", 25, "delta must be below 1, and is 1"),
        ("1.5 x laplace(1)", 0, "count must be a whole number, not 1.5"),
        ("0 x laplace(1)", 0, "count must be at least 1, and is 0"),
        ("shuffled(1, 2.5)", 12, "count must be a whole number, not 2.5"),
        ("sampled(2, gaussian(1))", 8, "rate must be at most 1, and is 2"),
        ("selected(laplace(1), 1, 0.99999999999999999999)", 24, "stop must lie strictly between 0 and 1, and is 1"),
        ("sampled_without_replacement(3, 2, pure(1))", 28, "a sample of 3 cannot be drawn from 2"),
        (f"{'9' * 399} x pure(1)", 0, "count must be below 2^1000 in size"),
    ],
)
def test_what_an_event_refuses_is_refused_at_its_argument(text: str, position: int, sentence: str) -> None:
    with pytest.raises(NotationError) as refusal:
        parse(text)
    assert refusal.value.message.endswith(f": {sentence}")
    assert refusal.value.position == position
    assert isinstance(refusal.value.__cause__, InvalidInput)


def test_a_long_text_is_shown_only_in_part() -> None:
    with pytest.raises(NotationError) as refusal:
        parse("pure(1) + " * 1000)
    assert len(refusal.value.message) < 150


@pytest.mark.parametrize(
    "text", ["gaussian(?)", "10 x sampled(0.1, gaussian(?)) + pure(1)", "gaussian(?) + laplace(?)"]
)
def test_a_question_mark_is_the_hole(text: str) -> None:
    assert parse(text, placeholder=1.25) == parse(text.replace("?", "1.25"))


@pytest.mark.parametrize("text", ["shuffled(1, ?)", "grouped(pure(1), ?)", "? x pure(1)"])
def test_a_whole_number_is_not_sought(text: str) -> None:
    with pytest.raises(NotationError, match=r"\? stands for any number above 0, and .* is a whole number"):
        parse(text, placeholder=2)


def test_a_text_without_a_question_mark_has_nothing_to_seek() -> None:
    with pytest.raises(NotationError, match="there is no \\?; write it in place of the number"):
        parse("gaussian(1)", placeholder=1.0)


def test_a_hole_that_the_event_refuses_is_refused_at_the_question_mark() -> None:
    with pytest.raises(NotationError, match="rate must be at most 1, and is 2") as refusal:
        parse("sampled(?, pure(1))", placeholder=2.0)
    assert refusal.value.position == 8


def deepest(levels: int) -> str:
    return "2 x " * (levels - 1) + "pure(1)"


def test_events_nested_to_the_limit_are_read_and_one_deeper_is_refused() -> None:
    event = parse(deepest(events.EVENT_DEPTH_MAX))
    assert parse(write(event)) == event
    for text in (deepest(events.EVENT_DEPTH_MAX + 1), f"{deepest(events.EVENT_DEPTH_MAX)} + pure(1)"):
        with pytest.raises(NotationError, match="32 deep at most"):
            parse(text)


@pytest.mark.parametrize("text", ["(" * 100_000, "1 x " * 100_000, "sampled(1, " * 50_000, "composed(" * 50_000])
def test_a_bottomless_text_is_refused_without_going_down(text: str) -> None:
    with pytest.raises(NotationError, match="32 deep at most"):
        parse(text)


def test_a_text_longer_than_the_limit_is_refused_unread() -> None:
    with pytest.raises(TooLarge, match="1,000,000 characters"):
        parse(" " * (notation.NOTATION_LENGTH_MAX + 1))


def test_many_events_are_read_in_one_go() -> None:
    several = parse(" + ".join(["pure(1)"] * 20_000))
    assert several == Composed((Pure(1),) * 20_000)


def test_an_event_that_is_written_again_is_the_same_and_still_in_its_place() -> None:
    text = "laplace(0.5) + 2 x laplace(0.5) + sampled(0.1, laplace(0.5)) + laplace( 0.5 ) + gaussian(2)"
    assert parse(text) == Composed((A, Repeated(A, 2), Sampled(0.1, A), A, B))
    assert parse("laplace(?) + laplace(?)", placeholder=0.5) == Composed((A, A))
    with pytest.raises(NotationError, match="column 28"):
        parse("laplace(0.5) + laplace(0.5), laplace(0.5)")


def test_numbers_mean_the_nearest_double_and_whole_numbers_themselves() -> None:
    assert parse("pure(0.1)") == Pure(0.1)
    assert parse("pure(1/3)") == Pure(float(Fraction(1, 3)))
    assert parse(f"{2**60 + 1} x pure(1)") == Repeated(Pure(1), 2**60 + 1)


def test_every_kind_has_a_signature_and_a_meaning() -> None:
    listed = dict(signatures())
    assert len(listed) == len(events.KINDS)
    assert "sampled(rate, event)" in listed
    assert listed["discrete_gaussian(sigma, sensitivity=1, scalar=false)"].startswith("Discrete Gaussian noise")


@dataclass(frozen=True, slots=True)
class Novel(events.SimpleEvent):
    """A kind that did not exist when the notation was written."""

    kind = "brand-new"
    strength: float
    rounds: int = 3
    loud: bool = False


def test_a_new_kind_can_be_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    known: Any = events.KINDS
    monkeypatch.setitem(known, "brand-new", Novel)
    event = Novel(0.5, loud=True, under=Relation.REPLACE_ONE)
    assert write(event) == "brand_new(0.5, loud=true)"
    assert parse("brand_new(0.5, loud=true)", relation=Relation.REPLACE_ONE) == event
    assert ("brand_new(strength, rounds=3, loud=false)", Novel.__doc__) in signatures()


def test_a_short_text_reads_back_as_no_smaller_cost() -> None:
    below, above = math.nextafter(0.1, 0), math.nextafter(0.1, 1)
    assert write(DiscreteLaplace(below)) == "discrete_laplace(0.09999999999999999)"
    assert write(DiscreteLaplace(below), short=True) == "discrete_laplace(0.1)"
    assert write(DiscreteLaplace(above), short=True) == "discrete_laplace(0.10000000000000002)"
    several = Repeated(Composed((Pure(below), Approximate(1 / 3, below), Gaussian(below))), 2)
    assert write(several, short=True) == (
        "2 x (pure(0.1) + approximate(0.3333333333333333, 0.1) + gaussian(0.09999999999999999))"
    )
    assert parse(write(several)) == several
