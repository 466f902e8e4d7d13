"""A ladder while it is open: who is paired when, who rests, what the instructor does to it."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from arena.competitions.arbiter import Arbiter
from arena.competitions.competition import Competition
from arena.formats.ladder import Ladder
from arena.formats.spec import Form
from arena.storage.store import State
from protocol.errors import StoreFailed, UsageError
from protocol.messages import Ending, Limits
from tests.support.fake_host import (
    TIMEOUT_S,
    FakeHost,
    act,
    first_legal,
    illegal,
    in_time,
    run,
    silent,
    turns,
)

if TYPE_CHECKING:
    from arena.competitions.ledger import Report
    from arena.storage.models import Played
    from tests.support.fake_bots import FakeArena

LADDER: dict[str, Any] = {"form": Form.LADDER}


class Clock:
    """Rests and waits end when a test says so: stands in for the loop's timers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.set: list[tuple[float, Any, asyncio.TimerHandle]] = []
        loop = asyncio.get_running_loop()
        real = loop.call_later

        def call_later(delay: float, call: Any, *words: Any, **more: Any) -> Any:
            if "LadderStage" not in getattr(call, "__qualname__", ""):
                return real(delay, call, *words, **more)
            handle = real(3600, call, *words)
            self.set.append((delay, call, handle))
            return handle

        monkeypatch.setattr(loop, "call_later", call_later)

    @property
    def delays(self) -> list[float]:
        return [delay for delay, _, handle in self.set if not handle.cancelled()]

    def ring(self, delay: float) -> None:
        """All that wait so long have waited."""
        due = [one for one in self.set if one[0] == delay]
        self.set = [one for one in self.set if one[0] != delay]
        for _, call, handle in due:
            if not handle.cancelled():
                handle.cancel()
                call()


async def closed(competition: Competition, task: asyncio.Task[Report]) -> Report:
    competition.close()
    report: Report = await in_time(task)
    return report


async def until(hall: FakeHost, matches: int) -> None:
    while len(hall.book.matches) < matches:
        await asyncio.sleep(0)


def test_K4_whoever_is_there_plays_on_and_on_until_it_is_closed(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "ben", tables=2)
        competition, task = await hall.begin("ann", "ben", **LADDER)
        await until(hall, 12)
        assert competition.progress.scheduled == 0
        report = await closed(competition, task)

        assert report.state is State.FINISHED
        assert {row.name for row in report.standings} == {"ann", "ben"}
        assert report.played == len(hall.book.results())
        assert [row.pairing for row in hall.book.rows] == sorted(
            row.pairing for row in hall.book.rows
        )
        assert not house.conduct.tables

    run(scenario)


def test_K4_who_comes_later_is_on_it_too(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.comes("ann")
        competition, task = await hall.begin("ann", **LADDER)
        assert hall.book.matches == []
        hall.comes("late")
        await until(hall, 3)
        report = await closed(competition, task)

        assert {row.name for row in report.standings} == {"ann", "late"}

    run(scenario)


def test_K4_high_low_is_played_by_four(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "ben", "cem")
        competition, task = await hall.begin("ann", game="high_low", **LADDER)
        assert not house.conduct.tables
        hall.comes("dora")
        await until(hall, 2)
        report = await closed(competition, task)

        assert len(report.standings) == 4
        assert hall.called == [], "no house bot fills a chair"

    run(scenario)


def test_a_bot_rests_between_two_matches(
    house: FakeArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        clock = Clock(monkeypatch)
        hall = FakeHost(house)
        hall.come("ann", "ben", tables=4)
        competition, task = await hall.begin("ann", "ben", pause_s=5.0, **LADDER)

        assert len(hall.book.matches) == 1, "one at a time"
        assert clock.delays == [5.0]

        hall.changed()
        await turns()
        assert len(hall.book.matches) == 1

        clock.ring(5.0)
        await turns()
        assert len(hall.book.matches) == 2
        assert max(hall.most_chairs.values()) == 1

        await closed(competition, task)
        assert clock.delays == [], "nothing rings when it is over"

    run(scenario)


def test_those_who_have_just_met_wait_for_somebody_else_but_not_for_ever(
    house: FakeArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A third one is there, but busy: until it is free the others wait, and then a while is over."""

    async def scenario() -> None:
        clock = Clock(monkeypatch)
        hall = FakeHost(house)
        hall.comes("ann", silent)
        hall.comes("slow", silent)
        competition, task = await hall.begin("ann", **LADDER)
        hall.come("ben", "cem")
        await turns()
        assert len(hall.book.matches) == 1
        assert clock.delays == [1.0]

        hall.changed()
        await turns()
        assert len(hall.book.matches) == 1, "not yet"
        assert clock.delays == [1.0], "and not two waits"

        clock.ring(1.0)
        await turns()
        assert len(hall.book.matches) == 2

        await closed(competition, task)

    run(scenario)


def test_what_happens_among_many_free_bots_is_looked_at_together(
    house: FakeArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come(*(f"bot {number}" for number in range(200)), plays=silent)
        competition, task = await hall.begin("bot 1", **LADDER)
        looks = 0
        plays = competition.arbiter.plays

        def counted() -> Any:
            nonlocal looks
            looks += 1
            return plays()

        monkeypatch.setattr(competition.arbiter, "plays", counted)
        hall.come(*(f"late {number}" for number in range(50)), plays=silent)
        assert looks == 0
        while len(house.conduct.tables) < 125:
            await asyncio.sleep(0.01)
        assert looks < 20, "and everybody plays in the end"

        await closed(competition, task)

    run(scenario)


def test_who_leaves_or_plays_something_else_changes_nothing(
    house: FakeArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "ben", "cem", plays=silent)
        competition, task = await hall.begin("ann", **LADDER)
        monkeypatch.setattr(competition.arbiter, "plays", None)
        hall.leaves("cem")
        other = house.bot("dora")
        other.player.games = frozenset({"gin_rummy"})
        hall.players.add(other.player)
        hall.changed()
        monkeypatch.undo()

        await closed(competition, task)

    run(scenario)


def test_J3_an_offence_is_a_lost_match_and_the_bot_plays_on_after_longer_pauses(
    house: FakeArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        clock = Clock(monkeypatch)
        hall = FakeHost(house)
        hall.comes("ann")
        hall.comes("rogue", illegal)
        competition, task = await hall.begin("ann", **LADDER)
        for count, pause_s in enumerate((10.0, 20.0, 40.0), start=1):
            assert len(hall.book.matches) == count
            assert clock.delays == [pause_s]
            hall.wall_s += pause_s
            clock.ring(pause_s)
            await turns()
        assert competition.is_in("rogue")
        report = await closed(competition, task)

        rows = {row.name: row for row in report.standings}
        assert rows["rogue"].losses == rows["rogue"].played == 4
        assert rows["rogue"].offences == 4
        assert rows["rogue"].rank == 2
        assert len(report.verdicts) == 4

    run(scenario)


def test_J3_a_pause_is_that_of_all_names_of_its_owner_and_of_nobody_else(
    house: FakeArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        clock = Clock(monkeypatch)
        hall = FakeHost(house)
        hall.comes("eve/1", illegal)
        hall.comes("ann", silent)
        competition, task = await hall.begin("ann", **LADDER)
        assert hall.book.kinds() == {Ending.ILLEGAL: 1}

        hall.comes("eve/2", silent)
        assert not house.conduct.tables
        hall.comes("ben", silent)
        [table] = house.conduct.tables
        assert {chair.player.name for chair in table.chairs} == {"ann", "ben"}

        hall.comes("cem", silent)
        hall.wall_s += 10.0
        clock.ring(10.0)
        assert len(house.conduct.tables) == 2
        await closed(competition, task)

    run(scenario)


def test_J3_pauses_outlive_a_restart(
    house: FakeArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        first = FakeHost(house)
        first.comes("ann")
        first.comes("rogue", illegal)
        competition, task = await first.begin("ann", **LADDER)
        await closed(competition, task)

        clock = Clock(monkeypatch)
        hall = FakeHost(house)
        hall.wall_s = 4.0
        hall.comes("ann")
        hall.comes("rogue", illegal)
        earlier = first.book.results()
        assert len(earlier) == 1
        competition, task = await hall.begin("ann", earlier=earlier, **LADDER)
        assert clock.delays == [6.0]
        hall.wall_s = 10.0
        clock.ring(6.0)
        await turns()
        assert clock.delays == [20.0]
        await closed(competition, task)

    run(scenario)


def test_J3_an_offence_that_is_taken_back_has_no_pause(
    house: FakeArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        Clock(monkeypatch)
        hall = FakeHost(house)
        hall.comes("rogue", illegal)
        hall.comes("ann", silent)
        competition, task = await hall.begin("ann", **LADDER)
        [offence] = hall.book.results()
        hall.plays("rogue", silent)
        assert not house.conduct.tables
        competition.void(offence.id, act("void", match=offence.id))
        await competition.ledger.rated()

        assert len(house.conduct.tables) == 1
        await closed(competition, task)

    run(scenario)


def test_who_has_left_a_match_has_no_other_name_of_its_owner_seated_until_it_is_over(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        eve = hall.comes("eve/1", silent)
        hall.comes("ann", silent)
        competition, task = await hall.begin("ann", **LADDER)
        [table] = house.conduct.tables
        eve.goes()
        hall.come("eve/2", "ben", plays=silent)
        assert house.conduct.tables == (table,)

        eve.comes_back()
        hall.changed()
        assert house.conduct.tables == (table,), "it may leave again"

        hall.comes("cem", silent)
        assert len(house.conduct.tables) == 2, "others play"
        hall.comes("dora", silent)
        competition.void(table.id, act("void", match=table.id))
        await turns()
        seated = {one.player.name for t in house.conduct.tables for one in t.chairs}
        assert "eve/2" in seated
        await closed(competition, task)

    run(scenario)


def test_who_was_away_between_two_looks_has_left_its_match_all_the_same(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        eve = hall.comes("eve/1", silent)
        hall.comes("ann", silent)
        competition, task = await hall.begin("ann", **LADDER)
        [table] = house.conduct.tables
        eve.goes()
        house.now += 0.01
        eve.comes_back()
        eve.reads()
        assert not eve.player.is_away
        hall.come("eve/2", "ben", plays=silent)
        assert house.conduct.tables == (table,)

        hall.comes("cem", silent)
        hall.comes("dora", silent)
        competition.void(table.id, act("void", match=table.id))
        await turns()
        seated = {one.player.name for t in house.conduct.tables for one in t.chairs}
        assert "eve/2" in seated
        await closed(competition, task)

    run(scenario)


def test_who_has_left_a_match_and_come_back_may_play_another_itself(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        eve = hall.comes("eve/1", silent, tables=2)
        hall.comes("ann", silent)
        competition, task = await hall.begin("ann", **LADDER)
        eve.goes()
        hall.comes("ben", silent)
        before = len(house.conduct.tables)
        eve.comes_back()
        eve.reads()
        hall.changed()

        assert len(house.conduct.tables) == before + 1
        await closed(competition, task)

    run(scenario)


def test_a_verdict_costs_no_look_at_all_who_are_on_the_ladder(
    house: FakeArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host asks at every verdict whether its bot still takes part anywhere."""

    async def scenario() -> None:
        hall = FakeHost(house)
        competition = hall.compete("ann", *(f"bot-{n}" for n in range(50)), **LADDER)
        looks: list[str] = []
        for kind, look in ((Ladder, "rows"), (Arbiter, "plays")):
            monkeypatch.setattr(kind, look, partial(looks.append, look))

        assert competition.is_in("ann")
        assert not competition.is_in("stranger")
        hall.comes("late", silent)
        assert competition.is_in("late")
        assert looks == []

    run(scenario)


def test_in_a_pause_nobody_is_paired(
    house: FakeArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        clock = Clock(monkeypatch)
        hall = FakeHost(house)
        hall.come("ann", "ben")
        competition, task = await hall.begin("ann", "ben", pause_s=5.0, **LADDER)
        competition.pause(act("pause"))
        clock.ring(5.0)
        hall.changed()
        await turns()
        assert len(hall.book.matches) == 1

        competition.resume(act("resume"))
        await turns()
        assert len(hall.book.matches) == 2

        await closed(competition, task)

    run(scenario)


def test_when_it_is_stopped_what_runs_is_void(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "ben", plays=silent)
        competition, task = await hall.begin("ann", "ben", **LADDER)
        competition.stop(act("stop"))
        report = await in_time(task)

        assert report.state is State.STOPPED
        assert hall.book.kinds() == {Ending.VOID: 1}
        assert report.played == 0

    run(scenario)


def test_a_ladder_whose_time_is_over_before_it_has_begun(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "ben")
        competition = hall.compete("ann", "ben", **LADDER)
        competition.close()
        report = await in_time(competition.run())

        assert report.state is State.FINISHED
        assert hall.book.matches == []

    run(scenario)


def test_a_void_match_does_not_count_and_the_next_one_comes(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "ben", plays=silent)
        competition, task = await hall.begin("ann", "ben", **LADDER)
        [table] = house.conduct.tables
        competition.void(table.id, act("void", match=table.id))
        await turns()
        [table] = house.conduct.tables

        hall.plays("ann", first_legal)
        hall.plays("ben", first_legal)
        await until(hall, 3)
        hall.plays("ann", silent)
        await turns()
        counted = hall.book.results()[0]
        before = competition.played
        competition.void(counted.id, act("void", match=counted.id))
        assert competition.played == before - 1
        report = await closed(competition, task)

        assert report.played == len(hall.book.results())
        assert len({row.pairing for row in hall.book.rows}) == len(hall.book.rows)
        rows = {row.name: row.played for row in report.standings}
        assert rows["ann"] == rows["ben"] == report.played

    run(scenario)


def test_a_removed_bot_loses_what_it_plays_and_is_not_paired_again(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "ben", plays=silent)
        competition, task = await hall.begin("ann", "ben", limits=Limits(), **LADDER)
        competition.remove("ben", act("remove", bot="ben"))
        await turns()

        assert hall.book.kinds() == {Ending.REMOVED: 1}
        assert not house.conduct.tables
        with pytest.raises(UsageError, match="expected a bot that is in c"):
            competition.remove("ben", act("remove", bot="ben"))

        hall.comes("cem")
        hall.plays("ann", first_legal)
        await until(hall, 3)
        report = await closed(competition, task)
        assert Counter(
            "ben" in row.players for row in hall.book.rows if row.counts
        ) == {True: 1, False: report.played - 1}
        assert [verdict.bot for verdict in report.verdicts] == ["ben"]
        *others, ben = report.standings
        assert (ben.name, ben.rank, ben.played) == ("ben", None, 0)
        assert {row.played for row in others} == {report.played - 1}, "but for ben's"

    run(scenario)


def test_who_is_removed_from_a_ladder_is_struck_with_what_it_had_played(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "ben", "cem")
        competition, task = await hall.begin("ann", "ben", "cem", **LADDER)
        await until(hall, 9)
        met = [row for row in hall.book.results() if "ben" in row.players]
        competition.remove("ben", act("remove", bot="ben"))
        await competition.ledger.rated()
        rows = {row.name: row for row in competition.ledger.book.rows}

        assert met
        assert rows["ben"].eliminated is not None
        assert rows["ann"].played == rows["cem"].played
        left = [row for row in hall.book.results() if "ben" not in row.players]
        assert rows["ann"].played == len(left)
        assert competition.played == len(hall.book.results())
        await closed(competition, task)

    run(scenario)


@pytest.mark.parametrize("gone", [("ben",), ("ben", "dan")])
def test_a_ladder_is_rated_anew_off_the_loop_and_what_ends_meanwhile_counts(
    house: FakeArena, monkeypatch: pytest.MonkeyPatch, gone: tuple[str, ...]
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "ben", "cem", "dan")
        competition, task = await hall.begin("ann", "ben", "cem", "dan", **LADDER)
        await until(hall, 12)
        go, results, read = threading.Event(), hall.book.results, list[bool]()

        def held(*which: str) -> list[Played]:
            found = results(*which)
            if threading.current_thread() is not threading.main_thread():
                read.append(go.wait(TIMEOUT_S))
            return found

        monkeypatch.setattr(hall.book, "results", held)
        for name in gone:
            competition.remove(name, act("remove", bot=name))
            await until(hall, len(hall.book.matches) + 3)
        go.set()
        await competition.ledger.rated()
        rows = {row.name: row for row in competition.ledger.book.rows}

        assert any(read)
        for name in {"ann", "cem", "dan"} - set(gone):
            left = [row for row in results() if name in row.players]
            counted = [row for row in left if not set(gone) & set(row.players)]
            assert rows[name].played == len(counted)
        await closed(competition, task)

    run(scenario)


def test_a_bot_that_came_later_can_be_removed_too(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "late", plays=silent)
        competition, task = await hall.begin("ann", **LADDER)
        assert len(house.conduct.tables) == 1
        competition.remove("late", act("remove", bot="late"))
        await turns()

        assert not house.conduct.tables
        await closed(competition, task)

    run(scenario)


def test_the_house_bots_of_other_competitions_are_not_paired_but_its_own_are(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.guests = {"theirs", "ours"}
        hall.come("ann", "theirs", plays=silent)
        competition = hall.compete("ann", **LADDER)
        competition.arbiter.guests.add("ours")
        task = asyncio.create_task(competition.run())
        await turns()
        assert not house.conduct.tables
        assert not competition.is_in("theirs")

        hall.comes("ours", silent)
        await turns()
        [table] = house.conduct.tables
        assert {chair.player.name for chair in table.chairs} == {"ann", "ours"}
        await closed(competition, task)

    run(scenario)


def test_people_are_not_paired(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.people = {"Pat"}
        hall.come("ann", "Pat", plays=silent)
        competition, task = await hall.begin("ann", **LADDER)

        assert not house.conduct.tables
        assert not competition.is_in("Pat")
        await closed(competition, task)

    run(scenario)


def test_it_goes_on_with_the_ratings_and_the_numbers_of_before(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        first = FakeHost(house)
        first.come("ann", "ben")
        competition, task = await first.begin("ann", "ben", **LADDER)
        await until(first, 5)
        before = await closed(competition, task)
        earlier = first.book.results()

        hall = FakeHost(house)
        again = hall.compete("ann", "ben", **LADDER, earlier=earlier)
        assert again.ledger.book.rows == before.standings

        hall.come("ann", "ben")
        task = asyncio.create_task(again.run())
        await until(hall, 2)
        report = await closed(again, task)
        assert hall.book.rows[0].pairing == len(earlier) + 1
        assert report.played == len(earlier) + len(hall.book.results())

    run(scenario)


def test_it_gives_no_number_a_second_time_when_it_goes_on(house: FakeArena) -> None:
    """There are fewer results than numbers: the first match was taken back."""

    async def scenario() -> None:
        first = FakeHost(house)
        first.come("ann", "ben")
        competition, task = await first.begin("ann", "ben", **LADDER)
        await until(first, 4)
        await closed(competition, task)
        earlier = first.book.results()[1:]

        hall = FakeHost(house)
        hall.book.rows = list(earlier)
        again = hall.compete("ann", "ben", **LADDER, earlier=earlier)
        hall.come("ann", "ben")
        task = asyncio.create_task(again.run())
        await until(hall, 1)
        await closed(again, task)

        assert hall.book.rows[len(earlier)].pairing == earlier[-1].pairing + 1

    run(scenario)


def test_a_competition_with_an_end_gets_a_table_before_the_ladder_does(
    house: FakeArena,
) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.come("ann", "ben")
        ladder, climbing = await hall.begin(
            "ann", "ben", competition="ladder", **LADDER
        )
        _, league = await hall.begin(
            "ann", "ben", competition="cup", game="ace_king_queen", matches=20
        )
        started = len(hall.book.results("ladder"))
        await in_time(league)
        assert len(hall.book.results("cup")) == 20
        # What was being played when the cup came was finished, and no more begun.
        assert len(hall.book.results("ladder")) <= started + 1

        await until(hall, 20 + started + 3)
        await closed(ladder, climbing)

    run(scenario)


def test_a_store_that_fails_ends_it(house: FakeArena) -> None:
    async def scenario() -> None:
        hall = FakeHost(house)
        hall.book.fails_at = 2
        hall.come("ann", "ben")
        with pytest.raises(StoreFailed, match="the disk is full"):
            await hall.play("ann", "ben", **LADDER)

        assert not house.conduct.tables

    run(scenario)
