"""`arena workers`: the machines that play matches, as they report on the bus."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import click
import msgspec

from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._bus_options import BusAddress, bus_options, opened_bus
from arena.workers.bus import BusDown
from arena.workers.bus_operator import BusOperator
from protocol.errors import Unreachable
from protocol.instructions import WorkerView

__all__ = ["command"]

T = TypeVar("T")


@click.group(name="workers", invoke_without_command=True)
@click.pass_context
@bus_options
@options.json_option
def command(ctx: click.Context, bus: BusAddress, as_json: bool) -> None:
    """List the machines that play matches: cores, matches, speed, and their latest fault.

    The commands below have one begin no more matches, or begin them again, for all arenas of the
    bus. They need the key of an arena.

    --json prints {workers: [{name, state, why, running, slots, played, cores, speed, memory_mib,
    lag_ms, system, isolation, languages, games, last_error, seen_s}]}.
    """
    if ctx.invoked_subcommand is None:
        _show(_on_bus(bus, lambda operator: operator.workers()), as_json)


@command.command(name="drain")
@click.argument("name")
@bus_options
@options.json_option
def drain(name: str, bus: BusAddress, as_json: bool) -> None:
    """Have worker NAME begin no more matches; what it has begun is played to its end.

    --json prints {worker: {name, state, …}}.
    """
    _steer(bus, name, True, as_json)


@command.command(name="resume")
@click.argument("name")
@bus_options
@options.json_option
def resume(name: str, bus: BusAddress, as_json: bool) -> None:
    """Have worker NAME begin matches again.

    --json prints {worker: {name, state, …}}.
    """
    _steer(bus, name, False, as_json)


def _steer(bus: BusAddress, name: str, is_draining: bool, as_json: bool) -> None:
    view = _on_bus(bus, lambda operator: operator.drain(name, is_draining))
    if as_json:
        output.print_json({"worker": msgspec.to_builtins(view)})
    elif is_draining:
        left = output.plural(view.running, "match")
        click.echo(f"{name} begins no more matches; {left} left")
    else:
        click.echo(f"{name} begins matches again")


def _on_bus(address: BusAddress, ask: Callable[[BusOperator], Awaitable[T]]) -> T:
    async def asked() -> T:
        try:
            async with opened_bus(address, "operator") as bus:
                operator = BusOperator(bus)
                await operator.open()
                return await ask(operator)
        except BusDown as error:
            raise Unreachable(str(error)) from None

    return asyncio.run(asked())


def _show(workers: Sequence[WorkerView], as_json: bool) -> None:
    if as_json:
        output.print_json({"workers": msgspec.to_builtins(workers)})
        return
    if not workers:
        click.echo("no worker reports on the bus")
        return
    words = ("worker", "state", "system", "latest fault")
    table = output.new_table(
        "worker", "state", "matches", "played", "cores", "speed", "system", "latest fault",
        words=set(words),
    )  # fmt: skip
    for worker in workers:
        table.add_row(
            worker.name,
            worker.state,
            f"{worker.running} of {worker.slots}",
            f"{worker.played:,}",
            str(worker.cores),
            f"{worker.speed:.1f}",
            worker.system,
            worker.last_error,
        )
    output.print_table("Workers", table)
