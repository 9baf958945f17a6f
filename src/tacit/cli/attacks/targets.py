"""Targets of attacks from files and settings: the options of `tacit attack NAME`, and tables of a file of targets.

Every kind of target has one list of settings. On the command line a setting is an option, in a file a key.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from tacit.cli.attacks.files import read_records, read_toml, reads_as_number, truths
from tacit.privacy.errors import InvalidInput, NotInCatalog, SourceMissing, UnknownName, WrongType
from tacit.privacy.texts import did_you_mean

if TYPE_CHECKING:
    from tacit.attack.records import Records

Type = Literal["text", "names", "file", "function", "number", "integer", "json", "flag"]


@dataclass(frozen=True, slots=True)
class TargetOption:
    """One setting of a target; the first of a kind is its argument."""

    name: str
    type: Type
    help: str
    is_required: bool = False

    def check(self, value: Any) -> None:
        """Raise WrongType unless a value of a file of targets is of the type of the setting."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        wanted, is_right = {
            "text": ("a text", isinstance(value, str)),
            "file": ("a text, the path of a file", isinstance(value, str)),
            "function": ("a text, FILE.py:NAME", isinstance(value, str)),
            "names": ("a list of texts", isinstance(value, list) and all(isinstance(one, str) for one in value)),
            "number": ("a finite number", is_number and math.isfinite(value)),
            "integer": ("an integer", is_number and isinstance(value, int)),
            "flag": ("true or false", isinstance(value, bool)),
            "json": ("a value", True),
        }[self.type]
        if not is_right:
            raise WrongType(f"{self.name} must be {wanted}, not {value!r}", name=self.name, value=value)


@dataclass(frozen=True, slots=True)
class TargetKind:
    """A kind of target: its settings, the function that makes one of them, and the keys of its claims."""

    name: str
    settings: tuple[TargetOption, ...]
    make: Callable[[Mapping[str, Any]], Any] | None
    claims: tuple[str, ...] = ("epsilon", "delta", "permit")

    def of_table(self, table: Mapping[str, Any], base: Path) -> dict[str, Any]:
        """Return the settings of a table of a file; paths are relative to `base`."""
        known = {one.name: one for one in self.settings}
        for name, value in table.items():
            if name not in known:
                hint = did_you_mean(name, known, f"use {', '.join(known)}")
                raise UnknownName(f"a target of the kind {self.name} has no setting {name}; {hint}", name=name)
            known[name].check(value)
        missing = [one.name for one in self.settings if one.is_required and table.get(one.name) is None]
        if missing:
            raise InvalidInput(f"a target of the kind {self.name} needs {missing[0]}", name=missing[0])
        found = {**dict.fromkeys(known), **table}
        for one in self.settings:
            if found[one.name] is not None and one.type in ("file", "function"):
                located = base.absolute() / found[one.name]
                found[one.name] = located if one.type == "file" else str(located)
        return found

    def identity(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return what tells a target from others: its settings, and the SHA-256 of every file that they name."""
        files = {}
        for one in self.settings:
            value = settings[one.name]
            if value is not None and one.type in ("file", "function"):
                files[one.name] = _sha256(Path(str(value).rpartition(":")[0] if one.type == "function" else value))
        return {"kind": self.name, "settings": {name: settings[name] for name in sorted(settings)}, "files": files}


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        raise SourceMissing(f"there is no file {path}") from None


def _table(settings: Mapping[str, Any]) -> Any:
    from tacit.attack import Table

    records = read_records(settings["records"])
    register = None if settings["register"] is None else read_records(settings["register"])
    if register is not None:
        if settings["identity"] is None:
            raise InvalidInput("a register needs --identity COLUMN, its column that names a person", name="identity")
        named = [*(settings["on"] or ()), *(settings[one] for one in ("identity", "item", "value", "when"))]
        for column in named:
            if column is not None and column not in register.columns:
                raise NotInCatalog(
                    f"the register {settings['register']} has no column {column}; it has {', '.join(register.columns)}"
                )
    columns = {name: settings[name] for name in ("sensitive", "identity", "entity", "item", "value", "when")}
    for one in (records, register):
        if one is not None:
            _convert(one, settings["value"], _number)
            _convert(one, settings["when"], _day)
    other = None
    if settings["other"] is not None:
        other = Table(
            read_records(settings["other"]), quasi_identifiers=settings["on"], sensitive=settings["sensitive"]
        )
    truth = None if settings["truth"] is None else _truth(settings, records, register)
    return Table(
        records,
        quasi_identifiers=settings["on"] or None,
        register=register,
        truth=truth,
        other=other,
        complete_register=bool(settings["complete_register"]),
        **columns,
    )


def _truth(settings: Mapping[str, Any], records: Records, register: Records | None) -> Any:
    """Return the truth for scoring: a column of the records, or of the register, which is taken out of it.

    Truth and what it names are compared as texts, because one file may be CSV and the other Parquet.
    """
    name, identity, entity = settings["truth"], settings["identity"], settings["entity"]
    if name == identity:
        raise InvalidInput(
            f"truth and identity name the same column {name}; truth is a column of its own with whose record it is",
            name="truth",
        )
    holder = register if register is not None and name in register.columns else records
    found = holder[name].tolist()
    if holder is register or name != entity:
        del holder.columns[name]
    if holder is records:
        if register is None or identity is None:
            return found
        return _texts_among(found, register, identity, "the identities of the register")
    if entity is None or identity is None:
        return found
    entities = _texts_among(found, records, entity, "the entities of the records")
    return dict(zip(holder[identity].tolist(), entities, strict=True))


def _texts_among(found: list[Any], records: Records, column: str, words: str) -> list[Any]:
    """Return truths as texts, as is the column that they name; raise InvalidInput if none of them occurs there."""
    named = records[column]
    named[:] = [None if one is None else str(one) for one in named.tolist()]
    truth = [None if one is None else str(one) for one in found]
    if not {one for one in truth if one is not None} & set(named.tolist()):
        raise InvalidInput(f"no value of the truth is among {words} (column {column})", name="truth")
    return truth


def _convert(records: Records, column: str | None, read: Callable[[Any], Any]) -> None:
    if column is not None and column in records.columns:
        values = records.columns[column]
        cells = [None if isinstance(one, str) and one.strip() in ("", "?") else one for one in values.tolist()]
        values[:] = [read(one) if isinstance(one, str) else one for one in cells]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{text!r} is not a number", name="value") from None


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{text!r} is not a date such as 2024-01-31", name="when") from None


def _statistics(settings: Mapping[str, Any]) -> Any:
    from tacit.attack import Statistics
    from tacit.attack.table_reconstruction import Published, PublishedTables

    document = read_toml(settings["statistics"])
    try:
        _require_keys(document, ("people", "attributes", "statistic", "rule"))
        for one in document["statistic"]:
            _require_keys(one, ("name", "where", "count", "mean", "median", "decimals"))
        for one in document.get("rule", ()):
            _require_keys(one, ("if", "then"))
        attributes = {
            name: range(value["from"], value["to"] + 1) if isinstance(value, dict) else list(value)
            for name, value in document["attributes"].items()
        }
        published = [
            Published(
                one["name"],
                {name: _condition(value) for name, value in one.get("where", {}).items()},
                tuple(one["count"]) if isinstance(one.get("count"), list) else one.get("count"),
                {name: _condition(value) for name, value in one.get("mean", {}).items()},
                one.get("median", {}),
                one.get("decimals"),
            )
            for one in document["statistic"]
        ]
        rules = [
            tuple({name: _condition(value) for name, value in rule[side].items()} for side in ("if", "then"))
            for rule in document.get("rule", ())
        ]
        return Statistics.of_tables(PublishedTables(document["people"], attributes, published, rules))  # type: ignore[arg-type]
    except (KeyError, TypeError, AttributeError):
        raise InvalidInput(
            f"{settings['statistics']} needs people, a table of attributes, and statistics with a name each",
            name="statistics",
        ) from None


def _require_keys(table: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise UnknownName for a key of a table that has no meaning."""
    for name in table.keys() - set(known):
        hint = did_you_mean(name, known, f"use {', '.join(known)}")
        raise UnknownName(f"published statistics have no key {name} here; {hint}", name=name)


def _condition(value: Any) -> Any:
    """Return a condition: a table with `from` or `to` is a range, everything else is itself."""
    if not isinstance(value, dict):
        return value
    _require_keys(value, ("from", "to"))
    return value.get("from"), value.get("to")


def _means(settings: Mapping[str, Any]) -> Any:
    from tacit.attack import Statistics

    means = read_records(settings["means"])
    means.require(["attribute", "mean", "reference"])
    names = [str(one) for one in means["attribute"].tolist()]
    people = [read_records(settings[one]) for one in ("members", "outsiders")]
    members, outsiders = ([[_real(cell) for cell in row] for row in one.rows(names)] for one in people)
    published, reference = ([_real(cell) for cell in means[name].tolist()] for name in ("mean", "reference"))
    return Statistics.of_means(published, reference, members=members, outsiders=outsiders)


def _real(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        raise InvalidInput(f"{cell!r} is not a number", name="means") from None


class MechanismFailed(InvalidInput):
    """The mechanism that is attacked raised an exception of its own."""


def _mechanism(settings: Mapping[str, Any]) -> Any:
    from tacit.attack import Mechanism

    if settings["input"] == settings["neighbour"]:
        raise InvalidInput("input and neighbour are the same, so no output can tell them apart", name="neighbour")
    made = Mechanism(
        _function(settings["function"]),
        settings["input"],
        settings["neighbour"],
        many=bool(settings["many"]),
        samples=settings["samples"],
    )
    made.release = _guarded(made.release)
    return made


def _guarded(release: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose exceptions, also SystemExit, are MechanismFailed."""

    @wraps(release)
    def guarded(*arguments: Any) -> Any:
        try:
            return release(*arguments)
        except (Exception, SystemExit) as error:
            raised = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise MechanismFailed(f"the mechanism raised {raised}", name="function") from error

    return guarded


def _function(written: str) -> Any:
    """Return the function of FILE.py:NAME."""
    import importlib.util
    import sys

    place, _, name = written.rpartition(":")
    path = Path(place)
    if path.suffix != ".py" or not path.is_file():
        raise InvalidInput("write the mechanism as FILE.py:NAME", name="function", value=written)
    title = f"tacit_attacked_{hashlib.sha256(str(path.resolve()).encode(errors='replace')).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(title, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[title] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[title]
        raise InvalidInput(f"{place} cannot be loaded: {type(error).__name__}: {error}", name="function") from None
    if not hasattr(module, name):
        raise UnknownName(f"{place} has no {name}", name="function", value=written)
    return getattr(module, name)


def _model(settings: Mapping[str, Any]) -> Any:
    from tacit.attack import Model

    found = read_records(settings["scores"])
    found.require(["score", "present"])
    scores = [_real(one) for one in found["score"].tolist()]
    return Model(scores, truths(found["present"].tolist()), trainings=settings["trainings"] or "one")


def _synthetic(settings: Mapping[str, Any]) -> Any:
    from tacit.attack import Synthetic

    parts = [read_records(settings[name]) for name in ("real", "synthetic", "control")]
    for name in parts[0].columns:
        held = [one.columns[name] for one in parts if name in one.columns]
        if all(reads_as_number(cell) for cells in held for cell in cells.tolist()):
            for cells in held:
                cells[:] = [None if cell in (None, "") else float(cell) for cell in cells.tolist()]
    return Synthetic(*parts)


def _updates(settings: Mapping[str, Any]) -> Any:
    from tacit.attack import Updates

    rounds, canaries = read_records(settings["rounds"]), read_records(settings["canaries"])
    names = list(rounds.columns)
    canaries.require(["present", *names])
    released, own = ([[_real(cell) for cell in row] for row in one.rows(names)] for one in (rounds, canaries))
    return Updates(released, own, truths(canaries["present"].tolist()))


def json_value(text: str) -> Any:
    """Return an input of a mechanism, written as JSON."""
    try:
        return json.loads(text)
    except RecursionError:
        raise InvalidInput("an input is nested too deep; write 3, 0.5 or [1, 2, 3]", name="input") from None
    except ValueError:
        raise InvalidInput(f"{text!r} is not JSON; write 3, 0.5 or [1, 2, 3]", name="input") from None


TABLE: Final = TargetKind(
    "table",
    (
        TargetOption("records", "file", "The published records, a CSV or Parquet file.", True),
        TargetOption("on", "names", "Columns that an attacker may know from elsewhere (quasi-identifiers)."),
        TargetOption("sensitive", "text", "Column that is to stay secret."),
        TargetOption("register", "file", "File with what the attacker knows: people with the same columns."),
        TargetOption("identity", "text", "Column of the register that names a person."),
        TargetOption("complete_register", "flag", "Everybody in the table is in the register."),
        TargetOption("truth", "text", "Column with whose record it is, used for scoring alone."),
        TargetOption("other", "file", "File with another published table about the people of the register."),
        TargetOption("entity", "text", "Column with whose row it is; a person with several rows is counted once."),
        TargetOption("item", "text", "Column with what was rated, bought or visited."),
        TargetOption("value", "text", "Column with how much."),
        TargetOption("when", "text", "Column with the day."),
    ),
    _table,
    ("risk",),
)
STATISTICS: Final = TargetKind(
    "statistics",
    (TargetOption("statistics", "file", "A TOML file of published statistics.", True),),
    _statistics,
    ("risk",),
)
MEANS: Final = TargetKind(
    "means",
    (
        TargetOption("means", "file", "A CSV file with the columns attribute, mean and reference.", True),
        TargetOption("members", "file", "People in the group, a column for each attribute.", True),
        TargetOption("outsiders", "file", "People outside of the group, with the same columns.", True),
    ),
    _means,
)
MECHANISM: Final = TargetKind(
    "mechanism",
    (
        TargetOption("function", "function", "The mechanism, as FILE.py:NAME: a function of one input.", True),
        TargetOption("input", "json", "One input, as JSON.", True),
        TargetOption("neighbour", "json", "A neighbouring input, as JSON.", True),
        TargetOption("samples", "integer", "How many outputs are drawn for each input."),
        TargetOption("many", "flag", "The function takes an input and a number, and returns so many outputs."),
    ),
    _mechanism,
)
MODEL: Final = TargetKind(
    "model",
    (
        TargetOption("scores", "file", "A CSV file with the columns score and present, a row for each canary.", True),
        TargetOption("trainings", "text", "one: all canaries in one training; independent: a training each."),
    ),
    _model,
)
SYNTHETIC: Final = TargetKind(
    "synthetic",
    (
        TargetOption("synthetic", "file", "The synthetic records, a CSV or Parquet file.", True),
        TargetOption("real", "file", "The records that they were made from, with the same columns.", True),
        TargetOption("control", "file", "Records of the same population that were not used.", True),
    ),
    _synthetic,
)
UPDATES: Final = TargetKind(
    "updates",
    (
        TargetOption("rounds", "file", "A CSV file of released updates, a row for each round.", True),
        TargetOption("canaries", "file", "Updates of canary clients in the same columns, and present (0 or 1).", True),
    ),
    _updates,
)
KINDS: Final = {one.name: one for one in (TABLE, STATISTICS, MEANS, MECHANISM, MODEL, SYNTHETIC, UPDATES)}
