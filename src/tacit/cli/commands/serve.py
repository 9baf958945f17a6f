"""`tacit serve`: answer questions over REST."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tacit.cli.groups import Command
from tacit.cli.output import Screen


@click.command("serve", cls=Command)
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option("--host", help="Where to listen; 127.0.0.1 by default, which only this machine reaches.")
@click.option("--port", type=click.IntRange(0, 65535), help="8321 by default; 0 takes a free one.")
@click.option("--workers", type=click.IntRange(1, 64), help="How many processes answer; one by default.")
@click.option("--certificate", type=click.Path(path_type=Path), help="TLS: the certificate, as PEM.")
@click.option("--key", type=click.Path(path_type=Path), help="TLS: its private key, as PEM.")
@click.option("--postgres", is_flag=True, default=None, help="The ledger lies in PostgreSQL, as for tacit ledger.")
@click.option(
    "--timing-class",
    type=click.FloatRange(0, 60, min_open=True),
    help="Shortest time in seconds after which answers are sent, so that timing tells little.",
)
@click.option("--without-tls", count=True, help="Give it twice to let others connect without encryption.")
@click.option(
    "--demo-for-others", count=True, help="Give it twice to let others connect although the demo has printed passwords."
)
@click.pass_obj
def command(
    screen: Screen,
    /,
    folder: Path,
    timing_class: float | None,
    without_tls: int,
    demo_for_others: int,
    **flags: Any,
) -> None:
    """Serve a folder over REST until Ctrl-C.

    Settings come from server.toml in the folder, from the environment (TACIT_PORT) and from these options, in this
    order of strength. If no one was added yet, an owner is created, and their token is shown once.

    \b
      tacit serve clinic --port 8321
    """
    from tacit.cli.connections import require_folder
    from tacit.server.process import check_bind, free_port, serve
    from tacit.server.settings import settings_of

    require_folder(folder)
    said_often = {"without_tls": without_tls or None, "demo_for_others": demo_for_others or None}
    settings = settings_of(folder, {**flags, **said_often, "timing_class_s": timing_class})
    check_bind(settings)
    settings = free_port(settings)
    said = _first_owner(settings)
    if screen.as_json:
        screen.show_object({"url": settings.url, "folder": str(folder), **said})
    else:
        screen.console.print(f"serving {folder} at {settings.url} (Ctrl-C stops it)", soft_wrap=True)
        if said:
            screen.console.print(
                f"created the person {said['owner']} with the role owner; this token is shown only once:\n\n"
                f"  {said['token']}\n",
                soft_wrap=True,
            )
    serve(settings)


def _first_owner(settings: Any) -> dict[str, str]:
    """Make an owner if nobody is known, and return the owner's name and token."""
    from tacit.server.access import Grant, Role
    from tacit.server.process import opened_access

    with opened_access(settings) as access:
        if not access.is_empty:
            return {}
        access.add_person("owner")
        access.grant("owner", Grant(Role.OWNER))
        return {"owner": "owner", "token": access.create_token("owner", label="made by tacit serve").text}
