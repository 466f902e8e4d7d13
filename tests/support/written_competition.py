"""Competitions that are written into a database as an arena would, without playing them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

import arena
from arena.formats.formats import schedule_of
from arena.formats.spec import Form, Plan, plan_of
from arena.games.catalogue import GAMES, competition_settings
from arena.games.match import MatchResult
from arena.storage.live_results import LiveResults
from arena.storage.store import Act, CompetitionState, Store
from bots.strategy import RandomMixin
from protocol.messages import Ending, Limits, Termination, Verdict

__all__ = ["COMPLETED", "WrittenCompetition", "begun", "names", "offence", "plan", "play"]

COMPLETED = Termination(Ending.COMPLETED)
GAME_OF = {
    Form.ROUND_ROBIN: "ace_king_queen",
    Form.LEAGUE: "three_card_poker",
    Form.ELIMINATION: "high_low",
    Form.LADDER: "gin_rummy",
}


def plan(form: Form, players: Sequence[str], **more: Any) -> Plan:
    game = GAMES[GAME_OF[form]]
    if form is Form.ELIMINATION:
        more = {"seed": "5eed", "house": ("x", "y", "z"), **more}
    return plan_of(game, competition_settings(game, {}), tuple(players), form, **more)


def play(game: str = "ace_king_queen", seed: int = 1, **settings: object) -> MatchResult:
    """A real match between bots that choose at random."""
    strategies = [RandomMixin() for _ in range(GAMES[game].seats)]
    for number, strategy in enumerate(strategies):
        strategy.seed(f"{seed}:{number}")
    return arena.play(game, strategies, settings=settings, seed=seed)


RECORD = play(hands=1).record


def offence(seat: int, kind: Ending = Ending.ILLEGAL) -> Termination:
    """A match that ended by an offence of a seat."""
    return Termination(kind, seat, f"seat {seat + 1} offended")


def names(count: int) -> tuple[str, ...]:
    return tuple(f"bot-{n}" for n in range(count))


def begun(store: Store, line: str) -> WrittenCompetition:
    """One by a line of a case: `round_robin ann ben matches=2 · 1 ann ben 5 -5 · finished`."""
    (form, *words), *acts = (part.split() for part in line.split(" · "))
    fields = dict(word.split("=", 1) for word in words if "=" in word)
    players = [word for word in words if "=" not in word] or names(int(fields.pop("bots")))
    id_, at = fields.pop("id", "a-competition"), float(fields.pop("at", 1000))
    of = plan(Form(form), players, **{name: json.loads(text) for name, text in fields.items()})
    course = WrittenCompetition(store, of, id_, at)
    for act in acts:
        course.does(*act)
    return course


class WrittenCompetition:
    """Writes a competition into a database; every match takes ten seconds."""

    def __init__(
        self, store: Store, plan: Plan, id_: str = "a-competition", at: float = 1000.0
    ) -> None:
        self.store = store
        self.plan = plan
        self.id = id_
        self.now = at
        self.numbers = 0
        store.competition_started(self.id, plan, self.now)
        store.flush()

    def plays(
        self,
        pairing: int,
        players: Sequence[str],
        scores: Sequence[int],
        ended: Termination = COMPLETED,
        versions: tuple[str, ...] = (),
        **evidence: Any,
    ) -> str:
        points = (0,) * len(scores)
        record = msgspec.structs.replace(RECORD, versions=versions or msgspec.UNSET)
        result = MatchResult(tuple(scores), points, ended, record=record)
        return self.notes(pairing, players, result, **evidence)

    def notes(
        self, pairing: int, players: Sequence[str], result: MatchResult, **evidence: Any
    ) -> str:
        self.now += 10
        self.numbers += 1
        match = f"{self.id}-{self.numbers}"
        ended = result.termination
        verdict = None
        if ended.is_offence and ended.seat is not None:
            verdict = Verdict(
                kind=ended.kind,
                match=match,
                game=self.plan.game,
                bot=players[ended.seat],
                seat=ended.seat,
                text=ended.text,
                bank_ms=0,
                limits=Limits(),
                **evidence,
            )
        self.store.match_finished(
            self.id, pairing, match, players, result, self.now - 9, self.now, verdict
        )
        self.store.flush()
        return match

    def act(self, what: str, **more: Any) -> Act:
        return Act(competition=self.id, at=self.now, who="prof", what=what, **more)

    def does(self, *words: str) -> None:
        """A word of a case: `1 ann ben 5 -5` is a match, with `crash=0 event=one` its offence."""
        fields = dict(word.split("=", 1) for word in words if "=" in word)
        match words:
            case "back", number:
                self.takes_back(f"{self.id}-{number}")
            case "remove", name:
                self.removes(name)
            case "wait", seconds:
                self.now += float(seconds)
            case ("running",):
                self.store.state_changed(self.id, CompetitionState.RUNNING, self.act("resume"))
                self.store.flush()
            case (("finished" | "stopped") as state,):
                self.ends(CompetitionState(state), LiveResults(self.store, self.id).ranking)
            case number, *more:
                scores = [int(word) for word in more if word.lstrip("-").isdigit()]
                names = [word for word in more if word[0].isalpha() and "=" not in word]
                told = {name: fields.pop(name) for name in ("event",) if name in fields}
                versions = tuple(fields.pop("versions", "").split(","))
                endings = [offence(int(seat), Ending(kind)) for kind, seat in fields.items()]
                ended = Termination(Ending.VOID) if "void" in names else [*endings, COMPLETED][0]
                if "*" in more:
                    table = next(schedule_of(self.plan))[int(number) - 1]
                    names = [*table.players]
                players = [name for name in names if name != "void"]
                self.plays(int(number), players, scores, ended, versions, **told)

    def takes_back(self, match: str) -> None:
        self.store.taken_back(self.id, match, self.act("void", match=match))
        self.store.flush()

    def removes(self, bot: str) -> None:
        self.store.acted(self.act("remove", bot=bot, text="removed by prof"))
        self.store.flush()

    def ends(self, state: CompetitionState = CompetitionState.FINISHED, ranking: Any = ()) -> None:
        self.store.competition_finished(self.id, self.now, ranking, state)
        self.store.flush()
