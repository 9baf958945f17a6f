"""Events of everyday sizes: noise that somebody would add, as often as somebody would, on samples that are taken."""

from __future__ import annotations

from typing import TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tacit.privacy import Relation, events
from tacit.privacy.events import Event

Events: TypeAlias = SearchStrategy[Event]

deltas = st.floats(-25, -1).map(lambda power: 10.0**power)
sizes = st.floats(-4, 0.7).map(lambda power: 10.0**power)
sigmas = st.floats(-0.5, 2.5).map(lambda power: 10.0**power)
rates = st.floats(-5, -0.01).map(lambda power: 10.0**power)
counts = st.floats(0, 4).map(lambda power: int(10.0**power))


def noise(under: Relation) -> Events:
    """Return single releases, of which each has a pair."""
    relation = st.just(under)
    return st.one_of(
        st.builds(events.Pure, sizes, under=relation),
        st.builds(events.Laplace, sizes, under=relation),
        st.builds(events.Exponential, sizes, under=relation),
        st.builds(events.DiscreteLaplace, sizes, st.integers(1, 9), under=relation),
        st.builds(events.RandomizedResponse, sizes, st.integers(2, 9), under=relation),
        st.builds(events.Gaussian, sigmas, under=relation),
        st.builds(events.DiscreteGaussian, sigmas.map(lambda sigma: sigma + 3), st.just(1.0), under=relation),
    )


def releases(under: Relation) -> Events:
    """Return releases, on samples or not, for one unit or for groups."""
    single = noise(under)
    if under is Relation.ADD_REMOVE:
        return st.one_of(single, st.builds(events.Sampled, rates, single), st.builds(events.Grouped, single, small))
    return st.one_of(
        single,
        st.builds(events.SampledWithoutReplacement, st.integers(1, 50), st.integers(50, 10_000), single),
        st.builds(events.Grouped, single, small),
    )


small = st.integers(1, 4)
plans = st.sampled_from(list(Relation)).flatmap(
    lambda under: st.lists(st.builds(events.Repeated, releases(under), counts), min_size=1, max_size=3).map(
        lambda parts: events.Composed(tuple(parts))
    )
)
