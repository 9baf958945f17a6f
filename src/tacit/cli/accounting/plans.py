"""Events from the command line: in the notation, as JSON, or from a file with one of either a line."""

from __future__ import annotations

from pathlib import Path

import click

from tacit.privacy import events, notation
from tacit.privacy.errors import EmptyInput, InvalidInput, MixedRelations, TooLarge
from tacit.privacy.events import Event
from tacit.privacy.relations import Relation


def read_plan(text: str | None, file: Path | None, relation: str | None) -> Event:
    """Read the event that a command is about from its argument, or from the lines of a file, composed."""
    stated = None if relation is None else Relation(relation)
    if text is not None and file is None:
        return read_event(text, stated)
    if file is not None and text is None:
        return _composed(_lines(file), stated)
    raise click.UsageError("Name an event or a --file, one of the two.", click.get_current_context(silent=True))


def read_event(text: str, relation: Relation | None) -> Event:
    """Read one event, whose JSON form starts with a brace and states its relation itself."""
    if not text.lstrip().startswith("{"):
        return notation.parse(text, relation=relation)
    event = events.from_json(text)
    if relation is not None and event.relation is not relation:
        raise MixedRelations(f"the event is written under {event.relation}, and --relation says {relation}")
    return event


def _composed(lines: list[str], relation: Relation | None) -> Event:
    read = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                read.append(read_event(line, relation))
            except InvalidInput as error:
                raise type(error)(f"line {number}: {error.message}") from error
    if not read:
        raise EmptyInput("the file holds no event; write one a line", name="file")
    return read[0] if len(read) == 1 else events.Composed(tuple(read))


def _lines(file: Path) -> list[str]:
    try:
        with click.open_file(str(file), "rb") as stream:
            content: bytes = stream.read(events.EVENT_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}", name="file", value=file) from error
    if len(content) > events.EVENT_BYTES_MAX:
        raise TooLarge(f"a file of events takes at most {events.EVENT_BYTES_MAX:,} bytes", name="file", value=file)
    try:
        return content.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} is not a text in UTF-8", name="file", value=file) from None
