"""A small database as an arena writes one, with random matches of all games."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from arena.formats.formats import open_stages, schedule_of
from arena.formats.schedule import Outcome, Pairing, Ranking
from arena.formats.spec import Form, Plan, form_of
from arena.games.catalogue import GAMES
from arena.games.match import MatchResult, MatchState
from arena.games.replay import reopened
from arena.games.shuffle import commitment
from arena.referee.referee import FAULT
from arena.storage.store import Store
from arena.web.questions import PersonalMatch
from bots.strategy import choose
from protocol.entry_points import Package
from protocol.games import VOCABULARIES
from protocol.messages import Ending, Limits, Verdict

SHORT: dict[str, dict[str, Any]] = {name: dict(game.rounds(4)) for name, game in GAMES.items()}


def plan(game: str, **more: Any) -> Plan:
    """A competition of a game, in its usual form, with three bots or five."""
    rules = GAMES[game]
    settings = rules.vocabulary.read_settings(more.pop("settings", SHORT[game]))
    form = more.pop("form", form_of(rules))
    fields: dict[str, Any] = {
        "players": ("ann", "ben", "cem", "dee", "eva")[: 3 if rules.seats <= 2 else 5],
        "house": ("h1", "h2", "h3")[: rules.seats - 1] if form is Form.ELIMINATION else (),
        "seed": "17" * 16 if form is Form.ELIMINATION else "",
        "package": msgspec.UNSET if rules.package is None else str(rules.package),
    }
    return Plan(game=game, form=form, settings=msgspec.to_builtins(settings), **{**fields, **more})


def play(
    game: str,
    number: int = 1,
    *,
    settings: dict[str, Any] | None = None,
    offender: int | None = None,
    after: int = 3,
    note: str | None = None,
    versions: tuple[str, ...] = (),
    worker: str = "",
) -> MatchResult:
    """A match as over a network: with a commitment, nonces, times and enforced limits.

    Args:
        game: its name.
        number: each number gives another match.
        settings: of the game, short ones if not given.
        offender: the seat that gives an illegal answer when it is asked after `after` answers.
        after: see `offender`.
        note: comes with the first answer.
        versions: by seat, as where submissions are taken.
        worker: who refereed it, as in records of before.
    """
    rng = random.Random(f"{game} {number}")
    match = _begun(game, rng, settings, is_ready=True, versions=versions)
    while match.pending is not None:
        asked, count = match.pending, len(match.answers)
        if offender == asked.seat and count >= after:
            text = asked.question.refusal("no").args[0]
            match.end(Ending.ILLEGAL, asked.seat, f"seat {asked.seat + 1} {text}")
            break
        value = choose(asked.question.choices, rng)
        match.answer(value, note if count == 0 else None, rng.randrange(20))
    result = match.result()
    if worker:
        record = msgspec.structs.replace(result.record, worker=worker)
        result = msgspec.structs.replace(result, record=record)
    return result


def personal_match(game: str) -> PersonalMatch:
    """A match `p-1` to which a person has sat down."""
    return PersonalMatch(
        match="p-1",
        players=("eva", "house:bot"),
        record=play(game).record,
        started_at=1.0,
        finished_at=2.0,
    )


def void(game: str, number: int = 1) -> MatchResult:
    """A match that a fault of the arena has ended before its first answer."""
    match = _begun(game, random.Random(f"void {game} {number}"), None, is_ready=False)
    match.end(Ending.VOID, None, FAULT)
    return match.result()


def _begun(
    game: str,
    rng: random.Random,
    settings: dict[str, Any] | None,
    *,
    is_ready: bool,
    versions: tuple[str, ...] = (),
) -> MatchState:
    rules = GAMES[game]
    seed = rng.randbytes(32)
    return MatchState(
        rules,
        rules.vocabulary.read_settings(settings or SHORT[game]),
        seed=seed,
        nonces=tuple(f"näh {rng.random()}" if is_ready else "" for _ in range(rules.seats)),
        start=is_ready,
        enforced=("time",) * rules.seats,
        commitment=commitment(seed),
        versions=versions,
    )


@contextmanager
def from_outside(game: str, package: str = "leduc", version: str = "1.0") -> Iterator[None]:
    """Let a game of ours be one of another package for a while."""
    ours = GAMES[game]
    GAMES[game] = msgspec.structs.replace(ours, package=Package(package, version))
    try:
        yield
    finally:
        GAMES[game] = ours


@contextmanager
def missing(game: str) -> Iterator[None]:
    """Let a game be gone for a while."""
    order, words = dict(GAMES), dict(VOCABULARIES)
    del GAMES[game], VOCABULARIES[game]
    try:
        yield
    finally:
        GAMES.clear()
        GAMES.update(order)
        VOCABULARIES.clear()
        VOCABULARIES.update(words)


def verdict_of(match: str, players: Sequence[str], result: MatchResult) -> Verdict:
    """The evidence for a match that ended by an offence."""
    ended = result.termination
    assert ended.seat is not None, "it is an offence"
    again = reopened(result.record)
    for answer in result.record.answers:
        again.answer(answer)
    asked = again.pending
    question = asked.question if asked and asked.seat == ended.seat else None
    return Verdict(
        kind=ended.kind,
        match=match,
        game=result.record.game,
        bot=players[ended.seat],
        seat=ended.seat,
        text=ended.text,
        asked=None if question is None else msgspec.json.encode(question).decode(),
        legal=None if question is None else question.legal_text(),
        got='"no"',
        bank_ms=10_000,
        limits=Limits(),
    )


def play_out(
    plan: Plan, finished: Callable[[Pairing, MatchResult], object], offender_in: int | None = None
) -> Ranking:
    """Play all that a schedule asks for, and return its ranking; in one pairing seat 1 offends."""
    stages = open_stages(plan)
    out: set[str] = set()
    while stage := stages.oldest:
        outcomes = []
        for pairing in stage:
            result = None
            if out.isdisjoint(pairing.players):
                offender = 0 if pairing.number == offender_in else None
                result = play(plan.game, pairing.number, settings=plan.settings, offender=offender)
                finished(pairing, result)
                if offender is not None and plan.form is not Form.ELIMINATION:
                    out.add(pairing.players[offender])
            outcomes.append(Outcome(pairing, result))
        stages.hear(tuple(outcomes))
    return stages.ranking or ()


class SampleWriter:
    """Writes a competition; match ids are `<game>-<pairing>`."""

    def __init__(self, store: Store, plan: Plan, competition: str) -> None:
        self.store, self.plan, self.id = store, plan, competition
        self._at = 1_000.0
        store.competition_started(competition, plan, self._at)

    def finished(self, pairing: Pairing, result: MatchResult, match: str | None = None) -> str:
        """Write a match that is over, and return its id."""
        match = match or f"{self.plan.game}-{pairing.number}"
        self._at += 1.0
        players, times = pairing.players, (self._at, self._at + 0.5)
        is_offence = result.termination.is_offence
        verdict = verdict_of(match, players, result) if is_offence else None
        self.store.match_finished(
            self.id, pairing.number, match, players, result, *times, verdict=verdict
        )
        return match

    def to_the_end(self, offender_in: int | None = None) -> None:
        """Play and write the whole competition; in one pairing seat 1 offends."""
        ranking = play_out(self.plan, self.finished, offender_in)
        self.store.competition_finished(self.id, self._at + 1.0, ranking)


def write(file: Path, games: Sequence[str] = tuple(GAMES)) -> Path:
    """A database with a finished competition of each game, each with a void match and an offence."""
    with Store(file) as store:
        for number, game in enumerate(games):
            writer = SampleWriter(store, plan(game), f"{game}-{number:08x}")
            first = next(schedule_of(writer.plan))[0]
            writer.finished(first, void(game), f"{game}-void")
            writer.to_the_end(offender_in=2)
    return file


def running(
    file: Path, game: str = "", *, played: int = 3, offends: int | None = None, **more: Any
) -> Store:
    """A running competition `c` with some matches; in pairing `offends` seat 1 offends."""
    store = Store(file)
    writer = SampleWriter(store, plan(game or next(iter(GAMES)), **more), "c")
    for pairing in next(schedule_of(writer.plan))[:played]:
        offender = 0 if pairing.number == offends else None
        settings = writer.plan.settings
        result = play(writer.plan.game, pairing.number, settings=settings, offender=offender)
        writer.finished(pairing, result)
    store.flush()
    return store
