"""`tacit learn`: train models on tables, keep them, and predict with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

from tacit.cli.groups import Group, add_format_option
from tacit.cli.options import YES, ServerAddress, confirm, confirm_cost, folder_option, server_options
from tacit.cli.output import Fact, Screen, reporting_no_charge, show_facts_beside, show_result, writing_answer

if TYPE_CHECKING:
    from tacit import Cost
    from tacit.client import Client
    from tacit.client.answers import RemotePreview
    from tacit.client.models import RemoteModel
    from tacit.curator import Curator
    from tacit.curator.models import KeptModel, PreparedTraining
    from tacit.engines.protocol import Progress
    from tacit.stats.releases import StatisticPreview

    Model = KeptModel | RemoteModel

WORD: Final = re.compile(r"[A-Za-z_]\w*")
EXAMPLES: Final = {
    "bounds": '{"age": [0, 120]}',
    "categories": '{"sex": ["F", "M"]}',
    "classes": '["F", "M"]',
    "target_bounds": "[0, 120]",
}
"""Parameters as JSON."""
HEADER: Final = ("model", "estimator", "table", "features", "target", "analyst", "trained at")
ID_SHOWN: Final = 12
"""Characters of an id in a table."""
PREFIX: Final = re.compile("[0-9a-f]{6,23}")
"""The beginning of an id, by which a model can be named."""


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

    A training is charged; predictions cost nothing. A model is named by its id, or by at least the first six
    characters of it.
    """


@command.command()
@click.argument("table")
@folder_option
@server_options
@click.option("--estimator", required=True, metavar="NAME", help="An estimator of tacit.learn, such as GaussianNB.")
@click.option("--features", required=True, metavar="A,B", help="The columns that the model predicts from.")
@click.option("--target", metavar="COLUMN", help="The column that the model predicts, if it predicts one.")
@click.option("--epsilon", type=float, required=True, help="Privacy cost of the training.")
@click.option("--delta", type=float, help="What the training takes of the delta, for Gaussian noise.")
@click.option(
    "--set",
    "parameters",
    multiple=True,
    metavar="NAME=JSON",
    help="A parameter of the estimator as NAME=JSON, such as --set bounds='{\"age\": [0, 120]}', --set "
    "target_bounds='[0, 200]', "
    '--set classes=\'["F", "M"]\' or --set max_depth=3.',
)
@click.option("--preview", is_flag=True, help="Show what the training would cost, without training.")
@click.option("--analyst", help="The analyst whose budget is charged as well.")
@click.option("--purpose", default="", help="Purpose, recorded in the ledger.")
@click.option("--yes", is_flag=True, help=YES)
@click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Time limit.")
@add_format_option
@click.option("--card", is_flag=True, help="Also describe the model and its guarantee in plain language.")
@click.pass_obj
def train(
    screen: Screen,
    table: str,
    folder: Path,
    server: ServerAddress | None,
    estimator: str,
    features: str,
    target: str | None,
    epsilon: float,
    delta: float | None,
    parameters: tuple[str, ...],
    preview: bool,
    analyst: str | None,
    purpose: str,
    yes: bool,
    timeout: float | None,
    card: bool,
) -> None:
    """Train a model with noise, charge its cost, and keep it.

    Bounds, categories and classes are those of the catalog unless they are stated with --set. Repeating a training
    costs nothing. tacit learn predict predicts with the model.

    \b
      tacit learn train visits --estimator LinearRegression --features age,sex --target weight --epsilon 1
    """
    from tacit.cli import rendering
    from tacit.cli.output import progress_bar

    columns = [name.strip() for name in features.split(",") if name.strip()]
    typed = TrainingSpec(table, estimator, columns, target, epsilon, delta, _parameters(parameters))
    with reporting_no_charge(), _open_training(folder, server, analyst, typed) as at:
        if preview:
            _show_preview(screen, at.preview())
            return
        if not yes:
            confirm_cost(screen, at.preview())
        with progress_bar(screen) as progress:
            model, cost = at.train(purpose, timeout, progress)
        remaining = at.remaining
        with writing_answer("it was charged, and repeating the training costs nothing"):
            if screen.as_json:
                left = {name: rendering.cost_object(one) for name, one in remaining.items()}
                screen.show_object(
                    {**model_object(model), "cost": rendering.cost_object(cost), "remaining": left, "card": model.card}
                )
                return
            screen.show_records(HEADER, [_listed_row(screen)(model)])
    facts = [Fact("cost", rendering.cost_text(cost), True), *rendering.remaining_facts(remaining, model.analyst)]
    if screen.has_reader:
        screen.show_facts(facts)
    else:
        show_facts_beside(facts)
    if card:
        screen.say(model.card, err=not screen.has_reader)


def _parameters(typed: tuple[str, ...]) -> dict[str, Any]:
    """Return the parameters of an estimator; a plain word that is no JSON is a text."""
    from tacit.cli.value_parsing import pair_of
    from tacit.privacy import strict_json
    from tacit.privacy.errors import InvalidInput

    found: dict[str, Any] = {}
    for name, text in (pair_of(one, "max_iter=20", "NAME=JSON") for one in typed):
        if name in found:
            raise InvalidInput(f"{name} is set twice; set it once", name=name, value=text)
        try:
            found[name] = strict_json.loads(text)
        except InvalidInput:
            if WORD.fullmatch(text) is None:
                example = EXAMPLES.get(name, "5")
                raise InvalidInput(
                    f"{name} must be JSON, such as --set {name}='{example}', not {text!r}", name=name, value=text
                ) from None
            found[name] = text
    return found


@dataclass(frozen=True)
class TrainingSpec:
    """A training, as typed."""

    table: str
    estimator: str
    features: list[str]
    target: str | None
    epsilon: float
    delta: float | None
    parameters: dict[str, Any]


@dataclass
class _FolderTraining:
    """A training at the curator of a folder."""

    curator: Curator
    analyst: str | None
    spec: TrainingSpec

    def _planned(self, **run: Any) -> PreparedTraining:
        from tacit.curator.models import estimator_of

        spec = self.spec
        estimator = estimator_of(spec.estimator, spec.parameters)
        return self.curator.prepare_training(
            *(spec.table, estimator, spec.features, spec.target, spec.epsilon),
            delta=spec.delta,
            analyst=self.analyst,
            **run,
        )

    def preview(self) -> StatisticPreview:
        return self._planned().preview()

    def train(self, purpose: str, timeout_s: float | None, progress: Progress | None) -> tuple[KeptModel, Cost]:
        fitted, kept = self._planned(purpose=purpose, timeout_s=timeout_s, progress=progress).release()
        return kept, fitted.cost

    @property
    def remaining(self) -> dict[str, Cost]:
        dataset = self.curator.table(self.spec.table).table.dataset
        return {dataset: self.curator.budget(dataset, self.analyst).remaining()}


@dataclass
class _ServerTraining:
    """A training at a server, where the token identifies the analyst."""

    client: Client
    spec: TrainingSpec
    model: RemoteModel | None = None

    def preview(self) -> RemotePreview:
        return self.client.training_preview(**vars(self.spec))

    def train(self, purpose: str, timeout_s: float | None, progress: Progress | None) -> tuple[RemoteModel, Cost]:
        run: dict[str, Any] = {"purpose": purpose, "timeout_s": timeout_s, "progress": progress}
        self.model = self.client.train(**vars(self.spec), **run)
        return self.model, self.model.cost

    @property
    def remaining(self) -> dict[str, Cost]:
        return {} if self.model is None else dict(self.model.remaining)


@contextmanager
def _open_training(
    folder: Path, server: ServerAddress | None, analyst: str | None, spec: TrainingSpec
) -> Iterator[_FolderTraining | _ServerTraining]:
    """Open the folder or the server of a training."""
    from tacit.cli.backends import open_client, open_curator

    if server is None:
        with open_curator(folder) as curator:
            yield _FolderTraining(curator, analyst, spec)
        return
    if analyst is not None:
        raise click.UsageError("a server identifies the analyst by the token; leave out --analyst")
    with open_client(server) as client:
        yield _ServerTraining(client, spec)


def _show_preview(screen: Screen, preview: StatisticPreview | RemotePreview) -> None:
    from tacit.cli import rendering

    lines = [one if isinstance(one, str) else one.text for one in preview.lines]
    if screen.as_json:
        screen.show_object({**rendering.quote_object(preview), "explained": lines})
        return
    facts = [Fact("cost", rendering.cost_text(preview), True), *rendering.budget_facts(preview)]
    facts += [Fact("plan", line) for line in lines]
    if screen.has_reader:
        screen.show_facts(facts)
    else:
        screen.show_records(("fact", "value"), [(fact.label, fact.text) for fact in facts])


def model_row(model: KeptModel | RemoteModel) -> list[str]:
    """Return a model as the cells of a table."""
    from tacit.cli.catalog_rendering import printable

    cells = (model.table, ", ".join(model.features), model.target or "", model.analyst or "")
    return [model.id, model.estimator_name, *map(printable, cells), f"{model.trained_at:%Y-%m-%d %H:%M}"]


def _listed_row(screen: Screen) -> Callable[[Model], list[str]]:
    """Return the function that makes the row of a model; a table shows the beginning of its id."""
    if screen.format in ("csv", "markdown"):
        return model_row
    return lambda model: [model.id[:ID_SHOWN], *model_row(model)[1:]]


def _found(models: Models, typed: str) -> Model:
    """Return a model by its id or a beginning of it."""
    return models.get(_whole_id(models, typed))


def _whole_id(models: Models, typed: str) -> str:
    """Return the id of the one model that begins with what was typed, or what was typed."""
    from tacit.privacy.errors import InvalidInput

    if PREFIX.fullmatch(typed) is not None:
        ids = [one.id for one in models.all() if one.id.startswith(typed)]
        if len(ids) > 1:
            raise InvalidInput(f"several models begin with {typed}: {', '.join(ids)}", name="model", value=typed)
        typed = ids[0] if ids else typed
    return typed


def model_object(model: KeptModel | RemoteModel) -> dict[str, Any]:
    """Return a model as a JSON object."""
    from tacit.cli.rendering import cost_object

    return {
        "model": model.id,
        "estimator": model.estimator_name,
        "dataset": model.dataset,
        "table": model.table,
        "features": list(model.features),
        "target": model.target,
        "analyst": model.analyst,
        "permit": model.permit,
        "trained_at": model.trained_at.isoformat(),
        "cost": cost_object(model.cost),
        "price": cost_object(model.price),
    }


@command.command("list")
@folder_option
@server_options
@add_format_option
@click.pass_obj
def list_models(screen: Screen, folder: Path, server: ServerAddress | None) -> None:
    """List the models, oldest first."""
    with _open(folder, server) as models:
        found = models.all()
    screen.show_list(
        "models", found, model_object, HEADER, _listed_row(screen), "no models; train one with: tacit learn train"
    )


@command.command()
@click.argument("model")
@folder_option
@server_options
@click.pass_obj
def show(screen: Screen, folder: Path, server: ServerAddress | None, model: str) -> None:
    """Show what a model was trained on, what it cost, and its guarantee."""
    from tacit.cli.rendering import cost_text

    with _open(folder, server) as models:
        found = _found(models, model)
    if screen.as_json:
        screen.show_object({**model_object(found), "card": found.card})
        return
    facts = [Fact(label, text) for label, text in zip(HEADER, model_row(found), strict=True) if text]
    permit = [] if found.permit is None else [Fact("permit", found.permit)]
    price = [] if found.cost == found.price else [Fact("price of the release", cost_text(found.price))]
    screen.show_facts([*facts, *permit, Fact("cost", cost_text(found.cost), True), *price, Fact("card", found.card)])


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
        found = _found(models, model)
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
    from tacit.privacy.errors import InvalidInput, UnknownName

    with _open(folder, server) as models:
        model = _whole_id(models, model)
        if not yes:
            try:
                question = f"delete the {models.get(model).estimator_name} {model}"
            except UnknownName:
                raise
            except InvalidInput:
                question = f"delete {model}, which cannot be read"
            confirm(screen, f"{question}?", f"this would {question}", "nothing was changed")
        models.remove(model)
    show_result(screen, f"removed {model}; what was charged stays charged", {"removed": model})


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

    ROWS is a file whose header names the features, or - for standard input; other columns are not read. CSV and
    Markdown are written while rows are read; a table and JSON when all of them have been.

    \b
      tacit learn predict 0f5c… new.csv > predictions.csv
    """
    from tacit.cli.feature_files import feature_parts
    from tacit.cli.rendering import field, json_value

    with _open(folder, server) as models:
        found = _found(models, model)
        predictions = (found.predict(part, method) for part in feature_parts(rows, found.features, found.kinds))
        if (first := next(predictions, None)) is None:
            from tacit.privacy.errors import EmptyInput

            raise EmptyInput(f"{rows} has no rows", name="rows")
        names = first.names or [found.target if first.method == "predict" and found.target else first.method]
        lines = (line if first.names else [line] for one in chain([first], predictions) for line in one.values)
        if screen.as_json:
            listed = [dict(zip(names, map(json_value, line), strict=True)) for line in lines]
            screen.show_object({"model": found.id, "method": first.method, "rows": listed})
        else:
            screen.show_records(names, (list(map(field, line)) for line in lines))
