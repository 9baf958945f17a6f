"""Every event that can be made, kind by kind; the parts of compound ones go a few levels deep."""

from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tacit.privacy import Relation, events

Events: TypeAlias = SearchStrategy[events.Event]

not_negative = st.floats(min_value=0, max_value=1e6)
positive = st.floats(min_value=1e-9, max_value=1e6)
counts = st.integers(min_value=1, max_value=2**53)
sample_sizes = st.tuples(counts, counts).map(sorted)


def _lists(parts: Events) -> SearchStrategy[list[events.Event]]:
    return st.lists(parts, min_size=1, max_size=3)


SIMPLE: Final[dict[str, Callable[[Relation], Events]]] = {
    "pure": lambda under: st.builds(events.Pure, not_negative, under=st.just(under)),
    "laplace": lambda under: st.builds(events.Laplace, not_negative, under=st.just(under)),
    "exponential": lambda under: st.builds(events.Exponential, not_negative, under=st.just(under)),
    "zero-concentrated": lambda under: st.builds(events.ZeroConcentrated, not_negative, under=st.just(under)),
    "gaussian": lambda under: st.builds(events.Gaussian, positive, under=st.just(under)),
    "noisy-max": lambda under: st.builds(events.NoisyMax, positive, under=st.just(under)),
    "tree-aggregation": lambda under: st.builds(events.TreeAggregation, positive, counts, under=st.just(under)),
    "shuffled": lambda under: st.builds(events.Shuffled, not_negative, counts, under=st.just(under)),
    "discrete-laplace": lambda under: st.builds(events.DiscreteLaplace, not_negative, counts, under=st.just(under)),
    "discrete-gaussian": lambda under: st.builds(
        events.DiscreteGaussian, positive, positive, st.booleans(), under=st.just(under)
    ),
    "randomized-response": lambda under: st.builds(
        events.RandomizedResponse, not_negative, st.integers(2, 10**6), under=st.just(under)
    ),
    "approximate": lambda under: st.builds(
        events.Approximate, not_negative, st.floats(0, 1, exclude_max=True), under=st.just(under)
    ),
}

COMPOUND: Final[dict[str, Callable[[Events], Events]]] = {
    "sampled": lambda parts: st.builds(events.Sampled, st.floats(1e-9, 1), parts),
    "sampled-without-replacement": lambda parts: st.builds(
        lambda sizes, part: events.SampledWithoutReplacement(*sizes, part), sample_sizes, parts
    ),
    "repeated": lambda parts: st.builds(events.Repeated, parts, counts),
    "selected": lambda parts: st.builds(events.Selected, parts, not_negative, st.floats(1e-9, 1, exclude_max=True)),
    "converted": lambda parts: st.builds(events.Converted, parts, st.floats(1e-9, 1, exclude_max=True)),
    "grouped": lambda parts: st.builds(events.Grouped, parts, counts),
    "composed": lambda parts: st.builds(events.Composed, _lists(parts)),
    "disjoint": lambda parts: st.builds(events.Disjoint, _lists(parts)),
}


def events_under(relation: Relation) -> Events:
    """Return events of every kind, under one relation."""
    simple = st.one_of(*(make(relation) for make in SIMPLE.values()))
    return st.recursive(simple, lambda parts: st.one_of(*(make(parts) for make in COMPOUND.values())), max_leaves=4)


@cache
def events_of_kind(kind: str) -> Events:
    """Return events of one kind, under either relation."""
    if kind in SIMPLE:
        return st.one_of(*(SIMPLE[kind](relation) for relation in Relation))
    return st.one_of(*(COMPOUND[kind](events_under(relation)) for relation in Relation))


any_event = st.one_of(*(events_under(relation) for relation in Relation))
