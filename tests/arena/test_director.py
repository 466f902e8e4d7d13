"""Competitions without sockets: the bots answer in this process, one turn of the event loop later."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from arena.director import Competition, Listener, Report
from arena.games import GAMES
from arena.gateway import Gateway
from arena.ledger import Ledger
from arena.match import MatchResult, Result
from arena.plan import Form, form_of, plan_of
from arena.player import Player
from arena.store import Act, Played, State, Store
from arena.verdict import Finding
from bots.strategy import choose
from protocol.errors import ArenaError, StoreFailed
from protocol.messages import (
    Answer,
    Ask,
    Ending,
    Limits,
    Match,
    Mechanism,
    Ready,
    Verdict,
)
from protocol.vocabulary import Range

if TYPE_CHECKING:
    from tests.arena.conftest import Bot, House

Plays = Callable[[Ask], object]

SHORT: dict[str, dict[str, object]] = {
    "ace_king_queen": {"hands": 4},
    "gin_rummy": {"max_rounds": 1},
    "high_low": {"max_shuffles": 1},
    "three_card_poker": {"rounds": 3},
    "blackjack": {"hands": 3},
}
SOON = 0.001
"""For bots that do not come: nobody waits for them."""

TIMEOUT_S = 20.0


def first_legal(ask: Ask) -> object:
    legal = ask.question.choices
    return legal.min if isinstance(legal, Range) else legal[0]


def illegal(ask: Ask) -> object:
    return "all in"


class Book:
    """Stands in for the store: keeps what it is given."""

    def __init__(self) -> None:
        self.matches: list[tuple[tuple[str, ...], MatchResult]] = []
        self.verdicts: list[Verdict] = []
        self.rows: list[Played] = []
        self.acts: list[Act] = []
        self.finished: list[Any] = []
        self.fails_at: int | None = None
        self.on_match: Callable[[], None] = lambda: None

    def match_finished(
        self,
        competition: str,
        pairing: int,
        match: str,
        players: tuple[str, ...],
        result: MatchResult,
        started_at: float,
        finished_at: float,
        verdict: Verdict | None = None,
    ) -> None:
        if len(self.matches) == self.fails_at:
            raise StoreFailed("the disk is full")
        self.matches.append((players, result))
        self.rows.append(
            Played(
                number=len(self.rows) + 1,
                id=match,
                competition=competition,
                pairing=pairing,
                counts=result.termination.kind is not Ending.VOID,
                game=result.record.game,
                players=players,
                result=Result(result.scores, result.points, result.termination),
                started_at=started_at,
                finished_at=finished_at,
                digest="",
            )
        )
        if verdict is not None:
            self.verdicts.append(verdict)
        self.on_match()

    def competition_finished(self, *row: Any) -> None:
        self.finished.append(row)

    def acted(self, act: Act) -> None:
        self.acts.append(act)

    def state_changed(self, competition: str, state: State, act: Act) -> None:
        self.acts.append(act)

    def taken_back(self, competition: str, match: str, act: Act) -> None:
        self.acts.append(act)
        self.rows = [
            msgspec.structs.replace(row, counts=row.counts and row.id != match)
            for row in self.rows
        ]

    def results(self) -> list[Played]:
        """Those that count."""
        return [row for row in self.rows if row.counts]

    def counted(self) -> Counter[tuple[str, ...]]:
        """How often which bots have met in a match that ran its course."""
        return Counter(
            tuple(sorted(players))
            for players, result in self.matches
            if result.termination.kind is Ending.COMPLETED
        )


class _Heard(Listener):
    """Keeps what a competition tells."""

    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    def ruled(self, verdict: Verdict) -> None:
        self._hall.told.append(verdict)

    def told(self, text: str) -> None:
        self._hall.lines.append(text)


class Hall:
    """Bots that are connected, and the competitions that they play."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.players: dict[str, Player] = {}
        self.book = Book()
        self.competition: Competition | None = None
        self.most_chairs: Counter[str] = Counter()
        self.called: list[str] = []
        self.heard: list[str] = []
        self.told: list[Verdict] = []
        self.lines: list[str] = []
        self._plays: dict[Player, tuple[Bot, Plays]] = {}

    def comes(
        self, name: str, plays: Plays = first_legal, tables: int = 1, there: bool = True
    ) -> Bot:
        """A bot connects."""
        bot = self.house.bot(name, tables=tables, on_dirty=self._serve_soon)
        self._plays[bot.player] = (bot, plays)
        self.players[name] = bot.player
        self._serve_soon(bot.player)
        if self.competition is not None:
            self.competition.changed()
        return bot

    def offends(self, name: str, finding: Finding) -> None:
        """A bot is gone for good by an offence that was not found at a table, as the gateway would rule."""
        player = self.players[name]
        player.leaving = True
        self.house.conduct.offence(player, finding)
        del self.players[name]
        if self.competition is not None:
            self.competition.offended(name, finding)
            self.competition.changed()

    def compete(
        self,
        *names: str,
        game: str = "ace_king_queen",
        call_house: Callable[[str, str], Awaitable[None]] | None = None,
        **plan: Any,
    ) -> Competition:
        rules = GAMES[game]
        settings = rules.vocabulary.read_settings(
            {**SHORT[game], **(plan.pop("settings", {}))}
        )
        if rules.seats == 4:
            plan = {
                "seed": "5" * 64,
                "house": ("house-0", "house-1", "house-2"),
                **plan,
            }
        state = {name: plan.pop(name, ()) for name in ("earlier", "acts", "verdicts")}
        is_attended = plan.pop("is_attended", False)
        gateway = SimpleNamespace(players=self.players, conduct=self.house.conduct)
        ledger = Ledger(
            "c",
            plan_of(rules, settings, names, **plan),
            cast(Store, self.book),
            **state,
        )
        self.competition = Competition(
            ledger,
            cast(Gateway, gateway),
            lambda: 0.0,
            call_house or self._call_house,
            _Heard(self),
            is_attended=is_attended,
        )
        return self.competition

    async def play(self, *names: str, **plan: Any) -> Report:
        async with asyncio.timeout(TIMEOUT_S):
            return await self.compete(*names, **plan).run()

    async def _call_house(self, game: str, name: str) -> None:
        self.called.append(name)
        self.comes(name)

    def _serve_soon(self, player: Player) -> None:
        asyncio.get_running_loop().call_soon(self._serve, player)

    def _serve(self, player: Player) -> None:
        if player not in self._plays:
            return  # it is being made
        bot, plays = self._plays[player]
        self.most_chairs[player.name] = max(
            self.most_chairs[player.name], len(player.chairs)
        )
        for message in bot.reads():
            if isinstance(message, Match):
                self.house.say(bot, Ready(message.match, "nonce"))
            elif isinstance(message, Ask):
                self.heard.append(player.name)
                value = plays(message)
                if value is not None:
                    answer = Answer(message.match, message.ask, cast(Any, value))
                    self.house.say(bot, answer)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    asyncio.run(main())


def failing(times: int) -> Any:
    """Ace-King-Queen whose first matches fail."""
    sound, left = GAMES["ace_king_queen"], [times]

    def rules(*arguments: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise KeyError("a fault in the rules")
        return (yield from sound.rules(*arguments))

    return msgspec.structs.replace(sound, rules=rules)


# --- forms ---


@pytest.mark.parametrize(
    ("game", "form"),
    [
        ("ace_king_queen", Form.ROUND_ROBIN),
        ("gin_rummy", Form.ROUND_ROBIN),
        ("high_low", Form.ELIMINATION),
        ("three_card_poker", Form.LEAGUE),
        ("blackjack", Form.LEAGUE),
    ],
)
def test_every_game_has_its_form(game: str, form: Form) -> None:
    assert form_of(GAMES[game]) is form


def test_K1_in_a_round_robin_every_bot_meets_every_other(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        for name in ("ann", "ben", "cem"):
            hall.comes(name)
        report = await hall.play("ann", "ben", "cem", matches=2)

        pairs = {("ann", "ben"): 2, ("ann", "cem"): 2, ("ben", "cem"): 2}
        assert hall.book.counted() == pairs
        assert report.played == 6
        assert {row.name for row in report.standings} == {"ann", "ben", "cem"}
        assert report.cross_table["ann"]["ben"].played == 2
        assert report.verdicts == ()
        assert len(hall.book.finished) == 1

    run(scenario)


def test_A10_every_bot_meets_itself_if_it_has_two_tables(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        hall.comes("ann", tables=2)
        hall.comes("ben", tables=1)
        await hall.play("ann", "ben", with_itself=True)

        assert hall.book.counted() == {("ann", "ann"): 1, ("ann", "ben"): 1}

    run(scenario)


@pytest.mark.parametrize("game", ["three_card_poker", "blackjack"])
def test_K3_in_a_league_every_bot_meets_the_dealer(house: House, game: str) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        hall.comes("ann")
        hall.comes("ben", tables=3)
        report = await hall.play("ann", "ben", game=game, matches=5)

        assert hall.book.counted() == {("ann",): 5, ("ben",): 5}
        assert [row.played for row in report.standings] == [5, 5]

    run(scenario)


def test_K2_an_elimination_goes_on_to_its_final_with_house_bots(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        names = tuple(f"bot {number}" for number in range(6))
        for name in names:
            hall.comes(name)
        report = await hall.play(*names, game="high_low")

        placed = [name for place in report.ranking for name in place.names]
        assert sorted(placed) == sorted(names)
        assert report.ranking[0].rank == 1
        assert report.standings == ()
        assert set(hall.called).isdisjoint(names)
        assert hall.book.finished[0][2] == report.ranking

    run(scenario)


def test_no_bot_gets_more_matches_at_once_than_it_has_tables(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        names = tuple(f"bot {number}" for number in range(5))
        for number, name in enumerate(names, start=1):
            hall.comes(name, tables=number)
        await hall.play(*names, matches=4)

        assert sum(hall.book.counted().values()) == 40
        for number, name in enumerate(names, start=1):
            assert 1 <= hall.most_chairs[name] <= number

    run(scenario)


def test_a_slow_bot_delays_nothing_but_its_own_matches(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        held: list[Ask] = []
        names = ("slow", "ann", "ben", "cem")
        slow = hall.comes("slow", lambda ask: held.append(ask))
        for name in names[1:]:
            hall.comes(name, tables=2)
        task = asyncio.create_task(hall.play(*names, matches=2))
        while sum(hall.book.counted().values()) < 6:
            await asyncio.sleep(0)

        assert not any("slow" in players for players in hall.book.counted())

        while not task.done():
            for ask in held:
                house.answer(slow, ask)
            held.clear()
            await asyncio.sleep(0)

        assert sum(hall.book.counted().values()) == 12

    run(scenario)


def test_its_progress_can_be_watched(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        hall.comes("ann")
        competition = hall.compete("ann", game="blackjack", matches=7)
        seen = {competition.settled}
        task = asyncio.create_task(competition.run())
        while not task.done():
            await asyncio.sleep(0)
            seen.add(competition.settled)

        assert seen == set(range(8))
        assert competition.scheduled == 7

    run(scenario)


# --- offenders ---


def test_J3_an_offender_is_out_and_nobody_else_is_harmed(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        names = ("ann", "ben", "cem", "rogue")
        for name in names[:3]:
            hall.comes(name, tables=4)
        hall.comes("rogue", illegal, tables=8)
        report = await hall.play(*names, matches=4)

        pairs = {("ann", "ben"): 4, ("ann", "cem"): 4, ("ben", "cem"): 4}
        assert hall.book.counted() == pairs
        assert [verdict.bot for verdict in report.verdicts] == ["rogue"]
        assert report.standings[-1].name == "rogue"
        assert report.standings[-1].eliminated.kind is Ending.ILLEGAL
        assert all(row.played == 8 for row in report.standings[:-1])
        assert house.conduct.tables == ()

    run(scenario)


def test_J3_what_an_offender_was_still_playing_is_void(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        hall.comes("ann", lambda ask: None, tables=8)
        hall.comes("rogue", illegal, tables=8)
        await hall.play("ann", "rogue", matches=6)

        kinds = Counter(result.termination.kind for _, result in hall.book.matches)
        assert kinds == {Ending.ILLEGAL: 1, Ending.VOID: 5}

    run(scenario)


def test_J3_an_offender_against_the_dealer_is_out_of_the_league(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        hall.comes("ann")
        hall.comes("rogue", illegal)
        report = await hall.play("ann", "rogue", game="blackjack", matches=3)

        assert hall.book.counted() == {("ann",): 3}
        assert report.played == 4
        assert report.standings[-1].rank is None

    run(scenario)


def test_H13_an_offender_saves_the_three_others(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        names = ("ann", "ben", "cem", "dora", "eve", "fritz", "gus", "rogue")
        for name in names:
            hall.comes(name, illegal if name == "rogue" else first_legal)
        report = await hall.play(*names, game="high_low")

        assert report.ranking[-1].names == ("rogue",)
        assert [verdict.bot for verdict in report.verdicts] == ["rogue"]

    run(scenario)


def test_a_competition_of_offenders_ends(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        names = tuple(f"rogue {number}" for number in range(4))
        for name in names:
            hall.comes(name, illegal, tables=3)
        report = await hall.play(*names, matches=3)

        out = [verdict.bot for verdict in report.verdicts]
        assert len(out) == len(set(out)) == 3  # nobody was left to play the fourth
        assert sum(row.rank is not None for row in report.standings) == 1

    run(scenario)


# --- who does not come ---


def test_J2_who_does_not_come_is_absent(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        hall.comes("ann")
        hall.comes("ben")
        report = await hall.play("ann", "nobody", "ben", wait_s=SOON, matches=3)

        [verdict] = report.verdicts
        assert (verdict.kind, verdict.bot) == (Ending.ABSENT, "nobody")
        assert verdict.text.endswith("did not come within 1 ms")
        assert hall.book.counted() == {("ann", "ben"): 3}
        assert hall.book.verdicts == [verdict]

    run(scenario)


def test_who_comes_in_time_plays(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        hall.comes("ann")
        task = asyncio.create_task(hall.play("ann", "late"))
        await asyncio.sleep(0)
        hall.comes("late")
        await task

        assert hall.book.counted() == {("ann", "late"): 1}

    run(scenario)


def test_who_goes_between_matches_may_come_back(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        hall.comes("ann")
        bot = hall.comes("ben")
        bot.goes()
        task = asyncio.create_task(hall.play("ann", "ben", matches=3))
        await asyncio.sleep(0)
        bot.comes_back()
        assert hall.competition is not None
        hall.competition.changed()
        await task

        assert hall.book.counted() == {("ann", "ben"): 3}

    run(scenario)


def test_who_has_said_goodbye_is_not_dealt_to(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        hall.comes("ann")
        hall.comes("ben").player.leaving = True
        report = await hall.play("ann", "ben", wait_s=SOON)

        assert [verdict.bot for verdict in report.verdicts] == ["ben"]

    run(scenario)


# --- who offends between two matches ---


CRASHED = Finding(
    kind=Ending.CRASH,
    text="crashed: exit status 1",
    mechanism=Mechanism.EXIT,
    got=None,
    exit_status=1,
    stderr="Traceback",
)
MEMORY = Finding(
    kind=Ending.MEMORY,
    text="memory 312 MiB > 256 MiB (sampled)",
    mechanism=Mechanism.SAMPLED,
    stderr="it hums",
)
LEFT = Finding(kind=Ending.DISCONNECT, text="left", mechanism=Mechanism.WIRE)


@pytest.mark.parametrize("finding", [CRASHED, MEMORY])
def test_J3_who_offends_while_it_sits_nowhere_is_out_for_that_at_once(
    house: House, finding: Finding
) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        held: list[Ask] = []
        ann = hall.comes("ann", held.append)
        for name in ("ben", "rogue"):
            hall.comes(name)
        names = ("ann", "ben", "rogue")
        task = asyncio.create_task(hall.play(*names, matches=3, limits=Limits()))
        while not held or hall.players["rogue"].chairs:
            await asyncio.sleep(0)
        hall.offends("rogue", finding)

        [verdict] = hall.book.verdicts
        assert hall.told == [verdict], "without waiting for it"
        assert (verdict.bot, verdict.kind) == ("rogue", finding.kind)
        assert (verdict.text, verdict.mechanism) == (finding.text, finding.mechanism)
        assert verdict.exit_status == finding.exit_status
        assert verdict.stderr == finding.stderr
        assert verdict.advice
        assert verdict.asked is None

        while not task.done():
            for ask in held:
                house.answer(ann, ask)
            held.clear()
            await asyncio.sleep(0)
        report = task.result()

        assert report.verdicts == (verdict,)
        assert hall.book.counted()["ann", "ben"] == 3
        assert report.standings[-1].name == "rogue"
        assert report.standings[-1].eliminated.kind is finding.kind

    run(scenario)


def test_J3_who_offends_at_a_table_has_one_verdict(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        hall.comes("ann", tables=2)
        hall.comes("rogue", lambda ask: None, tables=2)
        task = asyncio.create_task(hall.play("ann", "rogue", matches=4))
        while "rogue" not in hall.heard:
            await asyncio.sleep(0)
        hall.offends("rogue", CRASHED)
        report = await task

        [verdict] = report.verdicts
        assert verdict.text == "crashed: exit status 1"
        assert hall.told == [], "the conduct has told it"
        assert len(hall.book.verdicts) == 1

    run(scenario)


def test_J3_who_offends_between_two_stages_is_out_in_the_next(house: House) -> None:
    """Its table has advanced, and it waits for another one when it crashes."""

    async def scenario() -> None:
        hall = Hall(house)
        held: list[Ask] = []
        names = tuple(f"bot {number}" for number in range(8))
        rng = random.Random(1)
        for name in names:
            hall.comes(name, lambda ask: choose(ask.question.choices, rng))
        slow: list[Bot] = []
        task = asyncio.create_task(hall.play(*names, game="high_low", limits=Limits()))
        while not hall.book.matches:
            await asyncio.sleep(0)
            if (
                not slow
            ):  # one of the two tables is, so that the other one's players wait
                for table in house.conduct.tables[1:]:
                    player = table.chairs[0].player
                    bot, _ = hall._plays[player]
                    hall._plays[player] = (bot, held.append)
                    slow.append(bot)
        players, result = hall.book.matches[0]
        best = max(zip(result.scores, players, strict=True))[1]
        hall.offends(best, MEMORY)

        assert hall.book.verdicts == [], "it has played all that there was for it"

        while not task.done():
            for ask in held:
                house.answer(slow[0], ask)
            held.clear()
            await asyncio.sleep(0)
        report = task.result()

        [verdict] = report.verdicts
        assert (verdict.bot, verdict.kind) == (best, Ending.MEMORY)
        [place] = [place for place in report.ranking if best in place.names]
        assert (place.rank, place.names, place.offence) == (4, (best,), True)

    run(scenario)


def test_who_offends_before_the_competition_begins_is_out_in_it(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        for name in ("ann", "ben", "rogue"):
            hall.comes(name)
        competition = hall.compete("ann", "ben", "rogue", limits=Limits())
        hall.offends("rogue", CRASHED)
        async with asyncio.timeout(TIMEOUT_S):
            report = await competition.run()

        assert [verdict.kind for verdict in report.verdicts] == [Ending.CRASH]
        assert hall.book.counted() == {("ann", "ben"): 1}

    run(scenario)


def test_an_offence_of_somebody_else_is_nothing_here(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        for name in ("ann", "ben", "guest"):
            hall.comes(name)
        hall.compete("ann", "ben")
        hall.offends("guest", CRASHED)
        assert hall.competition is not None
        report = await hall.competition.run()

        assert report.verdicts == ()

    run(scenario)


def test_J2_the_first_of_two_offences_counts(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        for name in ("ann", "rogue"):
            hall.comes(name)
        competition = hall.compete("ann", "rogue")
        hall.offends("rogue", MEMORY)
        competition.offended("rogue", CRASHED)
        report = await competition.run()

        assert [verdict.kind for verdict in report.verdicts] == [Ending.MEMORY]

    run(scenario)


def test_goodbye_between_two_matches_and_back_in_time_is_no_offence(
    house: House,
) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        hall.comes("ann")
        hall.comes("ben")
        competition = hall.compete("ann", "ben", matches=3, limits=Limits())
        left = 0

        def leaves() -> None:
            nonlocal left
            if len(hall.book.matches) < 3:
                left += 1
                hall.offends("ben", LEFT)  # it says goodbye to every `over`
                asyncio.get_running_loop().call_soon(hall.comes, "ben")

        hall.book.on_match = leaves
        async with asyncio.timeout(TIMEOUT_S):
            report = await competition.run()

        assert left == 2
        assert report.verdicts == ()
        assert hall.book.counted() == {("ann", "ben"): 3}

    run(scenario)


# --- faults of the arena ---


def test_J5_a_void_match_is_played_again(
    house: House, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        monkeypatch.setitem(GAMES, "ace_king_queen", failing(2))
        hall = Hall(house)
        hall.comes("ann")
        hall.comes("ben")
        report = await hall.play("ann", "ben")

        assert hall.book.counted() == {("ann", "ben"): 1}
        assert report.played == 1
        assert len(hall.book.matches) == 3

    run(scenario)


def test_J5_after_three_voids_the_instructor_is_asked(
    house: House, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        monkeypatch.setitem(GAMES, "ace_king_queen", failing(3))
        hall = Hall(house)
        hall.comes("ann")
        hall.comes("ben")

        with pytest.raises(ArenaError, match="was void 3 times by faults of the arena"):
            await hall.play("ann", "ben")

    run(scenario)


def test_a_store_that_fails_ends_the_competition_and_stops_its_matches(
    house: House,
) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        hall.book.fails_at = 2
        for name in ("ann", "ben", "cem"):
            hall.comes(name, tables=3)

        with pytest.raises(StoreFailed, match="the disk is full"):
            await hall.play("ann", "ben", "cem", matches=9)
        assert house.conduct.tables == ()

    run(scenario)


def test_a_store_that_fails_at_an_absence_ends_the_competition(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        hall.book.fails_at = 0
        hall.comes("ann")

        with pytest.raises(StoreFailed, match="the disk is full"):
            await hall.play("ann", "nobody", wait_s=SOON)

    run(scenario)


def test_stopping_a_competition_voids_what_is_being_played(house: House) -> None:
    async def scenario() -> None:
        hall = Hall(house)
        for name in ("ann", "ben"):
            hall.comes(name, lambda ask: None)
        task = asyncio.create_task(hall.play("ann", "ben", matches=3))
        while not hall.heard:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert house.conduct.tables == ()
        [(_, result)] = hall.book.matches
        assert result.termination.kind is Ending.VOID

    run(scenario)
