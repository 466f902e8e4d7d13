"""Competitions from their beginning to their end: who plays, who is out, whom nobody waits for, faults of the arena's own."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from arena.engine.verdict import Finding
from arena.formats.spec import WAIT_S, Form, form_of
from arena.games import GAMES
from bots.strategy import choose
from protocol.errors import ArenaError, StoreFailed
from protocol.messages import Ask, Ending, Limits, Mechanism
from tests.support.fake_host import (
    SOON,
    TIMEOUT_S,
    FakeHost,
    act,
    failing,
    first_legal,
    illegal,
    in_time,
    run,
    silent,
    turns,
)

if TYPE_CHECKING:
    from tests.support.fake_bots import FakeArena, FakeBot


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


def test_K1_in_a_round_robin_every_bot_meets_every_other(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
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


def test_A10_every_bot_meets_itself_if_it_has_two_tables(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.comes("ann", tables=2)
        hall.comes("ben", tables=1)
        await hall.play("ann", "ben", with_itself=True)

        assert hall.book.counted() == {("ann", "ann"): 1, ("ann", "ben"): 1}

    run(scenario)


def test_A10_a_bot_with_one_table_never_meets_itself_however_often(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.comes("ann", tables=1)
        hall.comes("ben", tables=1)
        await hall.play("ann", "ben", with_itself=True, matches=5)

        assert hall.book.counted() == {("ann", "ben"): 5}

    run(scenario)


def test_bots_that_have_met_meet_others_before_they_meet_again(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        for name in ("ann", "ben", "cem"):
            hall.comes(name, tables=1)
        await hall.play("ann", "ben", "cem", matches=4)

        met = [frozenset(players) for players, _ in hall.book.matches]
        assert all(one != other for one, other in pairwise(met))

    run(scenario)


@pytest.mark.parametrize("game", ["three_card_poker", "blackjack"])
def test_K3_in_a_league_every_bot_meets_the_dealer(house: FakeArena, game: str) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.comes("ann")
        hall.comes("ben", tables=3)
        report = await hall.play("ann", "ben", game=game, matches=5)

        assert hall.book.counted() == {("ann",): 5, ("ben",): 5}
        assert [row.played for row in report.standings] == [5, 5]

    run(scenario)


def test_K2_an_elimination_goes_on_to_its_final_with_house_bots(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
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


def test_no_bot_gets_more_matches_at_once_than_it_has_tables(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        names = tuple(f"bot {number}" for number in range(5))
        for number, name in enumerate(names, start=1):
            hall.comes(name, tables=number)
        await hall.play(*names, matches=4)

        assert sum(hall.book.counted().values()) == 40
        for number, name in enumerate(names, start=1):
            assert 1 <= hall.most_chairs[name] <= number

    run(scenario)


def test_a_slow_bot_delays_nothing_but_its_own_matches(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
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


def test_its_progress_can_be_watched(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
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


def test_J3_an_offender_is_out_and_nobody_else_is_harmed(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
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


def test_J3_what_an_offender_was_still_playing_is_void(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.comes("ann", lambda ask: None, tables=8)
        hall.comes("rogue", illegal, tables=8)
        await hall.play("ann", "rogue", matches=6)

        kinds = Counter(result.termination.kind for _, result in hall.book.matches)
        assert kinds == {Ending.ILLEGAL: 1, Ending.VOID: 3}

    run(scenario)


def test_J3_an_offender_against_the_dealer_is_out_of_the_league(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.comes("ann")
        hall.comes("rogue", illegal)
        report = await hall.play("ann", "rogue", game="blackjack", matches=3)

        assert hall.book.counted() == {("ann",): 3}
        assert report.played == 4
        assert report.standings[-1].rank is None

    run(scenario)


def test_H13_an_offender_saves_the_three_others(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        names = ("ann", "ben", "cem", "dora", "eve", "fritz", "gus", "rogue")
        for name in names:
            hall.comes(name, illegal if name == "rogue" else first_legal)
        report = await hall.play(*names, game="high_low")

        assert report.ranking[-1].names == ("rogue",)
        assert [verdict.bot for verdict in report.verdicts] == ["rogue"]

    run(scenario)


def test_a_competition_of_offenders_ends(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        names = tuple(f"rogue {number}" for number in range(4))
        for name in names:
            hall.comes(name, illegal, tables=3)
        report = await hall.play(*names, matches=3)

        out = [verdict.bot for verdict in report.verdicts]
        assert len(out) == len(set(out)) == 3  # nobody was left to play the fourth
        assert all(row.rank is None for row in report.standings)  # K5: it met nobody

    run(scenario)


# --- who does not come ---


def test_J2_who_does_not_come_is_absent(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.comes("ann")
        hall.comes("ben")
        report = await hall.play("ann", "nobody", "ben", wait_s=SOON, matches=3)

        [verdict] = report.verdicts
        assert (verdict.kind, verdict.bot) == (Ending.ABSENT, "nobody")
        assert verdict.text.endswith("did not come within 1 ms")
        assert hall.book.counted() == {("ann", "ben"): 3}
        assert hall.book.verdicts == [verdict]

    run(scenario)


def test_who_comes_in_time_plays(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.comes("ann")
        task = asyncio.create_task(hall.play("ann", "late"))
        await asyncio.sleep(0)
        hall.comes("late")
        await task

        assert hall.book.counted() == {("ann", "late"): 1}

    run(scenario)


def test_who_goes_between_matches_may_come_back(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.comes("ann")
        bot = hall.comes("ben")
        bot.goes()
        task = asyncio.create_task(hall.play("ann", "ben", matches=3))
        await asyncio.sleep(0)
        bot.comes_back()
        bot.reads()
        hall.players.note(bot.player)
        hall.changed()
        await task

        assert hall.book.counted() == {("ann", "ben"): 3}

    run(scenario)


def test_who_has_said_goodbye_is_not_dealt_to(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
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
    house: FakeArena, finding: Finding
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
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


def test_J3_who_offends_at_a_table_has_one_verdict(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
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


def test_J3_who_offends_between_two_stages_is_out_in_the_next(house: FakeArena) -> None:
    """Its table has advanced, and it waits for another one when it crashes."""

    async def scenario() -> None:
        hall = FakeHost(house)
        held: list[Ask] = []
        names = tuple(f"bot {number}" for number in range(8))
        rng = random.Random(1)
        for name in names:
            hall.comes(name, lambda ask: choose(ask.question.choices, rng))
        slow: list[FakeBot] = []
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


def test_who_offends_before_the_competition_begins_is_out_in_it(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        for name in ("ann", "ben", "rogue"):
            hall.comes(name)
        competition = hall.compete("ann", "ben", "rogue", limits=Limits())
        hall.offends("rogue", CRASHED)
        async with asyncio.timeout(TIMEOUT_S):
            report = await competition.run()

        assert [verdict.kind for verdict in report.verdicts] == [Ending.CRASH]
        assert hall.book.counted() == {("ann", "ben"): 1}

    run(scenario)


def test_an_offence_of_somebody_else_is_nothing_here(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        for name in ("ann", "ben", "guest"):
            hall.comes(name)
        hall.compete("ann", "ben")
        hall.offends("guest", CRASHED)
        report = await hall.competition.run()

        assert report.verdicts == ()

    run(scenario)


def test_J2_the_first_of_two_offences_counts(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        for name in ("ann", "rogue"):
            hall.comes(name)
        competition = hall.compete("ann", "rogue")
        hall.offends("rogue", MEMORY)
        competition.offended("rogue", CRASHED)
        report = await competition.run()

        assert [verdict.kind for verdict in report.verdicts] == [Ending.MEMORY]

    run(scenario)


def test_goodbye_between_two_matches_and_back_in_time_is_no_offence(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
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
    house: FakeArena, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        monkeypatch.setitem(GAMES, "ace_king_queen", failing(2))
        hall = FakeHost(house)
        hall.comes("ann")
        hall.comes("ben")
        report = await hall.play("ann", "ben")

        assert hall.book.counted() == {("ann", "ben"): 1}
        assert report.played == 1
        assert len(hall.book.matches) == 3

    run(scenario)


def test_J5_after_three_voids_the_instructor_is_asked(
    house: FakeArena, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        monkeypatch.setitem(GAMES, "ace_king_queen", failing(3))
        hall = FakeHost(house)
        hall.comes("ann")
        hall.comes("ben")

        with pytest.raises(ArenaError, match="was void 3 times by faults of the arena"):
            await hall.play("ann", "ben")

    run(scenario)


def test_a_store_that_fails_ends_the_competition_and_stops_its_matches(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.book.fails_at = 2
        for name in ("ann", "ben", "cem"):
            hall.comes(name, tables=3)

        with pytest.raises(StoreFailed, match="the disk is full"):
            await hall.play("ann", "ben", "cem", matches=9)
        assert house.conduct.tables == ()

    run(scenario)


def test_a_store_that_fails_at_an_absence_ends_the_competition(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.book.fails_at = 0
        hall.comes("ann")

        with pytest.raises(StoreFailed, match="the disk is full"):
            await hall.play("ann", "nobody", wait_s=SOON)

    run(scenario)


def test_stopping_a_competition_voids_what_is_being_played(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
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


def test_J5_a_pairing_that_was_void_three_times_waits_and_the_others_go_on(
    house: FakeArena, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        monkeypatch.setitem(GAMES, "ace_king_queen", failing(3))
        hall = FakeHost(house)
        hall.come("ann", "ben", "cem")
        hall.leaves("cem")  # so that it is ann and ben who have bad luck
        competition, task = await hall.begin("ann", "ben", "cem", is_attended=True)
        hall.comes("cem")
        await turns(400)

        assert not task.done()
        assert hall.book.counted() == {("ann", "cem"): 1, ("ben", "cem"): 1}
        assert competition.settled == 2
        [flag] = hall.book.acts
        assert (flag.who, flag.what, flag.competition) == ("the arena", "flag", "c")
        [line] = hall.lines
        assert "void 3 times by faults of the arena and waits" in line
        assert "`arena resume c`" in line

        competition.resume(act("resume"))
        report = await in_time(task)

        assert hall.book.counted()["ann", "ben"] == 1
        assert report.verdicts == ()
        assert [one.what for one in hall.book.acts] == ["flag", "resume"]

    run(scenario)


def test_J5_what_is_void_three_times_again_waits_again(
    house: FakeArena, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        monkeypatch.setitem(GAMES, "ace_king_queen", failing(6))
        hall = FakeHost(house)
        hall.come("ann", "ben")
        competition, task = await hall.begin("ann", "ben", is_attended=True)
        competition.resume(act("resume"))
        await turns()

        assert len(hall.book.matches) == 6
        assert [one.what for one in hall.book.acts] == ["flag", "resume", "flag"]

        competition.resume(act("resume"))
        await in_time(task)

        assert hall.book.counted() == {("ann", "ben"): 1}

    run(scenario)


def test_J5_who_offends_while_its_match_waits_for_the_instructor_is_out_for_that(
    house: FakeArena, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        monkeypatch.setitem(GAMES, "ace_king_queen", failing(3))
        hall = FakeHost(house)
        hall.come("ann", "ben")
        _, task = await hall.begin("ann", "ben", is_attended=True)
        hall.offends("ben", CRASHED)
        report = await in_time(task)

        assert [verdict.kind for verdict in report.verdicts] == [Ending.CRASH]

    run(scenario)


def test_J5_what_an_elimination_or_the_instructor_stopped_was_no_fault(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "ben", plays=silent)
        competition, task = await hall.begin("ann", "ben")
        for _ in range(5):
            [table] = house.conduct.tables
            competition.void(table.id, act("void", match=table.id))
            await turns()
        hall.plays("ann", first_legal)
        hall.plays("ben", first_legal)
        await in_time(task)

        assert hall.book.kinds() == {Ending.VOID: 5, Ending.COMPLETED: 1}
        assert [one.what for one in hall.book.acts] == ["void"] * 5

    run(scenario)


# --- teams and house bots in eliminations ---

EIGHT = ("ann", "ben", "cem", "dora", "eve", "fritz", "gus", "rogue")


@pytest.mark.parametrize(("team", "flags"), [("blue", 0), ("red", 3)])
def test_K2_an_offence_is_flagged_if_it_saves_team_mates(
    house: FakeArena, team: str, flags: int
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come(*EIGHT[:-1])
        hall.comes("rogue", illegal)
        teams = dict.fromkeys(EIGHT, "red") | {"rogue": team}
        report = await hall.play(*EIGHT, game="high_low", teams=teams)

        assert report.ranking[-1].names == ("rogue",)
        assert [act.what for act in hall.book.acts] == ["flag"] * flags

    run(scenario)


def test_K2_an_offence_that_saves_a_team_mate_is_flagged_and_told_once(
    house: FakeArena,
) -> None:
    """One bot spoils its table's match when somebody is clearly behind there; both are of one team."""

    async def scenario() -> None:
        hall = FakeHost(house)
        rng = random.Random(4)
        spoilt: list[str] = []

        def plays(ask: Ask) -> object:
            [match] = [
                table.match
                for table in house.conduct.tables
                if ask.match in [chair.id for chair in table.chairs]
            ]
            assert match is not None
            assert match.pending is not None
            mine = match.scores[match.pending.seat]
            if not spoilt and len(set(match.scores)) == 4 and mine == max(match.scores):
                spoilt.append(ask.match)
                return "all in"
            return choose(ask.question.choices, rng)

        hall.come(*EIGHT, plays=plays)
        teams = dict.fromkeys(EIGHT, "red")
        settings = {"max_shuffles": 50}
        report = await hall.play(
            *EIGHT, game="high_low", teams=teams, settings=settings
        )

        [verdict] = report.verdicts
        [row] = [row for row in hall.book.rows if row.result.termination.is_offence]
        assert len(hall.book.acts) == 2, "the third and the fourth of its table"
        for flag, line in zip(hall.book.acts, hall.lines, strict=True):
            assert (flag.who, flag.what) == ("the arena", "flag")
            assert (flag.bot, flag.match) == (verdict.bot, row.id)
            saved = flag.text.rpartition(" ")[2]
            place = sorted(row.result.scores).index(
                row.result.scores[row.players.index(saved)]
            )
            assert place < 2
            assert flag.text in line

        again = hall.compete(
            *EIGHT,
            game="high_low",
            teams=teams,
            settings=settings,
            earlier=hall.book.results(),
            acts=tuple(hall.book.acts),
        )
        await in_time(again.run())

        assert len(hall.book.acts) == len(hall.lines) == 2, "not after a restart"

    run(scenario)


def test_K2_in_a_final_nobody_is_saved(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "ben", "cem")
        hall.comes("rogue", illegal)
        names = ("ann", "ben", "cem", "rogue")
        teams = dict.fromkeys(names, "red")
        report = await hall.play(*names, game="high_low", teams=teams)

        assert report.ranking[-1].names == ("rogue",)
        assert hall.book.acts == []
        assert hall.lines == []

    run(scenario)


class Houses:
    """House bots, the first of which do not do as they should."""

    def __init__(self, hall: FakeHost, *bad: str) -> None:
        self.hall = hall
        self.bad = list(bad)
        self.called = 0

    async def __call__(self, game: str, name: str) -> None:
        if name in self.hall.players:
            return  # as the host does: it is on its way
        self.called += 1
        match self.bad.pop(0) if self.bad else "plays":
            case "is absent":
                pass
            case "cannot be started":
                raise ArenaError("no memory")
            case "is illegal":
                self.hall.comes(name, illegal)
            case "crashes":
                self.hall.comes(name, silent)
            case _:
                self.hall.comes(name)


def test_J5_a_house_bot_that_crashes_in_a_final_costs_nobody_anything(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "ben", "cem")
        houses = Houses(hall, "crashes")
        _, task = await hall.begin(
            "ann", "ben", "cem", game="high_low", call_house=houses, limits=Limits()
        )
        for name in ("ann", "ben", "cem"):
            hall.plays(name, silent)
        await turns()
        hall.offends("house-0", CRASHED)
        for name in ("ann", "ben", "cem"):
            hall.plays(name, first_legal)
        report = await in_time(task)

        assert hall.book.kinds() == {Ending.VOID: 1, Ending.COMPLETED: 1}
        assert houses.called == 2
        assert report.verdicts == ()
        placed = sorted(name for place in report.ranking for name in place.names)
        assert placed == ["ann", "ben", "cem"]

    run(scenario)


def test_J5_a_house_bot_that_offends_three_times_is_for_the_instructor(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "ben", "cem")
        houses = Houses(hall, "is illegal")
        competition, task = await hall.begin(
            "ann", "ben", "cem", game="high_low", call_house=houses, is_attended=True
        )
        await turns(2000)

        assert hall.book.kinds() == {Ending.VOID: 3}
        assert "void 3 times" in hall.lines[-1]

        hall.plays("house-0", first_legal)
        competition.resume(act("resume"))
        report = await in_time(task)

        assert report.verdicts == ()
        assert hall.book.kinds() == {Ending.VOID: 3, Ending.COMPLETED: 1}

    run(scenario)


def test_J5_a_house_bot_that_does_not_come_is_started_again_and_nobody_is_absent(
    house: FakeArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        monkeypatch.setattr("arena.competitions.arbiter.WAIT_S", SOON)
        hall = FakeHost(house)
        hall.come("ann", "ben", "cem")
        houses = Houses(hall, "is absent", "cannot be started")
        report = await hall.play(
            *("ann", "ben", "cem"), game="high_low", call_house=houses, wait_s=0.0
        )

        assert houses.called == 3
        assert hall.lines == ["house-0: no memory"]
        assert hall.book.kinds() == {Ending.VOID: 1, Ending.COMPLETED: 1}
        assert report.verdicts == ()

    run(scenario)


def test_J5_a_house_bot_has_time_to_start_however_short_bots_are_waited_for(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        competition = hall.compete("ann", "ben", game="high_low", wait_s=0.0)

        assert competition.arbiter.awaited("house-0") == WAIT_S
        assert competition.arbiter.awaited("ann") == 0.0

        await turns()  # it is being started

    run(scenario)


def test_K2_no_house_bot_is_started_for_a_final_that_was_played(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "ben")
        report = await hall.play("ann", "ben", game="high_low")
        assert sorted(hall.called) == ["house-0", "house-1"]

        hall.called.clear()
        earlier = hall.book.results()
        again = await hall.play("ann", "ben", game="high_low", earlier=earlier)

        assert hall.called == []
        assert again.ranking == report.ranking

    run(scenario)


def test_a_house_bot_that_cannot_be_started_at_all_ends_the_competition(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "ben", "cem")
        houses = Houses(hall, "cannot be started")

        with pytest.raises(ArenaError, match="no memory"):
            await hall.play("ann", "ben", "cem", game="high_low", call_house=houses)

    run(scenario)


def test_J5_a_house_bot_that_never_gets_going_is_not_waited_for_for_ever(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "ben", "cem")
        houses = Houses(hall, *["is absent"] * 5)
        competition, task = await hall.begin(
            "ann", "ben", "cem", game="high_low", call_house=houses
        )
        for count in range(3):
            assert len(hall.book.matches) == count
            competition.offended("house-0", CRASHED)
            await turns()
        with pytest.raises(ArenaError, match="void 3 times by faults of the arena"):
            await in_time(task)

        assert hall.book.kinds() == {Ending.VOID: 3}
        assert hall.lines[0] == (
            "high_low: the house bot house-0 crashed: exit status 1"
        )

    run(scenario)


# --- offences off the table, and a power cut ---


def test_J3_who_offends_while_it_has_a_bye_is_out_also_after_a_power_cut(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        six = EIGHT[:6]
        hall.come(*six, plays=lambda ask: None)
        _, task = await hall.begin(*six, game="high_low")
        seated = {
            chair.player.name
            for table in house.conduct.tables
            for chair in table.chairs
        }
        rests = next(name for name in six if name not in seated)
        hall.offends(rests, MEMORY)
        task.cancel()
        book = hall.book

        again, rng = FakeHost(house), random.Random(4)
        again.come(*six, plays=lambda ask: choose(ask.question.choices, rng))
        report = await again.play(
            *six, game="high_low", earlier=book.results(), acts=book.acts
        )

        assert [(one.bot, one.kind) for one in report.verdicts] == [
            (rests, Ending.MEMORY)
        ]
        assert rests not in report.ranking[0].names

    run(scenario)


# --- several who do not come ---


def test_J2_all_who_do_not_come_to_a_table_are_out_and_nobody_of_them_advances(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall, rng = FakeHost(house), random.Random(4)
        here = EIGHT[:3]
        hall.come(*here, plays=lambda ask: choose(ask.question.choices, rng))
        report = await hall.play(*EIGHT, game="high_low", wait_s=SOON)

        absent = {one.bot for one in report.verdicts}
        assert absent == set(EIGHT) - set(here)
        assert {one.kind for one in report.verdicts} == {Ending.ABSENT}
        for place in report.ranking:
            assert place.offence == (not set(place.names).isdisjoint(absent))
        assert set(report.ranking[0].names) <= set(here)
        assert len(hall.book.matches) == 3, "two tables, and the final"

    run(scenario)


def test_J2_nobody_wins_an_elimination_to_which_nobody_comes(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        report = await hall.play(*EIGHT, game="high_low", wait_s=SOON)

        assert [(set(one.names), one.offence) for one in report.ranking] == [
            (set(EIGHT), True)
        ]

    run(scenario)


def test_J2_of_two_who_do_not_come_to_their_match_neither_is_first(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        report = await hall.play("ann", "ben", wait_s=SOON)

        assert [row.rank for row in report.standings] == [None, None]
        again = FakeHost(house)
        rest = await again.play(
            "ann", "ben", earlier=hall.book.results(), verdicts=hall.book.verdicts
        )
        assert [row.rank for row in rest.standings] == [None, None]

    run(scenario)


def test_a_person_does_not_play_in_the_place_of_a_bot_of_its_name(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.people = {"ben"}
        hall.come("ann", "ben")
        report = await hall.play("ann", "ben", wait_s=SOON)

        assert hall.heard == []
        [verdict] = report.verdicts
        assert (verdict.bot, verdict.kind) == ("ben", Ending.ABSENT)

    run(scenario)
