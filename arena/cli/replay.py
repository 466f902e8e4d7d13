"""`arena replay`: shows a match as text or as frames, or puts its questions to a bot again."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from arena.cli import _lab_runs as lab_runs
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._found_match import FoundRecord, find_match
from arena.engine.names import versioned
from arena.engine.rules import Game
from arena.lab.in_process import entrant
from arena.records import narrative
from arena.records.seat_transcript import conversation
from arena.sandbox.command import read_program
from protocol.errors import ArenaError, UsageError, in_words, one_line
from protocol.vocabulary import Question, shorten

__all__ = ["command"]

_LONGEST_LINE = 2000


@click.command(name="replay")
@click.argument("match", metavar="MATCH")
@options.db_option("The database that has the match.")
@click.option(
    "--seat", type=click.IntRange(min=1), metavar="N", help="Show only what this seat saw."
)
@click.option(
    "--round", "round_number", type=click.IntRange(min=1), metavar="N", help="Show only this round."
)
@click.option(
    "--bot",
    metavar="BOT",
    help="Put the seat's questions to this bot, up to the first answer that differs: "
    "the name of a house bot, a FILE.py, or a COMMAND as of `arena play --bot`.",
)
@click.option("--seed", metavar="N", help="With --bot: seed a house bot or a FILE.py.")
@click.option(
    "--frames",
    is_flag=True,
    help="With --seat: print the conversation with that seat's bot, "
    "as in protocol/vectors/transcripts/.",
)
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    match: str,
    db: str,
    seat: int | None,
    round_number: int | None,
    bot: str | None,
    seed: str | None,
    frames: bool,
    as_json: bool,
) -> None:
    """Step through a match as text, show what a bot was sent, or put its questions to a bot again.

    MATCH is the id of a match in the database, as a bot is told it or without the seat behind its
    dot, or a file as `arena export` and this command's --json write it. `last` is the match that
    `arena play` or `arena compare` played last on this machine, `last-2` the one before, up to 20;
    with --db, or where the database in this folder has a later one, the last in the database.

    With --seat and --bot a bot on this machine is started, and asked what that seat was asked, with
    the same news; the others answer as they did. It stops at the first answer that differs. The
    exit status is 0 if all were the same, 1 if one differed or the bot failed.

    With --seat and --frames every message between that seat's bot and the arena is printed, from
    `hello` to `over`, as `arena verify` reads it. What no record has is made up: the session, and
    that nothing was late, lost or refused.

    --json prints the match with its record, as `arena verify` reads it; with --bot {same, differs,
    failed}, where `differs` is null or {number, question, recorded, given} and `failed` null or
    {text, number, question, stderr}.
    """
    if bot is not None and seat is None:
        raise UsageError("expected --seat with --bot: whose questions it is to get")
    if seed is not None and bot is None:
        raise UsageError("expected --bot with --seed")
    if frames and (seat is None or bot is not None or round_number or as_json):
        raise UsageError("expected --seat with --frames, and nothing else to show")
    is_told = ctx.get_parameter_source("db") is not click.core.ParameterSource.DEFAULT
    found = find_match(match, db, is_told=is_told)
    if as_json and seat is None:
        _print_record(found)  # which takes no rules
        return
    game = found.rules()
    if seat is not None and seat > game.seats:
        raise UsageError(f"expected a seat from 1 to {game.seats}, got {seat}")
    if bot is not None and seat is not None:
        if round_number is not None:
            raise UsageError("expected no --round with --bot: it is asked everything")
        _ask_bot(found, game, seat - 1, bot, seed, as_json=as_json)
    elif frames and seat is not None:
        _show_frames(found, game, seat - 1)
    elif as_json:
        _print_record(found)
    else:
        _show(_lines(found, None if seat is None else seat - 1, round_number))


def _print_record(found: FoundRecord) -> None:
    document = found.record if found.document is None else found.document
    click.echo(document.to_json())


def _lines(found: FoundRecord, seat: int | None, round_number: int | None) -> Iterator[str]:
    document = found.document
    if document is not None and round_number is None:
        yield f"match {found.name} of {document.competition}, pairing {document.pairing}"
    yield from narrative.tell(
        found.record, found.players, seat=seat, round_number=round_number, verdict=found.verdict
    )


def _show(lines: Iterator[str]) -> None:
    shown = (one_line(line, _LONGEST_LINE) for line in lines)
    if not sys.stdout.isatty():
        for line in shown:
            click.echo(line)
        return
    text = list(shown)
    if len(text) < shutil.get_terminal_size().lines:
        click.echo("\n".join(text))
    else:
        click.echo_via_pager("\n".join(text))


def _show_frames(found: FoundRecord, game: Game, seat: int) -> None:
    """Print a seat's conversation; raises `ArenaError` if the record cannot be played again."""
    try:
        transcript = conversation(
            found.record,
            found.names(game),
            seat,
            f"{found.name}.{seat}",
            limits=found.limits,
            verdict=found.verdict,
            about=_about(found, seat),
        )
    except Exception as error:  # a file from anywhere may be wrong in any way
        why = str(error) if isinstance(error, ArenaError) else in_words(error)
        raise ArenaError(f"match {found.name} cannot be played again: {why}") from None
    click.echo(transcript.to_bytes(), nl=False)


def _about(found: FoundRecord, seat: int) -> str:
    about = f"Seat {seat + 1} in match {found.name}, made up from its record."
    if found.record.worker:
        about += f" Refereed by worker {one_line(found.record.worker)}."
    versions = found.record.versions
    if not versions or len(versions) != len(found.players):
        return about
    return f"{about} Players: {', '.join(map(versioned, found.players, versions))}."


def _ask_bot(
    found: FoundRecord, game: Game, seat: int, bot: str, seed: str | None, *, as_json: bool
) -> None:
    from arena.lab import replay_to_bot

    players = found.names(game)
    start = _program(game, bot, seed)

    async def ask() -> replay_to_bot.ReplayOutcome:
        return await replay_to_bot.replay_to_bot(
            found.record, seat, players, start, found.limits, found.name
        )

    done = lab_runs.run(lambda _: ask(), "asking", 1, "bot", "questions")
    ended = done.ended
    if as_json:
        differs = ended if isinstance(ended, replay_to_bot.FirstDifference) else None
        failed = ended if isinstance(ended, replay_to_bot.BotFailed) else None
        output.print_json({"same": done.same, "differs": differs, "failed": failed})
    same = output.plural(done.same, "answer")
    name = narrative.seat_names(players, game.seats)[seat]
    if ended is None:
        if not as_json:
            click.echo(f"{same}, all as recorded")
        return
    if isinstance(ended, replay_to_bot.FirstDifference):
        what = f"question {ended.number:,} is answered in another way"
        answers = {"recorded": ended.recorded, "given": ended.given}
    else:
        what, answers = f"the bot failed: {ended.text}", {}
        output.print_stderr(name, ended.stderr)
    if not as_json:
        click.echo(f"{same} as recorded")
        if ended.question is not None:
            _explain(game, name, ended.number, ended.question, answers)
    raise ArenaError(what)


def _explain(
    game: Game, name: str, number: int, question: Question[Any], answers: dict[str, Any]
) -> None:
    words = game.vocabulary.asked_words(question)
    click.echo(f"question {number:,}: {words.asked(name, question)}")
    click.echo(f"legal: {words.choices(question)}")
    for whose, answer in answers.items():
        text = answer if isinstance(answer, str) else shorten(answer)
        click.echo(f"{whose}: {text}")


def _is_file(bot: str) -> bool:
    """Whether it is a FILE.py, not a COMMAND such as `python3 mybot.py` or `stdio: ./mybot.py`."""
    if not bot.endswith(".py") or bot.lstrip().startswith("stdio:"):
        return False
    return len(bot.split()) == 1 or Path(bot).is_file()


def _program(game: Game, bot: str, seed: str | None) -> Any:
    """What gives the bot's command line; raises `UsageError` if `bot` cannot be started."""
    from arena.lab import replay_to_bot
    from protocol.strategy import house_bots

    if bot in house_bots(game.name) or _is_file(bot):
        with output.stdout_for_results():
            entrant(game, bot)  # raises now if it cannot be loaded
        return replay_to_bot.program_of(game.name, bot, seed)
    if seed is not None:
        raise UsageError("expected a house bot or a FILE.py with --seed")
    program = read_program(bot)
    return lambda url, name: program
