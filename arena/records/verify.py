"""Checks one match against its record: seal, commitment, cards, answers, result (J6). Pure.

Everything is computed again: the seed is checked against the commitment, each deal against seed and
nonces, each result against deals and answers. Each mismatch is a reason in words that can follow
`match 3f2a-17: `. However broken a record from outside is, nothing is raised. Whether the matches
of a competition are the right ones is checked in `arena/results/audit.py`;
`protocol/cards_and_records.md` says how to do this in another language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from arena.games.catalogue import game_named, mistaken_package, other_rules
from arena.games.match import MatchResult, Record, Result
from arena.games.replay import ended_as, is_dealt, played_through
from arena.games.rules import AskSeat
from arena.games.shuffle import commitment
from arena.records.document import UNREADABLE, MatchDocument, sealed, stored_text
from protocol.errors import ArenaError, UsageError, in_words, one_line
from protocol.messages import Ending, Termination
from protocol.vocabulary import shorten

__all__ = ["OpenQuestion", "PlannedMatch", "RecordCheck", "check", "check_record"]

_SEED = re.compile(r"[0-9a-f]{64}")  # 32 bytes, as `bytes.hex` writes them
_LONGEST_NONCE = 64  # the longest that `ready` accepts
_MOST_REASONS = 4  # one flipped byte may cause dozens


class OpenQuestion(msgspec.Struct, frozen=True):
    """The question that was unanswered when a match was ended, as a verdict has it."""

    seat: int  # from 0
    question: str  # in JSON
    legal: str  # what would have been legal, in words


class RecordCheck(msgspec.Struct, frozen=True):
    """The outcome of a check."""

    reasons: tuple[str, ...] = ()  # the mismatches, in words
    unverified: str | None = None  # why the rules here cannot check it
    is_committed: bool = False  # the seats were told the hash of the seed before play
    is_dealt: bool = False  # there were cards
    made: Result | None = None  # the result of the answers, if there are reasons; None if none
    asked: OpenQuestion | None = None  # the open question at an offence; None if nothing was asked
    events: tuple[str, ...] = ()  # of that offence, and of the other seats out with the offender
    versions: tuple[str, ...] | None = None  # by seat; None if unknown


class PlannedMatch(msgspec.Struct, frozen=True):
    """The game, settings and package that the plan of a competition has for all its matches."""

    game: str
    settings: dict[str, Any]
    package: str | msgspec.UnsetType = msgspec.UNSET


def check(document: MatchDocument, expected: PlannedMatch | None = None) -> RecordCheck:
    """Check a match with its rows, and against its competition's plan if that is known."""
    record, reasons = None, list[str]()
    try:
        record = document.read_record()
    except UsageError as error:
        checked = RecordCheck((str(error),))
    else:
        checked = _checked(record, bytes(document.record), document)
    reasons += checked.reasons
    if record is not None and expected is not None:
        reasons += _planned(record, expected)
    try:
        is_sealed = sealed(document) == document.digest
    except (ValueError, OverflowError):  # numbers that no arena writes
        is_sealed = False
    if not is_sealed:
        reasons.append("its digest does not fit its rows and its record")
    return msgspec.structs.replace(
        checked, reasons=_few(reasons), made=checked.made if reasons else None
    )


def check_record(record: Record) -> RecordCheck:
    """Check a record alone: commitment, nonces, and that cards and answers make its result."""
    checked = _checked(record, record.to_json(), None)
    return msgspec.structs.replace(checked, reasons=_few(checked.reasons), made=None)


def _checked(record: Record, raw: bytes, document: MatchDocument | None) -> RecordCheck:
    """Check a record, and the rows if given; `made` is set even without reasons."""
    unverified = other_rules(record.game, record.package)
    asked = None
    again: MatchResult | str | None = None
    if unverified is None:
        try:
            match = played_through(record)
            asked = _asked(record, match.pending)
            again = ended_as(record, match)
        except ArenaError as error:
            again = one_line(str(error))
        except Exception as error:  # a record from outside may be broken in any way
            again = in_words(error)
    made = None
    if isinstance(again, MatchResult):
        made = Result(again.scores, again.points, again.termination, again.also_out)
    return RecordCheck(
        tuple(_fitting(record, raw, document, asked, again)),
        unverified,
        record.commitment is not None,
        is_dealt(record),
        made,
        asked,
        record.events or (),
        record.versions or (),
    )


def _fitting(
    record: Record,
    raw: bytes,
    document: MatchDocument | None,
    asked: OpenQuestion | None,
    again: MatchResult | str | None,
) -> Iterator[str]:
    """The mismatches; `again` is the replayed result, or why the record cannot be replayed."""
    if (why := mistaken_package(record.game, record.package)) is not None:
        yield why
    yield from _cards(record)
    if document is not None:
        yield from _rows(record, document)
    if isinstance(again, MatchResult):
        told = list(_results(record, again, "its record's"))
        if document is not None:
            rows = list(_results(_of_rows(document), again, "its"))
            told = rows or told  # usually the rows were made from the record
        yield from told
        yield from _offended(record, asked)
        if not told and not _is_same(again.record, record, raw):
            yield "its record is not what its cards and answers make"
        return
    if again is not None:
        yield f"it cannot be played again: {again}"
    if document is not None:
        yield from _results(_of_rows(document), record, "its", "the record says")


def _asked(record: Record, pending: AskSeat | None) -> OpenQuestion | None:
    """The question left open by the last answer, if an offence ended a match with dealt cards."""
    if pending is None or not (record.termination.is_offence and is_dealt(record)):
        return None
    text = msgspec.json.encode(pending.question).decode()
    return OpenQuestion(pending.seat, text, pending.question.legal_text())


def _offended(record: Record, asked: OpenQuestion | None) -> Iterator[str]:
    """Check an offence: an illegal answer must be by the seat that was asked; others need not."""
    ended = record.termination
    if ended.kind is not Ending.ILLEGAL or asked is None or ended.seat is None:
        return
    if ended.seat != asked.seat and 0 <= ended.seat < len(record.scores):
        yield f"its ending says {_ended(ended)}, but seat {asked.seat + 1} was asked"


def _cards(record: Record) -> Iterator[str]:
    if record.seed is not None:
        if _SEED.fullmatch(record.seed) is None:
            yield f"its seed is {shorten(record.seed)}, expected 64 digits of hex"
        elif record.commitment not in (None, commitment(bytes.fromhex(record.seed))):
            yield "its commitment is not the hash of its seed"
    if record.times_ms or record.commitment is not None:
        times, answers = len(record.times_ms), len(record.answers)
        if times != answers:
            yield f"it has {times:,} times for {answers:,} answers"
    if record.commitment is not None or record.nonces:  # otherwise no seat was asked for a nonce
        yield from _nonces(record)


def _nonces(record: Record) -> Iterator[str]:
    try:
        seats = game_named(record.game).seats
    except UsageError:
        return  # the replay reports it
    if len(record.nonces) != seats:
        yield f"it has {len(record.nonces)} nonces for {seats} seats"
    for seat, nonce in enumerate(record.nonces, start=1):
        if len(nonce) > _LONGEST_NONCE:
            yield f"the nonce of seat {seat} has more than {_LONGEST_NONCE} characters"
        elif not nonce and is_dealt(record):
            yield f"cards were dealt without a nonce of seat {seat}"


def _rows(record: Record, document: MatchDocument) -> Iterator[str]:
    """The differences between the rows and the record, apart from the result."""
    if record.seed is None:
        yield "its cards were given, expected a seed that they were drawn from"
    if document.game != record.game:
        yield f"its game says {shorten(document.game)}, the record {shorten(record.game)}"
    if len(document.players) != len(record.scores):
        yield f"it has {len(document.players)} players for {len(record.scores)} seats"
    if record.versions and len(record.versions) != len(record.scores):
        yield f"it has {len(record.versions)} versions for {len(record.scores)} seats"


def _planned(record: Record, expected: PlannedMatch) -> Iterator[str]:
    if record.game != expected.game:
        yield f"it was a match of {shorten(record.game)}, its competition is in {expected.game}"
        return
    # The version may differ from the plan's, as a competition may go on with a new one.
    played, planned_by = map(_package_name, (record.package, expected.package))
    if played != planned_by:
        yield f"it was played by {_whose(played)}, its competition is of {_whose(planned_by)}"
    if record.settings != expected.settings:
        planned = _in_full(expected)
        odd = sorted(
            name
            for name in {*record.settings, *planned}
            if record.settings.get(name, ...) != planned.get(name, ...)
        )
        if odd:
            names = ", ".join(map(shorten, odd))
            yield f"it was played by other settings than its competition: {names}"


def _package_name(package: str | msgspec.UnsetType) -> str | None:
    return package.rpartition(" ")[0] if isinstance(package, str) else None


def _whose(package: str | None) -> str:
    return "a game of ours" if package is None else f"the package {shorten(package)}"


def _in_full(expected: PlannedMatch) -> dict[str, Any]:
    """The planned settings, with the defaults that plans from before version 0.2 leave out."""
    try:
        vocabulary = game_named(expected.game).vocabulary
        full: dict[str, Any] = msgspec.to_builtins(vocabulary.read_settings(expected.settings))
    except UsageError:
        return expected.settings  # the audit of the schedule reports it
    return full


def _results(
    said: Result | Record, found: Result | Record, whose: str, by: str = "the answers make"
) -> Iterator[str]:
    yield from _numbers(said.scores, found.scores, f"{whose} score", by)
    yield from _numbers(said.points, found.points, f"{whose} points", by)
    if _stored(said.termination) != _stored(found.termination):
        mine, other = _ended(said.termination), _ended(found.termination)
        yield f"{whose} ending says {mine}, {by} {other}"
    if (said.also_out or ()) != (found.also_out or ()):
        yield f"{whose} ending does not say who did not come either, {by} it"
    ended, seats = said.termination, len(found.scores)
    if ended.is_offence != (ended.seat is not None):
        yield f"{whose} ending says {_ended(ended)}, which cannot be"
    elif ended.seat is not None and not 0 <= ended.seat < seats:
        yield f"{whose} ending says {_ended(ended)}, of {seats}"


def _numbers(said: Sequence[int], found: Sequence[int], what: str, by: str) -> Iterator[str]:
    if len(said) != len(found):
        yield f"{what} is of {len(said)} seats, {by} {len(found)}"
        return
    for seat, (one, other) in enumerate(zip(said, found, strict=True), start=1):
        if one != other:
            where = "" if len(said) == 1 else f" at seat {seat}"
            yield f"{what}{where} says {shorten(one, 30)}, {by} {shorten(other, 30)}"


def _ended(ended: Termination) -> str:
    seat = "" if ended.seat is None else f" of seat {ended.seat + 1}"
    text = f" ({one_line(ended.text, 80)})" if ended.text else ""
    return f"{ended.kind.value}{seat}{text}"


def _stored(ended: Termination) -> Termination:
    return msgspec.structs.replace(ended, text=stored_text(ended.text))


def _of_rows(document: MatchDocument) -> Result:
    return Result(document.scores, document.points, document.termination, document.also_out)


def _is_same(again: Record, record: Record, raw: bytes) -> bool:
    """Whether a replay gives the same bytes.

    Records from before version 0.2 have fewer fields. One from before a release that has brought a
    setting lacks it, and its default leaves the game as it was.
    """
    settings = {name: each for name, each in again.settings.items() if name in record.settings}
    again = msgspec.structs.replace(again, settings=settings)
    made = again.to_json()
    if made == raw:
        return True
    try:
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except UNREADABLE:  # broken in a field that `Record` does not read
        return False
    return "commitment" not in fields and made == record.to_json()


def _few(reasons: Sequence[str]) -> tuple[str, ...]:
    """The first reasons, each once, and the number of the others."""
    reasons = tuple(dict.fromkeys(reasons))
    if len(reasons) <= _MOST_REASONS:
        return reasons
    more = len(reasons) - _MOST_REASONS + 1
    return (*reasons[: _MOST_REASONS - 1], f"and {more:,} reasons more")
