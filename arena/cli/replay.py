"""`arena replay`: shows a match as text or as frames, or puts its questions to a bot again."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._arena_pages import pages_options
from arena.games.names import versioned
from arena.games.rules import Game
from arena.games.statistics import plural
from protocol.errors import ArenaError, UsageError, one_line
from protocol.vocabulary import Question

if TYPE_CHECKING:
    from arena.cli._found_match import FoundRecord
    from arena.lab.replay_to_bot import ReplayOutcome

__all__ = ["command"]

_LONGEST_LINE = 2000


@click.command(name="replay")
@click.argument("match", metavar="MATCH", callback=options.read_id)
@pages_options
@options.db_option("The database that has the match.")
@click.option("--seat", metavar="NAME", help="Show only what this seat saw: a name or a number.")
@click.option(
    "--round", "round_number", type=click.IntRange(min=1), metavar="N", help="Show only this round."
)
@click.option(
    "--bot",
    metavar="BOT",
    help="Put the seat's questions to this bot, and show where it answers differently: "
    "the name of a house bot, a FILE.py, or a COMMAND as `arena play --bot` takes it.",
)
@click.option("--seed", metavar="N", help="With --bot: seed a house bot or a FILE.py.")
@click.option(
    "--frames",
    is_flag=True,
    help="With --seat: print the conversation with that seat's bot, "
    "as in protocol/vectors/transcripts/.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
def command(
    match: str,
    db: str,
    seat: str | None,
    round_number: int | None,
    bot: str | None,
    seed: str | None,
    frames: bool,
    as_json: bool,
) -> None:
    """Step through a match as text, show what a bot was sent, or put its questions to a bot again.

    MATCH is the id of a match in the database, as a bot is told it or without the seat behind its
    dot, the link to its page, or a file as `arena export`, the page and this command's --json write
    it. `last` is the match that `arena play` or `arena compare` played last on this machine,
    `last-2` the one before, up to 20; with --db, or where the database in this folder has a later
    one, the last in the database. A long match begins with an index of its rounds.

    With --seat and --bot a bot on this machine is started, and asked what that seat was asked, with
    the same news. After an answer that differs the recorded history goes on: the recorded answer
    stands, and each difference is shown with both. What the other answer would have brought is said
    only where cards and rules alone decide it. A bot that goes by its own answers instead of by the
    question may be astray after the first difference. The exit status is 0 if all were the same, 1
    if some differed or the bot failed.

    The page has the file of one's own seat also while a competition goes on: it has what that seat
    saw. --seat can be left out with it.

    With --seat and --frames every message between that seat's bot and the arena is printed, from
    `hello` to `over`. What no record has is made up: the session, and that nothing was late, lost
    or refused.

    --json prints the match with its record, as `arena verify` reads it; with --bot {same, differs,
    differences, failed}: `differences` is a list of {number, round, question, recorded, given,
    brought, would}, where `brought` and `would` are null if that is not known, `differs` the first
    or null, and `failed` null or {text, number, question, stderr}.
    """
    from arena.cli._found_match import find_match

    if seed is not None and bot is None:
        raise UsageError("expected --bot with --seed")
    if bot is not None and round_number is not None:
        raise UsageError("expected no --round with --bot: it is asked everything")
    found = find_match(match, db)
    if found.seen is not None and seat is None:
        seat = str(found.seen.seat)
    if bot is not None and seat is None:
        raise UsageError("expected --seat with --bot: whose questions it is to get")
    if frames and (seat is None or bot is not None or round_number or as_json):
        raise UsageError("expected --seat with --frames, and nothing else to show")
    if as_json and seat is None:
        _print_record(found)  # needs no rules of the game
        return
    game = found.rules()
    place = None if seat is None else found.seat_of(seat, game)
    if found.seen is not None and (frames or place != found.seen.seat - 1):
        raise UsageError(f"expected a whole record, got what seat {found.seen.seat} saw of a match")
    if bot is not None and place is not None:
        _ask_bot(found, game, place, bot, seed, as_json=as_json)
    elif frames and place is not None:
        _show_frames(found, game, place)
    elif as_json:
        _print_record(found)
    else:
        _show(_told(found, place, round_number))


def _print_record(found: FoundRecord) -> None:
    click.echo((found.seen or found.document or found.record).to_json())


def _told(found: FoundRecord, seat: int | None, round_number: int | None) -> Iterator[str]:
    from arena.records import narrative

    document = found.document
    if document is not None and round_number is None:
        yield f"match {found.name} of {document.competition}, pairing {document.pairing}"
    yield from narrative.tell(
        found.seen or found.record,
        found.players,
        seat=seat,
        round_number=round_number,
        verdict=found.verdict,
        indexed=True,
    )


def _show(lines: Iterator[str]) -> None:
    shown = (one_line(line, _LONGEST_LINE) for line in lines)
    if not sys.stdout.isatty():
        output.print_lines(shown)
        return
    text = list(shown)
    if len(text) < shutil.get_terminal_size().lines:
        click.echo("\n".join(text))
    else:
        click.echo_via_pager("\n".join(text))


def _show_frames(found: FoundRecord, game: Game, seat: int) -> None:
    """Print the frames of a seat; raises `ArenaError` if the record cannot be replayed."""
    from arena.games.replay import playing_again
    from arena.records.transcript import conversation

    with playing_again(f"match {found.name}"):
        transcript = conversation(
            found.record,
            found.names(game),
            seat,
            f"{found.name}.{seat}",
            limits=found.limits,
            verdict=found.verdict,
            about=_about(found, seat),
        )
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
    from arena.cli import _lab_runs as lab_runs
    from arena.lab import replay_to_bot
    from arena.records.captions import seat_names

    players = found.names(game)
    start = _program(game, bot, seed)

    async def ask() -> ReplayOutcome:
        return await replay_to_bot.replay_to_bot(
            found.seen or found.record, seat, players, start, found.limits, found.name
        )

    done = lab_runs.run(lambda _: ask(), lab_runs.Bar("asking", 1, "bot", "questions"))
    name = seat_names(players, game.seats)[seat]
    if done.failed is not None:
        output.print_stderr(name, done.failed.stderr)
    if as_json:
        first = next(iter(done.differences), None)
        output.print_json({**msgspec.structs.asdict(done), "differs": first})
    else:
        _show(_replayed(game, name, done))
    if done.failed is not None:
        raise ArenaError(f"the bot failed: {done.failed.text}")
    if done.differences:
        count = plural(len(done.differences), "question")
        raise ArenaError(f"{count} answered differently")


def _replayed(game: Game, name: str, done: ReplayOutcome) -> Iterator[str]:
    from arena.lab.replay_to_bot import NO_ANSWER

    same = plural(done.same, "answer")
    if not done.differences and done.failed is None:
        yield f"{same}, all as recorded"
        return
    yield f"{same} as recorded, {len(done.differences):,} different"
    for difference in done.differences:
        yield from _explained(game, name, difference.number, difference.question, difference.round)
        words = game.vocabulary.asked_words(difference.question)
        recorded, given = (
            answer if answer == NO_ANSWER else words.answered(difference.question, answer)
            for answer in (difference.recorded, difference.given)
        )
        if difference.would is not None:
            recorded += f", which brought {difference.brought:+,}"
            given += f", which would have brought {difference.would:+,}"
        yield f"  recorded: {recorded}"
        yield f"  given: {given}"
    failed = done.failed
    if failed is not None and failed.question is not None:
        yield from _explained(game, name, failed.number, failed.question)


def _explained(
    game: Game, name: str, number: int, question: Question[Any], round_number: int | None = None
) -> Iterator[str]:
    words = game.vocabulary.asked_words(question)
    where = "" if round_number is None else f", round {round_number:,}"
    yield f"question {number:,}{where}: {words.asked(name, question)}"
    yield f"  legal: {words.choices(question)}"


def _is_file(bot: str) -> bool:
    """Whether `bot` is a FILE.py, not a command like `python3 mybot.py` or `stdio: ./mybot.py`."""
    if not bot.endswith(".py") or bot.lstrip().startswith("stdio:"):
        return False
    return len(bot.split()) == 1 or Path(bot).is_file()


def _program(game: Game, bot: str, seed: str | None) -> Any:
    """Return a function that makes the bot's command line; `UsageError` if it cannot be started."""
    from arena.lab import replay_to_bot
    from arena.lab.in_process import entrant
    from arena.sandbox.command import read_program
    from protocol.strategy import house_bots

    if bot in house_bots(game.name, slow=True) or _is_file(bot):
        with output.stdout_for_results():
            entrant(game, bot)  # raises if the bot cannot be loaded
        return replay_to_bot.program_of(game.name, bot, seed)
    if seed is not None:
        raise UsageError("expected a house bot or a FILE.py with --seed")
    program = read_program(bot)
    return lambda url, name: program
