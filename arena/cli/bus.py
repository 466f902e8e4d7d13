"""`arena bus`: the bus by which other machines play the arena's matches."""

from __future__ import annotations

from pathlib import Path

import click

from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._bus_options import needs_nats
from arena.hosts.bus import ARENA_USER

__all__ = ["command"]


@click.group(name="bus", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Set up the bus by which workers on other machines play an arena's matches.

    The bus is a nats-server, which you install and run: `arena bus init` writes its configuration.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@command.command(name="init")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--host",
    "hosts",
    multiple=True,
    help="A name or address by which others reach this machine; can be given again.",
)
@click.option(
    "--worker", "workers", multiple=True, help="A worker that gets a key; can be given again."
)
@click.option(
    "--bots-on",
    "bot_hosts",
    multiple=True,
    metavar="NAME",
    help="A host that gets a key, and runs bots for arenas; can be given again.",
)
@options.json_option
def init(
    folder: Path,
    hosts: tuple[str, ...],
    workers: tuple[str, ...],
    bot_hosts: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write certificates, keys and a configuration for nats-server into FOLDER.

    It has a CA of its own (ca.pem) and a certificate of the server for each --host, a key for
    arenas (arena.nk) and one for each --worker (NAME.nk), and nats-server.conf, which you may edit.

    Again with another --worker or --host it adds that and keeps the rest. The server reads it by
    `nats-server --signal reload`.

    A worker needs its own NAME.nk and ca.pem, and nothing else of FOLDER. So does a host of bots,
    whose key is in FOLDER/hosts.

    --json prints {folder, hosts, workers, bots_on, files}.
    """
    with needs_nats():
        from arena.hosts.bus_setup import set_up
    files = set_up(folder, hosts, workers, bot_hosts)
    names, all_hosts = files.workers(), files.hosts()
    document = {
        "folder": str(folder),
        "hosts": all_hosts,
        "workers": names,
        "bots_on": files.bot_hosts(),
        "files": sorted(file.name for file in folder.iterdir() if file.is_file()),
    }
    url = f"tls://{all_hosts[0]}:4222"
    lines = [
        f"{folder}: {', '.join(all_hosts)}; {output.plural(len(names), 'worker')}",
        f"the bus:  nats-server -c {files.server_conf}",
        f"arenas:   --bus {url} --bus-key {files.key(ARENA_USER)} --bus-ca {files.ca}",
        *(
            f"worker {name}: arena worker --bus {url} --bus-key {name}.nk --bus-ca ca.pem, "
            f"with copies of {files.key(name)} and {files.ca}"
            for name in names
        ),
        *(
            f"host {name}: arena host --bus {url} --bus-key {name}.nk --bus-ca ca.pem, "
            f"with copies of {files.host_key(name)} and {files.ca}"
            for name in files.bot_hosts()
        ),
    ]
    output.print_result(document, "\n".join(lines), as_json=as_json)
