"""`tacit learn`: train models on tables, keep them, and predict with them."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

from tacit.cli.groups import Group, add_format_option
from tacit.cli.options import ServerAddress, confirm, folder_option, server_options
from tacit.cli.output import Fact, Screen, show_result
from tacit.cli.training import HEADER, model_object, model_row, train

if TYPE_CHECKING:
    from tacit.client.models import RemoteModel
    from tacit.curator.models import KeptModel
    from tacit.privacy.tables import Kind

    Model = KeptModel | RemoteModel

ROWS_AT_ONCE: Final = 1_000
"""Rows of one request for predictions."""


class Models(Protocol):
    """The models of a folder or a server."""

    def all(self) -> Sequence[Model]:
        """Return the models, oldest first."""

    def get(self, model: str) -> Model:
        """Return a model by its id."""

    def remove(self, model: str) -> None:
        """Delete a model."""


class _ServerModels:
    def __init__(self, client: Any) -> None:
        self.all, self.get, self.remove = client.models, client.model, client.remove_model


@contextmanager
def _open(folder: Path, server: ServerAddress | None) -> Iterator[Models]:
    from tacit.cli.backends import open_client, open_curator

    if server is None:
        with open_curator(folder) as curator:
            yield curator.models
    else:
        with open_client(server) as client:
            yield _ServerModels(client)


@click.group("learn", cls=Group)
def command() -> None:
    """Train models on tables, list and export them, and predict with them.

    A training is charged; predictions cost nothing.
    """


command.add_command(train)


@command.command("list")
@folder_option
@server_options
@add_format_option
@click.pass_obj
def list_models(screen: Screen, folder: Path, server: ServerAddress | None) -> None:
    """List the models, oldest first."""
    with _open(folder, server) as models:
        found = models.all()
    screen.show_list("models", found, model_object, HEADER, model_row, "no models; train one with: tacit learn train")


@command.command()
@click.argument("model")
@folder_option
@server_options
@click.pass_obj
def show(screen: Screen, folder: Path, server: ServerAddress | None, model: str) -> None:
    """Show what a model was trained on, what it cost, and its guarantee."""
    from tacit.cli.rendering import cost_text

    with _open(folder, server) as models:
        found = models.get(model)
    if screen.as_json:
        screen.show_object({**model_object(found), "card": found.card})
        return
    facts = [Fact(label, text) for label, text in zip(HEADER, model_row(found), strict=True) if text]
    permit = [] if found.permit is None else [Fact("permit", found.permit)]
    screen.show_facts([*facts, *permit, Fact("cost", cost_text(found.cost), True), Fact("card", found.card)])


@command.command()
@click.argument("model")
@click.argument("file", type=click.Path(path_type=Path))
@folder_option
@server_options
@click.pass_obj
def export(screen: Screen, folder: Path, server: ServerAddress | None, model: str, file: Path) -> None:
    """Write a model as a JSON document to a new file.

    tacit.learn.from_document makes the fitted estimator from it, without the folder or the server.
    """
    import json

    from tacit.storage.files import new_file

    with _open(folder, server) as models:
        found = models.get(model)
        text = json.dumps(dict(found.document))
    with new_file(file) as aside:
        aside.write_text(text, encoding="utf-8")
    show_result(screen, f"wrote {found.estimator_name} {found.id} to {file}", {"model": found.id, "file": str(file)})


@command.command()
@click.argument("model")
@folder_option
@server_options
@click.option("--yes", is_flag=True, help="Remove it without asking for confirmation.")
@click.pass_obj
def remove(screen: Screen, folder: Path, server: ServerAddress | None, model: str, yes: bool) -> None:
    """Delete a model; what was charged for it stays charged."""
    with _open(folder, server) as models:
        found = models.get(model)
        if not yes:
            question = f"delete the {found.estimator_name} {found.id}"
            confirm(screen, f"{question}?", f"this would {question}", "nothing was changed")
        models.remove(found.id)
    show_result(screen, f"removed {found.id}; what was charged stays charged", {"removed": found.id})


@command.command()
@click.argument("model")
@click.argument("rows", type=click.Path(path_type=Path, allow_dash=True))
@folder_option
@server_options
@click.option("--method", metavar="NAME", help="predict, predict_proba, transform or score_samples.")
@add_format_option
@click.pass_obj
def predict(
    screen: Screen, folder: Path, server: ServerAddress | None, model: str, rows: Path, method: str | None
) -> None:
    """Predict from the rows of a CSV file, and write one line for each.

    ROWS is a file whose header names the features, or - for standard input; other columns are not read.

    \b
      tacit learn predict 0f5c… new.csv > predictions.csv
    """
    from tacit.cli.rendering import field, json_value

    with _open(folder, server) as models:
        found = models.get(model)
        values: list[Any] = []
        said = None
        for part in _parts(rows, found):
            said = found.predict(part, method)
            values += said.values
    if said is None:
        from tacit.privacy.errors import EmptyInput

        raise EmptyInput(f"{rows} has no rows", name="rows")
    names = said.names or [found.target if said.method == "predict" and found.target else said.method]
    lines = values if said.names else [[one] for one in values]
    if screen.as_json:
        listed = [dict(zip(names, map(json_value, line), strict=True)) for line in lines]
        screen.show_object({"model": found.id, "method": said.method, "rows": listed})
        return
    screen.show_records(names, [list(map(field, line)) for line in lines])


def _parts(rows: Path, model: Model) -> Iterator[Mapping[str, list[Any]]]:
    """Yield the features of some rows after another, as columns; raise InvalidInput for a file that has none."""
    from tacit.privacy.errors import InvalidInput

    try:
        with sys.stdin if str(rows) == "-" else rows.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            header = reader.fieldnames or ()
            if missing := [name for name in model.features if name not in header]:
                raise InvalidInput(
                    f"{rows} has no column {missing[0]}; the features are {', '.join(model.features)}", name=missing[0]
                )
            while part := list(islice(reader, ROWS_AT_ONCE)):
                yield {
                    name: [_cell(kind, row[name]) for row in part]
                    for name, kind in zip(model.features, model.kinds, strict=True)
                }
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {rows}", name="rows", value=str(rows)) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{rows} cannot be read as CSV in UTF-8: {error}", name="rows", value=str(rows)) from None


def _cell(kind: Kind, text: str | None) -> Any:
    """Return a field of a CSV file as a value of a kind, None if it is empty; what is none stays a text."""
    from tacit.privacy.tables import Kind

    if not text:
        return None
    readers: dict[Kind, tuple[Any, ...]] = {
        Kind.BOOLEAN: ({"true": True, "false": False}.__getitem__,),
        Kind.INTEGER: (int, float),
        Kind.REAL: (int, float),
        Kind.DATE: (date.fromisoformat,),
        Kind.TIME: (datetime.fromisoformat,),
    }
    for read in readers.get(kind, ()):
        try:
            return read(text.strip().lower() if kind is Kind.BOOLEAN else text.strip())
        except (ValueError, KeyError):
            continue
    return text
