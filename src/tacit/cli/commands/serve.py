"""`tacit serve`: serve a folder over REST."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tacit.cli.groups import Command
from tacit.cli.output import Screen


@click.command("serve", cls=Command)
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option("--host", help="Address to listen on; 127.0.0.1 by default, which only this machine can reach.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port; 8321 by default, 0 for any free port.")
@click.option("--workers", type=click.IntRange(1, 64), help="Number of worker processes; 1 by default.")
@click.option("--certificate", type=click.Path(path_type=Path), help="TLS certificate, as PEM.")
@click.option("--key", type=click.Path(path_type=Path), help="Private key of the TLS certificate, as PEM.")
@click.option("--postgres", is_flag=True, default=None, help="The ledger is in PostgreSQL (TACIT_LEDGER_POSTGRES).")
@click.option(
    "--timing-class",
    type=click.FloatRange(0, 60, min_open=True),
    help="Minimum response time of queries in seconds, which limits what timing reveals.",
)
@click.option("--without-tls", count=True, help="Given twice: let other machines connect without encryption.")
@click.option(
    "--demo-for-others",
    count=True,
    help="Given twice: let other machines connect although the demo has printed its passwords.",
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

    Settings come from server.toml in the folder, from environment variables such as TACIT_PORT, and from these options;
    later ones override earlier ones. If there are no people yet, an owner is created and its token is shown once.

    \b
      tacit serve clinic --port 8321
    """
    from tacit.cli.backends import require_folder
    from tacit.server.process import check_bind, free_port, serve
    from tacit.server.settings import settings_of

    require_folder(folder)
    repeated = {"without_tls": without_tls or None, "demo_for_others": demo_for_others or None}
    settings = settings_of(folder, {**flags, **repeated, "timing_class_s": timing_class})
    check_bind(settings)
    settings = free_port(settings)
    owner = _first_owner(settings)
    if screen.as_json:
        screen.show_object({"url": settings.url, "folder": str(folder), **owner})
    else:
        screen.console.print(f"serving {folder} at {settings.url}; press Ctrl-C to stop", soft_wrap=True)
        if owner:
            screen.console.print(
                f"created the person {owner['owner']} with the role owner; the token is shown only once:\n\n"
                f"  {owner['token']}\n",
                soft_wrap=True,
            )
    serve(settings)


def _first_owner(settings: Any) -> dict[str, str]:
    """Create an owner if there are no people, and return the owner's name and token."""
    from tacit.server.access import Grant, Role
    from tacit.server.process import open_access

    with open_access(settings) as access:
        if not access.people.is_empty():
            return {}
        access.people.add("owner")
        access.people.grant("owner", Grant(Role.OWNER))
        return {"owner": "owner", "token": access.tokens.create("owner", label="made by tacit serve").text}
