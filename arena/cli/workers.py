"""`arena workers`: the machines that play matches, as they report on the bus."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

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
Ask = Callable[[Callable[[BusOperator], Awaitable[T]]], T]


def _asks(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of all these commands; the command gets `ask`, which asks an operator."""

    @functools.wraps(command)
    def gathered(*args: Any, bus: BusAddress | None, **given: Any) -> Any:
        return command(*args, ask=functools.partial(_on_bus, bus), **given)

    return bus_options(options.json_option(gathered))


@click.group(name="workers", invoke_without_command=True)
@click.pass_context
@_asks
def command(ctx: click.Context, ask: Ask[Sequence[WorkerView]], as_json: bool) -> None:
    """List the machines that play matches: cores, matches, speed, and their latest fault.

    With the commands below a machine begins no more matches, or begins them again, for all arenas
    of the bus. They need the key of an arena.

    --json prints {workers: [{name, state, why, running, slots, played, cores, speed, memory_mib,
    lag_ms, system, isolation, languages, games, last_error, seen_s}]}.
    """
    if ctx.invoked_subcommand is None:
        _show(ask(lambda operator: operator.workers()), as_json)


@command.command(name="drain")
@click.argument("name")
@_asks
def drain(name: str, ask: Ask[WorkerView], as_json: bool) -> None:
    """Let worker NAME begin no more matches; those that it has begun are played to their ends.

    --json prints {worker: {name, state, why, …}}, as the list does.
    """
    view = ask(lambda operator: operator.drain(name, True))
    left = output.plural(view.running, "match")
    output.print_result(
        {"worker": view}, f"{name} begins no more matches; {left} left", as_json=as_json
    )


@command.command(name="resume")
@click.argument("name")
@_asks
def resume(name: str, ask: Ask[WorkerView], as_json: bool) -> None:
    """Let worker NAME begin matches again.

    --json prints {worker: {name, state, why, …}}, as the list does.
    """
    view = ask(lambda operator: operator.drain(name, False))
    output.print_result({"worker": view}, f"{name} begins matches again", as_json=as_json)


def _on_bus(bus: BusAddress | None, task: Callable[[BusOperator], Awaitable[T]]) -> T:
    async def asked() -> T:
        async with opened_bus(bus, "arena workers") as client:
            operator = BusOperator(client)
            await operator.open()
            return await task(operator)

    try:
        return asyncio.run(asked())
    except BusDown as error:
        raise Unreachable(str(error)) from None


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
