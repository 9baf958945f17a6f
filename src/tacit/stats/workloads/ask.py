"""Ask for many counts at once: tables, ranges, prefixes, hierarchies, and unions of them, under one price.

A column's cells are public and say nothing about the data. `domain` has for each column one of

    ["F", "M"]                   its values, where they are texts, truth values or None; others are in no cell
    tacit.Categories([1, 2, 3])  its values, also where they are numbers or dates
    [0, 18, 65, 120]             rising edges of bins, where they are numbers or dates
    (20, (0, 100))               20 bins of one width between bounds
    20                           the same between the bounds that a registered column has

and may leave out columns whose values are known: registered with categories, or truth values.

All counts are of the same rows: those with a value in every column. List every value that a column can have (a value
that is not listed drops a row from the tables by its column alone, and tables would not be of the same rows).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from itertools import pairwise
from typing import Any, Unpack

import numpy as np

from tacit.privacy import texts
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import EmptyInput, InvalidInput, NotBounded, OutOfRange, TooLarge, WrongType
from tacit.privacy.numbers import whole
from tacit.privacy.tables import Kind
from tacit.stats.asking import Asked, Survey
from tacit.stats.cells import edge_of
from tacit.stats.column_kinds import kind_of_bounds, kind_of_edges, kind_of_keys
from tacit.stats.rows import Cut
from tacit.stats.workloads.answer import WorkloadAnswer
from tacit.stats.workloads.asked import Hierarchy, Marginals, Prefixes, Ranges, Workload
from tacit.stats.workloads.cells import EDGES_MAX
from tacit.stats.workloads.plan import flattened, planned

VALUE = "value"


def workload(
    columns: Any,
    *workloads: Workload,
    domain: Mapping[str, Any] | None = None,
    **asked: Unpack[Asked],
) -> WorkloadAnswer:
    """All queries of some workloads over columns, given by name or as a frame, for the least expected error."""
    for one in workloads:
        if not isinstance(one, Workload):
            raise WrongType(
                f"a workload is Ranges('age') and the like, not {type(one).__name__}", name="workload", value=one
            )
    parts = flattened(workloads)
    if not parts:
        raise EmptyInput("there is nothing asked: name a workload, such as Ranges('age')", name="workload")
    used = dict.fromkeys(name for one in parts for name in one.columns)
    given, stated = _named(columns), {} if domain is None else domain
    if not isinstance(stated, Mapping):
        raise WrongType("domain has the cells of each column by its name", name="domain", value=domain)
    for name in (*used, *stated):
        if name not in given:
            raise InvalidInput(f"there is no column {name!r} among {', '.join(given)}", name="columns", value=name)
    kinds = {name: _stated_kind(stated.get(name)) for name in used}
    survey = Survey({name: given[name] for name in used}, asked, kinds)
    cuts = {name: cut_of(survey, name, stated.get(name)) for name in used}
    return WorkloadAnswer.of(survey.answered(planned(parts, cuts, survey.funds, survey.per_unit)))


def marginals(
    columns: Any,
    *,
    domain: Mapping[str, Any] | None = None,
    ways: Sequence[int] = (1, 2),
    sets: Sequence[Sequence[str]] | None = None,
    **asked: Unpack[Asked],
) -> WorkloadAnswer:
    """All tables of counts by as many of the columns as `ways` says, or by the stated sets of columns."""
    return workload(columns, Marginals(tuple(_named(columns)), ways, sets=sets), domain=domain, **asked)


def ranges(values: Any, *, edges: Any = None, name: str = VALUE, **asked: Unpack[Asked]) -> WorkloadAnswer:
    """Every range of neighbouring cells; `edges` says what they are, as `domain` does for a column."""
    return workload({_text(name): values}, Ranges(name), domain={name: edges}, **asked)


def prefixes(values: Any, *, edges: Any = None, name: str = VALUE, **asked: Unpack[Asked]) -> WorkloadAnswer:
    """How many lie below each edge; `edges` says what the cells are, as `domain` does for a column."""
    return workload({_text(name): values}, Prefixes(name), domain={name: edges}, **asked)


def hierarchy(
    values: Any,
    *,
    levels: Sequence[str | Mapping[Any, Any]] | Mapping[Any, Any],
    edges: Any = None,
    name: str = VALUE,
    **asked: Unpack[Asked],
) -> WorkloadAnswer:
    """Cells and their groups, level by level from the coarsest: periods of dates, or mappings from child to parent."""
    if edges is None and isinstance(levels, Mapping):
        edges = Categories(tuple(levels))
    return workload({_text(name): values}, Hierarchy(name, levels), domain={name: edges}, **asked)


def _text(name: object) -> str:
    return texts.source_name("name", name)


def _named(columns: object) -> Mapping[str, Any]:
    """Return columns by name: of a mapping, or of a frame."""
    if isinstance(columns, Mapping):
        return {_text(name): values for name, values in columns.items()}
    names = getattr(columns, "columns", None)
    if names is None or not hasattr(columns, "__getitem__"):
        raise WrongType("columns are given by name: {'age': ages, 'sex': sexes}, or a frame", name="columns")
    return {str(name): columns[name] for name in names}


def _stated_kind(stated: Any) -> Kind | None:
    """Return the kind of values that the cells of a column state."""
    if isinstance(stated, Categories):
        return kind_of_keys(stated)
    if isinstance(stated, tuple) and len(stated) == 2 and isinstance(stated[1], Sequence | Bounds):
        return kind_of_bounds(stated[1])
    if isinstance(stated, Sequence) and any(isinstance(one, str | bool) or one is None for one in stated):
        return kind_of_keys(stated)
    return kind_of_edges(stated)


def cut_of(survey: Survey, name: str, stated: Any) -> Cut:
    """Return the public cells of a column."""
    if stated is None or isinstance(stated, Categories):
        return survey.cut(name, stated, what="domain")
    if isinstance(stated, int) and not isinstance(stated, bool):
        return _bins(survey, name, stated, None)
    if isinstance(stated, tuple) and len(stated) == 2 and isinstance(stated[1], Sequence | Bounds):
        return _bins(survey, name, stated[0], stated[1])
    if isinstance(stated, str) or not isinstance(stated, Sequence | np.ndarray) or getattr(stated, "ndim", 1) != 1:
        raise WrongType(f"the cells of {name} are a list of values, or rising edges", name="domain", value=stated)
    listed = stated.tolist() if isinstance(stated, np.ndarray) else list(stated)
    if any(isinstance(one, str | bool) or one is None for one in listed):
        return survey.cut(name, listed, what="domain")
    return Cut(survey.column(name), edges=_edges(survey, name, listed))


def _bins(survey: Survey, name: str, count: object, bounds: Any) -> Cut:
    bins, found = whole("bins", count), survey.bounds(name, bounds)
    if isinstance(found.lower, date) or isinstance(found.upper, date):
        raise NotBounded(f"{name} lies between dates: give its edges, such as date_edges(first, after)")
    if bins > EDGES_MAX:
        raise TooLarge(f"at most {EDGES_MAX:,} cells are counted at once", name="domain", value=bins)
    edges = np.linspace(float(found.lower), float(found.upper), bins + 1).tolist()
    return Cut(survey.column(name), edges=_edges(survey, name, edges))


def _edges(survey: Survey, name: str, listed: Sequence[Any]) -> tuple[Any, ...]:
    if len(listed) < 2:
        raise EmptyInput(f"the edges of {name} are at least two", name="domain")
    if len(listed) > EDGES_MAX:
        raise TooLarge(f"at most {EDGES_MAX:,} cells are counted at once", name="domain")
    edges: tuple[Any, ...] = tuple(edge_of(name, survey.kind(name), Bounds(one, one).lower) for one in listed)
    if any(not low < high for low, high in pairwise(edges)):
        raise OutOfRange(f"the edges of {name} rise from each to the next", name="domain")
    return edges
