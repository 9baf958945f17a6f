"""`python -m bench.peers`: install the libraries that tacit is compared with."""

from __future__ import annotations

import click

from bench import peers


@click.group()
def main() -> None:
    """Install and list the libraries that tacit is compared with."""


@main.command("list")
def list_peers() -> None:
    """List the peers and whether they are installed."""
    for name in peers.names():
        click.echo(f"{name}\t{'installed' if peers.is_installed(name) else 'not installed'}")


@main.command()
@click.argument("name", type=click.Choice([*peers.names(), "all"]))
def install(name: str) -> None:
    """Make the virtual environment of one peer, or of all that have none yet."""
    for peer in peers.names() if name == "all" else [name]:
        if name == "all" and peers.is_installed(peer):
            continue
        click.echo(f"installing {peer}")
        peers.install(peer)


if __name__ == "__main__":
    main(prog_name="python -m bench.peers")
