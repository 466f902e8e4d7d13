"""`arena bus`: the bus by which other machines run bots for arenas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from arena.cli._bus_options import needs_nats
from arena.cli._results import Found, ResultCommand
from arena.games.statistics import plural
from arena.hosts.bus import ARENA_USER
from protocol.errors import UsageError

__all__ = ["command"]


class _BusFolder(msgspec.Struct, frozen=True):
    folder: str
    addresses: Sequence[str]
    hosts: Sequence[str]
    files: Sequence[str]


@click.group(name="bus", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Set up the bus by which hosts run bots for an arena.

    The bus is a nats-server, which you install and run: `arena bus init` writes its configuration.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _refuse(ctx: click.Context, option: click.Parameter, names: tuple[str, ...]) -> None:
    """Raise `UsageError` for an option of an earlier version."""
    if names:
        gone = option.opts[0]
        raise UsageError(f"{gone} is gone: --host NAME gives a host its key; see also --address")


@command.command("init", cls=ResultCommand, prints=_BusFolder)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--address",
    "addresses",
    metavar="NAME",
    multiple=True,
    help="A name or address by which others reach this machine; can be given again.",
)
@click.option(
    "--host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="A host that gets a key, and runs bots for arenas; can be given again.",
)
@click.option("--worker", multiple=True, hidden=True, expose_value=False, callback=_refuse)
@click.option("--bots-on", multiple=True, hidden=True, expose_value=False, callback=_refuse)
def init(folder: Path, addresses: tuple[str, ...], hosts: tuple[str, ...]) -> Found:
    """Write certificates, keys and a configuration for nats-server into FOLDER.

    It has a CA of its own (ca.pem) and a certificate of the server for each --address, a key for
    arenas (arena.nk) and one for each --host (NAME.nk), and nats-server.conf, which you may edit.

    Again with another --host or --address it adds that and keeps the rest. The server reads it by
    `nats-server --signal reload`.

    A host needs its own NAME.nk and ca.pem, and nothing else of FOLDER.
    """
    with needs_nats():
        from arena.hosts.bus_setup import set_up
    files = set_up(folder, addresses, hosts)
    names, all_addresses = files.hosts(), files.addresses()
    written = sorted(file.name for file in folder.iterdir() if file.is_file())
    document = _BusFolder(str(folder), all_addresses, names, written)
    url = f"tls://{all_addresses[0]}:4222"
    lines = [
        f"{folder}: {', '.join(all_addresses)}; {plural(len(names), 'host')}",
        f"the bus:  nats-server -c {files.server_conf}",
        f"arenas:   --bus {url} --bus-key {files.key(ARENA_USER)} --bus-ca {files.ca}",
        *(
            f"host {name}: arena host --bus {url} --bus-key {name}.nk --bus-ca ca.pem, "
            f"with copies of {files.key(name)} and {files.ca}"
            for name in names
        ),
    ]
    return document, lines
