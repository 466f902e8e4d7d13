"""What a ladder costs: its looks at all who are on it, and rating it anew; `competition.cases` has the rest."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest

from arena.competitions.competing_bots import CompetingBots
from arena.competitions.competition import Competition
from arena.formats.ladder import Ladder
from arena.formats.spec import Form
from arena.storage.models import MatchRow
from tests.support.fake_bots import FakeArena
from tests.support.fake_host import TIMEOUT_S, FakeHost, a_while, act, in_time, silent, until

pytestmark = pytest.mark.virtual_time

LADDER: dict[str, Any] = {"form": Form.LADDER}


async def played(host: FakeHost, matches: int) -> None:
    await until(lambda: len(host.book.matches) >= matches)


def looks_of(competition: Competition, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """From now on, a word for every look at all who are on the ladder."""
    looks: list[str] = []
    plays = competition.arbiter.bots.plays

    def looked_at() -> Any:
        looks.append("look")
        return plays()

    monkeypatch.setattr(competition.arbiter.bots, "plays", looked_at)
    return looks


async def test_what_happens_among_many_free_bots_is_looked_at_together(
    house: FakeArena, host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.come(*(f"bot {number}" for number in range(200)), plays=silent)
    competition, _ = await host.begin("bot 1", **LADDER)
    looks = looks_of(competition, monkeypatch)
    host.come(*(f"late {number}" for number in range(50)), plays=silent)
    assert looks == []
    await until(lambda: len(house.referee.tables) >= 125)
    assert 0 < len(looks) < 20, "and everybody plays in the end"


async def test_who_leaves_or_plays_something_else_causes_no_look(
    house: FakeArena, host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.come("ann", "ben", "cem", plays=silent)
    competition, _ = await host.begin("ann", **LADDER)
    looks = looks_of(competition, monkeypatch)
    host.leaves("cem")
    await a_while()
    other = house.bot("dora")
    other.player.games = frozenset({"gin_rummy"})
    host.players.add(other.player)
    host.changed()
    await a_while()
    assert looks == []

    host.come("eve", "fay", plays=silent)
    await until(lambda: len(house.referee.tables) == 2)
    assert looks != [], "one that may play does cause one"


async def test_a_verdict_costs_no_look_at_all_who_are_on_the_ladder(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host asks at every verdict whether its bot still takes part anywhere."""

    competition = host.compete("ann", *(f"bot-{n}" for n in range(50)), **LADDER)
    looks: list[str] = []
    for kind, look in ((Ladder, "rows"), (CompetingBots, "plays")):
        monkeypatch.setattr(kind, look, partial(looks.append, look))

    assert competition.is_in("ann")
    assert not competition.is_in("stranger")
    host.comes("late", silent)
    assert competition.is_in("late")
    assert looks == []


@pytest.mark.virtual_time(is_off=True)
@pytest.mark.parametrize("gone", [("ben",), ("ben", "dan")])
async def test_a_ladder_is_rated_anew_off_the_loop_and_what_ends_meanwhile_counts(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch, gone: tuple[str, ...]
) -> None:
    host.come("ann", "ben", "cem", "dan")
    competition, _ = await host.begin("ann", "ben", "cem", "dan", **LADDER)
    await played(host, 12)
    go, results, read = threading.Event(), host.book.results, list[bool]()

    def held(*which: str) -> list[MatchRow]:
        found = results(*which)
        if threading.current_thread() is not threading.main_thread():
            read.append(go.wait(TIMEOUT_S))
        return found

    monkeypatch.setattr(host.book, "results", held)
    for name in gone:
        competition.remove(name, act("remove", bot=name))
        await played(host, len(host.book.matches) + 3)
    go.set()
    await competition.ledger.rated()
    rows = {row.name: row for row in competition.ledger.book.rows}

    assert any(read)
    for name in {"ann", "cem", "dan"} - set(gone):
        left = [row for row in results() if name in row.players]
        counted = [row for row in left if not set(gone) & set(row.players)]
        assert rows[name].played == len(counted)


async def test_a_competition_with_an_end_gets_a_table_before_the_ladder_does(
    host: FakeHost,
) -> None:
    host.come("ann", "ben")
    await host.begin("ann", "ben", competition="ladder", **LADDER)
    _, league = await host.begin("ann", "ben", competition="cup", game="ace_king_queen", matches=20)
    started = len(host.book.results("ladder"))
    await in_time(league)
    assert len(host.book.results("cup")) == 20
    # What was being played when the cup came was finished, and no more begun.
    assert len(host.book.results("ladder")) <= started + 1

    await played(host, 20 + started + 3)
