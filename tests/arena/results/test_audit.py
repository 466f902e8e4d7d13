"""The audit of competitions: each kind of flaw is found, and said of the right match.

`audit.cases` has what is done to a competition that was played, and what is said of it. A line is of
one that was played anew: its game, fields of its plan and in which pairing seat 1 offends, then what
is changed. Matches, verdicts and places are named by their number; a verdict without one is the last.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, groupby, product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from arena.formats.formats import schedule_of
from arena.formats.schedule import Pairing, RankingPlace
from arena.formats.spec import Form, Plan, Settling
from arena.games.catalogue import game_named
from arena.games.match import MatchResult, Result
from arena.games.settle import Goal
from arena.records.verify import OpenQuestion, RecordCheck
from arena.results.audit import audit, remarks
from arena.storage.store import Act, CompetitionRow, CompetitionState, MatchRow
from protocol.messages import Ending, Limits, Termination, Verdict
from tests.support.cases import CaseFile
from tests.support.rule_cases import value
from tests.support.sample_database import plan, play, play_out, verdict_of, void

CASES = CaseFile(Path(__file__).with_name("audit.cases"))


class PlayedCompetition:
    """A competition that was played, to be damaged."""

    def __init__(self, of: Plan, offender_in: int | None = None) -> None:
        self.matches: list[MatchRow] = []
        self.verdicts: list[Verdict] = []
        self.acts: list[Act] = []
        self.state = CompetitionState.FINISHED
        self.finished_at: float | None = 99.0
        self.plan = of
        self.checks: dict[str, RecordCheck] = {}
        self.ranking = play_out(of, self.add, offender_in)

    def add(self, pairing: Pairing, result: MatchResult, **more: Any) -> None:
        number = len(self.matches) + 1
        fields: dict[str, Any] = {"id": f"m-{number}", "counts": True, **more}
        played = MatchRow(
            number=number,
            competition="c-1",
            pairing=pairing.number,
            game=self.plan.game,
            players=pairing.players,
            result=Result(result.scores, result.points, result.termination),
            started_at=float(number),
            finished_at=number + 0.5,
            digest="",
            **fields,
        )
        self.matches.append(played)
        if result.termination.is_offence:
            self.verdicts.append(verdict_of(played.id, pairing.players, result))

    def change(self, number: int, **fields: Any) -> None:
        """Change fields of the n-th match."""
        self.matches[number - 1] = replace(self.matches[number - 1], **fields)

    def act(self, what: str, at: float, **more: Any) -> None:
        self.acts.append(Act(competition="c-1", at=at, who="eva", what=what, text="why", **more))

    def audited(self) -> list[tuple[str | None, str]]:
        """The flaws that the audit finds, each with its match."""
        row = CompetitionRow(
            id="c-1",
            plan=self.plan,
            state=self.state,
            revision=0,
            started_at=0.0,
            finished_at=self.finished_at,
            ranking=self.ranking,
        )
        found = audit(row, self.matches, self.verdicts, self.acts, self.checks)
        notes = [
            ("note", note.partition(": ")[0]) for note in remarks(row, self.matches, self.acts)
        ]
        return [*((flaw.match, flaw.text) for flaw in found), *notes]

    def do(self, what: str, *words: str) -> None:
        """A word of the cases, with what follows it."""
        fields = dict(field(word) for word in words if "=" in word)
        number = int(words[0]) if words and words[0].isdigit() else 0
        match what, words:
            case "match", (_, "players=turned"):
                self.change(number, players=self.matches[number - 1].players[::-1])
            case "match", _:
                self.change(number, **fields)
            case "void", _:
                self.change(number, result=void(self.plan.game))
            case "ends", (_, kind, seat, text):
                nothing = (0,) * game_named(self.plan.game).seats
                ended = Termination(Ending(kind), int(seat), text)
                self.change(number, result=Result(nothing, nothing, ended))
            case "offends", _:
                result = play(self.plan.game, 9, offender=0)
                self.change(number, result=result)
                match = self.matches[number - 1]
                self.verdicts.append(verdict_of(match.id, match.players, result))
            case "late", (_, seat, *how):
                match, [verdict] = self.matches[number - 1], self.verdicts
                self.change(number, result=replace(match.result, also_out=(int(seat),)))
                late = {"seat": int(seat), "bot": match.players[int(seat)], "text": "late"}
                also = replace(verdict, kind=Ending.ABSENT, **(late | fields))
                self.verdicts += [also] * {"none": 0, "twice": 2}.get("".join(how), 1)
            case "loses-link", events:
                mine = [match for match in self.matches if match.players == ("ann",)]
                for match, event in zip(mine, events, strict=False):
                    ended = Termination(Ending.DISCONNECT, 0, "did not come back")
                    self.change(match.number, result=replace(match.result, termination=ended))
                    verdict = verdict_of(match.id, ("ann",), play(self.plan.game, offender=0))
                    told = replace(verdict, kind=ended.kind, text=ended.text, event=event)
                    self.verdicts.append(told)
            case "won-by", (winner, loser):
                for match in [each for each in self.matches if {*each.players} == {winner, loser}]:
                    if match.result.winner == match.players.index(loser):
                        swapped = replace(match.result, scores=match.result.scores[::-1])
                        self.change(match.number, result=swapped)
            case "back", _:
                self.change(number, counts=False)
                self.act("void", 60.0, match=f"m-{number}")
            case "again", (_, *how):
                result = void(self.plan.game) if how else play(self.plan.game, 9)
                self.add(next(schedule_of(self.plan))[number - 1], result, counts=not how)
            case "add", (_, *players):
                self.add(Pairing(number, tuple(players)), play(self.plan.game, 9))
            case "lose", ("all" | "alone" as which,):
                alone = [match for match in self.matches if len({*match.players}) == 1]
                gone = self.matches if which == "all" else alone
                self.matches = [match for match in self.matches if match not in gone]
            case "lose", _:
                del self.matches[number - 1]
            case "order", _:
                self.matches = [self.matches[int(word) - 1] for word in words]
            case "plan", _:
                self.plan = replace(self.plan, **fields)
            case "state", (state,) if state != self.state:
                self.state, self.ranking, self.finished_at = CompetitionState(state), (), None
                if self.state is CompetitionState.STOPPED:
                    self.finished_at = 50.0
                    self.act("stop", 50.0)
            case "end", (at,):
                self.finished_at = None if at == "never" else float(at)
            case "removed", (bot, at):
                self.act("remove", float(at), bot=bot)
            case "acts", _:
                self.acts.clear()
            case "ranked", names:
                places = enumerate(names, start=1)
                self.ranking = tuple(
                    RankingPlace(rank=n, names=(one,), stage=1) for n, one in places
                )
            case "rank", (_, *how):
                place = [] if how == ["none"] else [replace(self.ranking[number - 1], **fields)]
                self.ranking = (*self.ranking[: number - 1], *place, *self.ranking[number:])
            case "verdict", ("none" | "twice" as how,):
                self.verdicts *= 2 if how == "twice" else 0
            case "verdict", _:
                kept = self.verdicts if words[0] == "more" else self.verdicts[:-1]
                self.verdicts = [*kept, replace(self.verdicts[-1], **fields)]
            case "undealt", _:
                self.checks |= {match: RecordCheck() for match in words}
            case "asked", _:
                [verdict] = self.verdicts
                asked = OpenQuestion(verdict.seat, verdict.asked or "", verdict.legal or "")
                found = None if words == ("none",) else replace(asked, **fields)
                self.checks[verdict.match] = RecordCheck(is_dealt=True, asked=found)
            case "sealed", _:
                for verdict, word in zip(self.verdicts, words, strict=False):
                    asked = OpenQuestion(verdict.seat, verdict.asked or "", verdict.legal or "")
                    self.checks[verdict.match] = RecordCheck(
                        is_dealt=True, asked=asked, events=(word,)
                    )
            case _:
                assert (what, *words) == ("state", self.state), what


def field(word: str) -> tuple[str, Any]:
    """`players=ann,ben` as a row has it."""
    name, _, text = word.partition("=")
    if name in ("players", "house", "names", "not_there"):
        many = tuple(
            f"p{number}" for number in range(1, 1 + int(text or 0) if text.isdigit() else 1)
        )
        return name, many or tuple(filter(None, text.split(",")))
    kinds: dict[str, Callable[[str], Any]] = {
        "kind": Ending,
        "form": Form,
        "limits": lambda ms: Limits(decision_ms=int(ms)),
        "settle": lambda goal: Settling(goal=Goal(goal), level=2.0, most=40),
    }
    return name, kinds.get(name, value)(text)


def played(words: Sequence[str]) -> list[str]:
    """What is said of a line's competition."""
    (game, *of), *changes = (
        [*group] for is_end, group in groupby(words, lambda word: word == "·") if not is_end
    )
    fields = dict(map(field, of))
    offender_in, form = fields.pop("offender_in", None), fields.pop("form", None)
    competition = PlayedCompetition(plan(game_named(game).name, **fields), offender_in)
    competition.plan = replace(competition.plan, form=form or competition.plan.form)
    for what, *more in changes:
        competition.do(what, *more)
    said = [f"{match or 'it'}: {text}" for match, text in competition.audited()]
    runs = [
        [*run] for _, run in groupby(said, lambda text: re.sub(r"[abc](nn|en|em)|\d+", "", text))
    ]
    short = [
        [*run] if len(run) < 3 else [run[0], f"and {len(run) - 1} more like it"] for run in runs
    ]
    return [*chain(*short)] or [f"it fits, {len(competition.matches)} played"]


def audited(line: str) -> Iterator[str]:
    """What is said of a line with each of its alternatives, or with some."""
    found = [played(words) for words in product(*(word.split("|") for word in shlex.split(line)))]
    for text in dict.fromkeys(chain.from_iterable(found)):
        yield text if all(text in each for each in found) else f"some: {text}"


@pytest.mark.parametrize("title", CASES.titles)
def test_the_audit_says(title: str) -> None:
    CASES.check(title, audited)


NO_SEATS = ({"players": ()}, {"players": ("zoe",)}, {"pairing": -5})
NOBODY = ({"result": Result((), (), Termination(Ending.CPU, seat))} for seat in (9, -3))


@pytest.mark.parametrize(
    ("game", "change"),
    [
        *product(["ace_king_queen", "three_card_poker", "high_low"], NO_SEATS),
        *product(["high_low"], NOBODY),
    ],
)
def test_rows_that_no_match_can_have_are_told(game: str, change: dict[str, Any]) -> None:
    """Seats that no pairing has, and offenders without a seat."""
    played = PlayedCompetition(plan(game))
    played.change(1, **change)

    assert played.audited()
