"""`--bot COMMAND` of play, cross and ruin: how it is called; what it does is in tests/e2e."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from arena.cli import Interrupted
from arena.cli import _lab_runs as lab_runs
from arena.cli import _output as output
from arena.games import GAMES
from arena.lab.series import Offence
from arena.sandbox.bot_spec import read_entry
from protocol.errors import ArenaError, UnknownBot
from protocol.messages import Ending, Limits

Run = Callable[..., Any]

AKQ = GAMES["ace_king_queen"]


@pytest.mark.parametrize(
    ("command", "opens"),
    [
        ("cross", "arena.lab.launched.gathered"),
        ("compare", "arena.lab.launched.gathered"),
        ("tournament round_robin", "arena.cli.tournament.Host"),
    ],
)
def test_no_bot_sees_the_keys_of_the_bus(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, opens: str
) -> None:
    for name in ("arena.nk", "lab1.nk", "ca-key.pem", "ca.pem", "bot.py"):
        (tmp_path / name).touch()
    hidden: list[Path] = []

    def opened(*args: Any, **more: Any) -> None:
        hidden.extend(more["hidden"] if "hidden" in more else args[4])
        raise ArenaError("that is all")

    monkeypatch.setattr(opens, opened)
    monkeypatch.setattr("arena.cli.tournament.bus_jobs", lambda *_, **__: contextlib.nullcontext())
    key, ca = str(tmp_path / "arena.nk"), str(tmp_path / "ca.pem")
    bus = ("--bus", "tls://h:1", "--bus-key", key, "--bus-ca", ca)

    assert "that is all" in run(*command.split(), "akq", "nash", "honest", *bus).err
    assert {file.name for file in hidden} == {"arena.nk", "lab1.nk", "ca-key.pem", "ca.pem"}


def test_commands_come_after_the_bots_that_are_named(bot_file: Callable[..., str]) -> None:
    mine = bot_file()
    entries = [read_entry("sh"), read_entry("ann=sh"), read_entry("sh -c mine")]
    guests = lab_runs.guests(AKQ, ["nash", mine, "nash"], entries)

    # The default of the last would be the name of a file that plays, too.
    names = [bot.name for bot in guests]
    assert names == ["nash", mine, "nash", "sh", "ann", "mine-2"]
    assert [bot.program is None for bot in guests] == [True] * 3 + [False] * 3


def test_a_file_that_cannot_play_is_found_out_before_anything_is_launched(
    bot_file: Callable[..., str],
) -> None:
    path = bot_file(game="gin_rummy")

    with pytest.raises(UnknownBot, match="plays gin_rummy, expected a bot for ace"):
        lab_runs.guests(AKQ, [path], [read_entry("sh")])


@pytest.mark.parametrize("how", [KeyboardInterrupt, "cancelled"])
def test_ctrl_c_says_how_far_it_came(how: Any) -> None:
    def playing(progress: output.ProgressCount) -> Coroutine[Any, Any, None]:
        async def play() -> None:
            progress.tick()
            progress.tick()
            if how is KeyboardInterrupt:
                raise KeyboardInterrupt
            raise asyncio.CancelledError

        return play()

    with pytest.raises(Interrupted) as caught:
        lab_runs.run(playing, "Blackjack", 5000, "trial", "--trials")

    assert str(caught.value) == (
        "interrupted after 2 of 5,000 trials, all bots are stopped; "
        "a smaller --trials shortens the run"
    )


def test_who_is_out_is_told_in_a_line_after_the_end_of_its_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stderr = "\n".join([*(f"line {n}" for n in range(99)), "\tat x", "\x1b[2Jthe last"])
    offence = Offence(1, 1, Ending.ILLEGAL, "answered 4", 7, advice="do not", stderr=stderr)
    line = lab_runs.out("ann", offence)
    told = capsys.readouterr().err.splitlines()

    assert line == "ann is eliminated in match 7: illegal: answered 4; do not"
    assert told[-2:] == ["ann:     at x", "ann: \N{REPLACEMENT CHARACTER}[2Jthe last"]
    assert len(told) == 20


def test_an_offence_in_this_process_is_told_as_ever() -> None:
    offence = Offence(0, 0, Ending.CRASH, "seat 1 raised ValueError", 1)

    assert lab_runs.out("ann", offence) == (
        "ann is eliminated in match 1: crash: seat 1 raised ValueError"
    )


def test_only_seeds_that_there_are_are_shown() -> None:
    assert (lab_runs.seed_shown(None), lab_runs.seed_shown(3)) == ("", ", seed 3")


def test_limits_are_only_for_processes() -> None:
    lab_runs.check([read_entry("sh")], None, Limits(bank_ms=0))
    lab_runs.check([], 3, Limits())
