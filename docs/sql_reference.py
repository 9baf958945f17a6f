"""The page docs/reference/sql.md: which SQL is answered, from the tables of the query engine itself.

Functions and limits are read off the code. Clauses are shown by an example each, and a test asks all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Final, NamedTuple

from tacit.privacy.bounds import CATEGORIES_MAX
from tacit.privacy.tables import TEXT_LENGTH_MAX
from tacit.query import contribution, expressions, keys, parse, planner, private_choices, question, row_limits
from tacit.query.aggregates import ACCEPTED
from tacit.query.outer_select import ACCEPTED as OVER_AN_ANSWER
from tacit.query.scalars import arithmetic, casts, comparisons, conditionals, dates, facts, logic
from tacit.query.scalars import numbers as number_functions
from tacit.query.scalars import texts as text_functions
from tacit.query.scalars.facts import Rule

AGGREGATES: Final[Mapping[str, str]] = {
    "COUNT": "rows, rows where a value is there, `COUNT(DISTINCT unit)`, different values; noise on a whole number",
    "SUM": "noise on a whole number of steps of a public grid; of a truth value, how often it is true",
    "AVG": "a noisy sum around the middle of the bounds, divided by a noisy count; `MEAN` is the same",
    "VAR_POP": "from noisy moments, shared with AVG and COUNT of the same value",
    "VAR_SAMP": "the same, times n / (n - 1); `VARIANCE` is the same",
    "STDDEV": "the root of VAR_SAMP; `STDDEV_SAMP` is the same",
    "STDDEV_POP": "the root of VAR_POP",
    "COVAR_POP": "from noisy moments of two values, over rows that have both",
    "COVAR_SAMP": "the same, times n / (n - 1)",
    "CORR": "from noisy moments of two values, between -1 and 1",
    "MEDIAN": "a private choice (exponential mechanism) among values within the bounds; dates and times, too",
    "QUANTILE": "the same for any share: `QUANTILE(x, 0.9)`, `QUANTILE_CONT`, `QUANTILE_DISC`, `APPROX_QUANTILE`",
    "PERCENTILE_CONT": "the same: `PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)`, `PERCENTILE_DISC`",
    "MIN": "a private choice near the low end of the data, from above; exact where many rows share the least value",
    "MAX": "a private choice near the high end of the data, from below; exact where many rows share it",
    "MODE": "a private choice among declared categories, or a short range",
}


INTERVALS: Final[Mapping[str, str]] = {
    "COUNT, SUM": "that of the noise, exactly",
    "an expression of one of them": "from its least to its greatest value over the interval of the one",
    "AVG, VAR, STDDEV, COVAR, CORR, ratios, differences, roundings, running sums, LAG": "by drawing the noise again",
    "ABS, CASE, products of several noisy numbers": "the range over the intervals of all of them together",
    "MEDIAN, QUANTILE, MIN, MAX, MODE, and what is computed from them": "none: nothing of their spread is released; "
    "preview and card say how many rows they may be off, and so from how many rows on they say something",
    "ranks, MIN and MAX over the answer, windows in the order of noisy numbers": "none",
    "a SELECT around an answer, SELECT DISTINCT": "none",
    "rows that HAVING, or ORDER BY with LIMIT, selects by noisy numbers": "wider: of the rows shown no more "
    "miss the number without noise than stated, on average over answers",
}


class Clause(NamedTuple):
    """A part of SQL: its name, a query about the tables of the clinic that has it, and what is done."""

    name: str
    example: str
    done: str


CLAUSES: Final = (
    Clause("FROM", "SELECT COUNT(*) FROM visits AS v", "a registered table, in any case"),
    Clause("WHERE", "SELECT COUNT(*) FROM visits WHERE age >= 65", "a condition on one row, with the functions below"),
    Clause(
        "GROUP BY, public keys",
        "SELECT sex, COUNT(*) FROM visits GROUP BY sex",
        "every value is shown, also one without rows: categories, truth values, short ranges of integers and "
        "dates, CASE over literals, parts and beginnings of bounded dates, keys that the analyst states",
    ),
    Clause(
        "GROUP BY, other keys",
        "SELECT city, COUNT(*) FROM visits GROUP BY city",
        "a group is shown if enough units share it; takes a part of epsilon, and a delta",
    ),
    Clause("GROUP BY ALL", "SELECT sex, COUNT(*) FROM visits GROUP BY ALL", "as in DuckDB; also positions and aliases"),
    Clause(
        "ROLLUP, CUBE, GROUPING SETS",
        "SELECT sex, ward, COUNT(*) FROM visits GROUP BY ROLLUP (sex, ward)",
        "totals are sums of the noisy numbers, at no cost, or each set is measured by itself where that errs less; "
        "public keys and additive aggregates only; `GROUPING(key)`",
    ),
    Clause(
        "FILTER",
        "SELECT COUNT(*) FILTER (WHERE emergency) FROM visits",
        "a measure of its own; conditions that exclude one another share their cost where a table is limited",
    ),
    Clause(
        "HAVING, ORDER BY, LIMIT, OFFSET, DISTINCT",
        "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex HAVING n > 10 ORDER BY n DESC LIMIT 1",
        "on the noisy answer, at no cost",
    ),
    Clause(
        "expressions of aggregates",
        "SELECT 100.0 * COUNT(weight) / COUNT(*) AS percent FROM visits",
        "computed from the noisy numbers, at no cost",
    ),
    Clause(
        "windows over the answer",
        "SELECT sex, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM visits GROUP BY sex",
        "computed from the noisy numbers, at no cost, frames included",
    ),
    Clause(
        "a SELECT over an answer",
        "SELECT MAX(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)",
        "computed from the noisy numbers, at no cost",
    ),
    Clause(
        "JOIN of private tables",
        "SELECT p.region, AVG(v.cost) FROM visits v JOIN patients p ON v.patient_id = p.id GROUP BY p.region",
        "INNER and LEFT, on the unit or on a foreign key that leads to it; one row never mixes two units",
    ),
    Clause(
        "JOIN with a public table",
        "SELECT d.site, COUNT(*) FROM visits v JOIN departments d ON v.department = d.code GROUP BY d.site",
        "INNER, CROSS, and LEFT that keeps the private side, on any condition",
    ),
    Clause(
        "IN and EXISTS",
        "SELECT COUNT(*) FROM visits WHERE patient_id IN (SELECT id FROM patients WHERE insured)",
        "the unit among units, a value among those of a public table, or a key that leads to the unit among such keys; "
        "EXISTS that is tied by one of them, and may compare more with the row outside",
    ),
    Clause(
        "subqueries and WITH",
        "WITH old AS (SELECT * FROM visits WHERE age > 80) SELECT COUNT(*) FROM old",
        "rows that belong to one unit each; DISTINCT with the unit's column",
    ),
    Clause(
        "aggregates of each unit",
        "SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id)",
        "COUNT, SUM, AVG, MEDIAN, MIN, MAX, BOOL_AND, BOOL_OR, grouped by the unit, or by a foreign key that leads to "
        "it, and perhaps more",
    ),
    Clause(
        "windows over the rows of a unit",
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day) AS place FROM visits) "
        "WHERE place = 2",
        "in a subquery, partitioned by the unit: ROW_NUMBER, RANK, DENSE_RANK, LAG, LEAD, and the aggregates of a unit",
    ),
    Clause(
        "UNION ALL",
        "SELECT COUNT(DISTINCT patient_id) FROM (SELECT patient_id FROM visits UNION ALL SELECT patient_id FROM labs)",
        "of rows with the same kind of unit, in FROM",
    ),
)

DIFFERENCES: Final = (
    "A division by zero is NULL, and so is whatever would be NaN or an error: a cast of a text that is no number, the "
    "root of a negative number, a date beyond the year 9999.",
    "SUM of no rows is 0, and counts and sums may be negative: they carry noise.",
    "Values beyond declared bounds count as the nearer bound; values that are no category have no group, not even that "
    "of NULL, and preview and card say so.",
    "A missing value is a group among public ones where the query makes it (LEFT JOIN, CASE without ELSE, NULLIF, "
    "LAG), or where the owner lists it; rows in which a stored key is missing are left out otherwise.",
    "A join of private tables on their unit takes at most so many rows of a unit as the limits below say.",
    "Where rows of a unit tie in an ORDER BY of a window, all of their columns decide.",
    "DATE_TRUNC of a date is a date. DATE_DIFF counts weeks from Monday to Sunday.",
    "WIDTH_BUCKET is as in PostgreSQL. DECIMAL(p, s) is a real, rounded to s digits.",
    "Numbers of a unit's own SUM and AVG are rounded to a grid of 2^-30 of their bounds.",
)

_GROUPS: Final[tuple[tuple[str, tuple[ModuleType, ...]], ...]] = (
    ("Arithmetic", (arithmetic, number_functions)),
    ("Comparisons and logic", (comparisons, logic)),
    ("One value of several", (conditionals,)),
    ("Casts", (casts,)),
    ("Dates and times", (dates,)),
    ("Texts", (text_functions,)),
)


def sql_page(notice: str) -> str:
    """Return the page."""
    aggregates = "\n".join(f"| {name} | {AGGREGATES[name]} |" for name in aggregate_names())
    clauses = "\n".join(f"| {one.name} | `{one.example.replace('|', chr(92) + '|')}` | {one.done} |" for one in CLAUSES)
    functions = "\n".join(_functions())
    limits = "\n".join(f"| {what} | {value} |" for what, value in _limits())
    differences = "\n".join(f"- {one}" for one in DIFFERENCES)
    intervals = "\n".join(f"| {number} | {how} |" for number, how in INTERVALS.items())
    return f"""# SQL

{notice}

A query is one SELECT in DuckDB's dialect, about registered tables. What is listed here is answered; everything else
is refused with a code, the place in the text, and what would be accepted ([errors](errors.md)). What the engine does
with a query is told in [private SQL](../explanation/private-sql.md). The examples are about a clinic with the tables
`visits`, `patients`, `labs` and the public table `departments`; a patient is the unit.

## Clauses

| part | example | what is done |
| --- | --- | --- |
{clauses}

## Aggregates

Numbers need bounds: declared, or following from those of the columns in an expression, or set by LEAST and GREATEST, or
else learnt privately out of the same epsilon.

| aggregate | how it is answered |
| --- | --- |
{aggregates}

Over the rows of an answer, after the noise: {OVER_AN_ANSWER.removesuffix(" are")}.

## Intervals

| number | its interval |
| --- | --- |
{intervals}

Intervals are about the noise: what of a unit is not counted, and what is clamped to bounds, they do not tell.

## Functions of a row

{functions}
## Where an answer differs from DuckDB's, noise aside

{differences}

## Limits

| what | at most |
| --- | --- |
{limits}
"""


def aggregate_names() -> list[str]:
    """Return the aggregates that a query may hold."""
    return ACCEPTED.removesuffix(" are").replace(" and ", ", ").split(", ")


def _functions() -> Iterator[str]:
    for title, modules in _GROUPS:
        rules = [rule for module in modules for rule in _rules(module)]
        names = dict.fromkeys(name for rule in rules for name in rule.names)
        yield f"### {title}\n"
        yield ", ".join(f"`{name}`" for name in names) + ".\n"
        notes = dict.fromkeys((rule.build.__doc__ or "").strip() for rule in rules)
        notes = dict.fromkeys(note for note in notes if set(note) & set(",:;"))  # the others repeat a name
        if notes:
            yield "\n".join(f"- {note}" for note in notes) + "\n"


def _rules(module: ModuleType) -> list[Rule]:
    return [*module.RULES.values(), *getattr(module, "NAMED", {}).values()]


def _limits() -> Iterator[tuple[str, str]]:
    yield "characters of a query", f"{parse.TEXT_MAX:,}"
    yield "parts of a query, and how deep they are nested", f"{parse.NODES_MAX:,} and {parse.DEPTH_MAX}"
    yield "characters of a text in a query", f"{facts.TEXT_MAX:,}"
    yield (
        "characters of a stored text, and of a computed one",
        f"{TEXT_LENGTH_MAX:,} and {expressions.DERIVED_TEXT_MAX:,}",
    )
    yield "characters of all computed texts of a row", f"{row_limits.ROW_TEXT_MAX:,}"
    yield (
        "parts of a query with its subqueries written out, and levels of a statement",
        (f"{row_limits.RELATION_MAX:,} and {planner.DEPTH_MAX}"),
    )
    yield "aggregates of a query", f"{question.AGGREGATES_MAX}"
    yield "keys of a query", f"{question.KEYS_MAX}"
    yield "grouping sets of a query", f"{question.SETS_MAX}"
    yield "groups of an answer with public keys", f"{planner.GROUPS_MAX:,}"
    yield "candidates of quantiles and modes, over all groups", f"{planner.CELLS_MAX:,}"
    yield "candidates of one quantile or mode", f"{private_choices.CELLS_MAX:,}"
    yield "values of a range of integers or days that counts as public", f"{keys.RANGE_MAX:,}"
    yield "categories of a column", f"{CATEGORIES_MAX:,}"
    yield "buckets of WIDTH_BUCKET", f"{number_functions.BUCKETS_MAX:,}"
    yield "% in a pattern of LIKE", f"{text_functions.WILDCARDS_MAX}"
    yield "rows of a unit that are joined, of a table without rows_per_unit", f"{row_limits.JOINED_ROWS_PER_UNIT}"
    yield "joined rows of a unit", f"{row_limits.JOINED_ROWS_MAX:,}"
    yield "rows that may become of one stored row by joins and unions", f"{row_limits.AMPLIFICATION_MAX:,}"
    yield (
        f"steps for a unit with {row_limits.STORED_ROWS} stored rows, and characters of it that are grouped or sorted",
        f"{row_limits.WORK_MAX:,} and {row_limits.HELD_CHARACTERS_MAX:,}",
    )
    yield "rows of a public table whose number is not stated", f"{row_limits.PUBLIC_ROWS:,}"
    yield "groups of a unit that are counted, unless somebody says otherwise", f"{contribution.GROUPS_PER_UNIT}"
    yield "rows of a unit in a group that are counted, unless somebody says otherwise", f"{contribution.ROWS_PER_GROUP}"
