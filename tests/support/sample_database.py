"""A small database as an arena writes one, with matches of all five games, played here by chance: for tests that read one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from arena.engine.match import MatchResult, MatchState
from arena.engine.shuffle import commitment
from arena.formats.formats import schedule_of
from arena.formats.schedule import Outcome, Pairing
from arena.formats.spec import Form, Plan, form_of
from arena.games import GAMES
from arena.games.replay import reopened
from arena.referee.referee import FAULT
from arena.storage.store import Store
from bots.strategy import choose
from protocol.messages import Ending, Limits, Verdict

SHORT: dict[str, dict[str, Any]] = {
    "ace_king_queen": {"hands": 4},
    "gin_rummy": {"max_rounds": 1},
    "high_low": {"max_shuffles": 1},
    "three_card_poker": {"rounds": 5},
    "blackjack": {"hands": 5, "shuffle": "uniform"},
}
PLAYERS = {"high_low": ("ann", "ben", "cem", "dee", "eva")}


def plan(game: str, **more: Any) -> Plan:
    """A competition of a game, in its usual form, with three bots or five."""
    rules = GAMES[game]
    settings = rules.vocabulary.read_settings(more.pop("settings", SHORT[game]))
    form = form_of(rules)
    fields: dict[str, Any] = {
        "players": PLAYERS.get(game, ("ann", "ben", "cem")),
        "house": ("h1", "h2", "h3") if form is Form.ELIMINATION else (),
        "seed": "17" * 16 if form is Form.ELIMINATION else "",
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
) -> MatchResult:
    """A match as over a network: committed to, with nonces, times and enforced limits.

    Args:
        game: its name.
        number: another one is another match.
        settings: of the game, short ones if not given.
        offender: the seat that gives an illegal answer when it is asked after so many answers.
        after: how many.
        note: what is said with the first answer.
    """
    rules = GAMES[game]
    rng = random.Random(f"{game} {number}")
    seed = rng.randbytes(32)
    match = MatchState(
        rules,
        rules.vocabulary.read_settings(settings or SHORT[game]),
        seed=seed,
        nonces=tuple(f"näh {rng.random()}" for _ in range(rules.seats)),
        enforced=("time",) * rules.seats,
        commitment=commitment(seed),
    )
    while match.pending is not None:
        asked, said = match.pending, len(match.answers)
        if offender == asked.seat and said >= after:
            text = asked.question.refusal("no").args[0]
            match.end(Ending.ILLEGAL, asked.seat, f"seat {asked.seat + 1} {text}")
            break
        value = choose(asked.question.choices, rng)
        match.answer(value, note if said == 0 else None, rng.randrange(20))
    return match.result()


def void(game: str, number: int = 1) -> MatchResult:
    """A match that the arena has spoilt before its first answer."""
    rules = GAMES[game]
    rng = random.Random(f"void {game} {number}")
    seed = rng.randbytes(32)
    match = MatchState(
        rules,
        rules.vocabulary.read_settings(SHORT[game]),
        seed=seed,
        nonces=("",) * rules.seats,
        start=False,
        enforced=("time",) * rules.seats,
        commitment=commitment(seed),
    )
    match.end(Ending.VOID, None, FAULT)
    return match.result()


def verdict_of(match: str, players: Sequence[str], result: MatchResult) -> Verdict:
    """The evidence for a match that ended by an offence."""
    ended = result.termination
    assert ended.seat is not None, "it is one"
    again = reopened(result.record)
    for answer in result.record.answers:
        again.answer(answer)
    waits = again.pending
    question = waits.question if waits and waits.seat == ended.seat else None
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


class SampleWriter:
    """A competition that is being written down; match ids are `<game>-<pairing>`."""

    def __init__(self, store: Store, plan: Plan, competition: str) -> None:
        self.store, self.plan, self.id = store, plan, competition
        self._at = 1_000.0
        store.competition_started(competition, plan, self._at)

    def finished(self, pairing: Pairing, result: MatchResult, match: str | None = None) -> str:
        """A match is over."""
        match = match or f"{self.plan.game}-{pairing.number}"
        self._at += 1.0
        verdict = None
        if result.termination.is_offence:
            verdict = verdict_of(match, pairing.players, result)
        self.store.match_finished(
            self.id,
            pairing.number,
            match,
            pairing.players,
            result,
            self._at,
            self._at + 0.5,
            verdict,
        )
        return match

    def to_the_end(self, offender_in: int | None = None) -> None:
        """Play all that the schedule asks for; in one pairing seat 1 offends."""
        schedule = schedule_of(self.plan)
        out: set[str] = set()
        try:
            stage = next(schedule)
            while True:
                outcomes = []
                for pairing in stage:
                    if not out.isdisjoint(pairing.players):
                        outcomes.append(Outcome(pairing, None))
                        continue
                    offends = 0 if pairing.number == offender_in else None
                    result = play(
                        self.plan.game,
                        pairing.number,
                        settings=self.plan.settings,
                        offender=offends,
                    )
                    self.finished(pairing, result)
                    if offends is not None and self.plan.form is not Form.ELIMINATION:
                        out.add(pairing.players[offends])
                    outcomes.append(Outcome(pairing, result))
                stage = schedule.send(tuple(outcomes))
        except StopIteration as end:
            self.store.competition_finished(self.id, self._at + 1.0, end.value)


def write(file: Path, games: Sequence[str] = tuple(GAMES)) -> Path:
    """A database with a finished competition in each game: with a void match and, but for blackjack, with an offence."""
    with Store(file) as store:
        for number, game in enumerate(games):
            writing = SampleWriter(store, plan(game), f"{game}-{number:08x}")
            first = next(schedule_of(writing.plan))[0]
            writing.finished(first, void(game), f"{game}-void")
            writing.to_the_end(offender_in=None if game == "blackjack" else 2)
    return file
