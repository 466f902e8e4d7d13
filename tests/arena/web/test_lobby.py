"""The lobby's document: competitions, bots, matches and the queue in the arena's memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from arena.competitions.attendance import Upcoming
from arena.competitions.live_arena import LiveArena
from arena.formats.schedule import Pairing
from arena.formats.spec import Form, Take
from arena.games.catalogue import GAMES
from arena.games.match import Result
from arena.web import lobby as module
from arena.web.lobby import LatestMatches, LobbyResult, lobby
from arena.web.spectators import Spectators
from protocol.messages import Ending, Termination
from tests.support.fake_bots import FakeArena
from tests.support.fake_host import FakeHost, WorkingStorage, first_legal, silent
from tests.support.scripts import fit

pytestmark = pytest.mark.virtual_time


def look(
    host: FakeHost,
    latest: Iterable[LobbyResult] = (),
    upcoming: Iterable[Upcoming] = (),
    aside: Iterable[str] = (),
    submissions: object = None,
    host_directory: object = None,
) -> Any:
    """The lobby of an arena with this host, decoded."""
    admission = SimpleNamespace(requires_token=True)
    real_host = SimpleNamespace(
        competitions=tuple(host.competitions),
        referee=host.house.referee,
        gateway=SimpleNamespace(players=host.players, admission=admission),
        here=SimpleNamespace(non_competing=set(aside)),
        host_directory=host_directory,
        submissions=submissions,
        storage=WorkingStorage(),
    )
    spectators = cast(Spectators, SimpleNamespace(viewers=lambda match: 7))
    return msgspec.json.decode(lobby(cast(LiveArena, real_host), spectators, latest, upcoming))


async def test_an_arena_where_nothing_goes_on_says_what_it_can_play(house: FakeArena) -> None:
    shown = look(FakeHost(house))

    house_bots = {game["name"]: game["house"] for game in shown["arena"]["games"]}
    assert list(house_bots) == list(GAMES)
    assert "expert" in house_bots["gin_rummy"]
    assert "master" not in house_bots["gin_rummy"]  # it is slow: nobody's opponent
    assert shown["arena"]["requires_token"]
    assert not shown["arena"]["practice"]
    assert not any(shown[key] for key in shown if key != "arena")


@pytest.mark.parametrize(
    ("field", "given"), [("submissions", "submissions"), ("hosts", "host_directory")]
)
async def test_the_page_knows_whether_programs_are_taken_and_other_machines_run_bots(
    house: FakeArena, field: str, given: str
) -> None:
    assert not look(FakeHost(house))["arena"][field]
    more: dict[str, Any] = {given: SimpleNamespace(settings=SimpleNamespace(closes=1234.5))}
    arena = look(FakeHost(house), **more)["arena"]
    assert arena[field]
    assert arena["submissions_close"] == (1234.5 if field == "submissions" else None)


async def test_a_competition_is_there_with_its_matches_and_who_waits(host: FakeHost) -> None:
    host.come("ann", "ben", "cem", "dee", plays=silent)
    await host.begin("ann", "ben", "cem", "dee", "eva")
    shown = look(host)

    going = "id=c form=round_robin bots=5 settled=0 scheduled=10 waits_for.#=1 waits_for.0=eva"
    fit(shown["competitions"], "#=1")
    fit(shown["competitions"][0], going)
    fit(shown, 'matches.competition=["c","c"] matches.scores=0,0;0,0 matches.viewers=7,7')
    fit(shown, "queue.#=8 queue_more=0")
    assert all(pairing["waits_for"] for pairing in shown["queue"])
    assert any("eva" in pairing["waits_for"] for pairing in shown["queue"])
    await host.end()


async def test_submitted_bots_take_part_though_they_are_not_connected(host: FakeHost) -> None:
    host.takes_submissions(1, ann=11, ben=21)
    host.submitted_play.update(ann=silent, ben=silent)
    host.comes("eva", silent)
    versions = {"ann": 11, "ben": 21}
    await host.begin("ann", "ben", "eva", take=Take.EITHER, versions=versions)
    shown = look(host)

    states = {bot["name"]: bot["state"] for bot in shown["bots"]}
    assert states == {"eva": "here", "ann": "submitted", "ben": "submitted"}
    assert sum(bot["playing"] for bot in shown["bots"]) == 2 * len(shown["matches"])
    fit(shown["competitions"][0], "bots=3 waits_for=[]")
    assert all(set(pairing["waits_for"]) <= {"eva"} for pairing in shown["queue"])
    await host.end()


async def test_bots_are_here_away_or_leaving(host: FakeHost) -> None:
    host.come("ann", "guest", tables=3)
    away = host.comes("ben")
    away.goes()
    host.comes("cem").player.leaving = True
    bots = look(host, aside=["guest"])["bots"]

    fit(bots, "name=ann,ben,cem state=here,away,leaving 0.rtt_ms=0.5 1.rtt_ms=null")
    fit(bots[0], "tables=3 launched=false")
    assert bots[0]["games"] == list(GAMES)


async def test_lists_are_cut_and_say_by_how_much(host: FakeHost, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "_BOTS", 2)
    monkeypatch.setattr(module, "_MATCHES", 1)
    monkeypatch.setattr(module, "_QUEUE", 3)

    host.come("ann", "ben", "cem", "dee", plays=silent)
    await host.begin("ann", "ben", "cem", "dee", matches=5)
    shown = look(host)

    fit(shown, "bots.#=2 bots_more=2 matches.#=1 matches_more=1 queue.#=3 queue_more=25")
    await host.end()


async def test_the_slow_matches_are_shown_and_the_newest_is_the_last(
    house: FakeArena, host: FakeHost, monkeypatch: Any
) -> None:
    monkeypatch.setattr(module, "_MATCHES", 2)

    house.now = asyncio.get_running_loop().time()
    for names in ("ab", "cd", "ef"):
        house.open(*map(house.bot, names))
        house.now += 1
    fast = house.referee.tables[0]
    fast.match = cast(Any, SimpleNamespace(answers=[0] * 999, scores=(1, -1)))
    shown = [match["players"] for match in look(host)["matches"]]

    assert shown == [["c", "d"], ["e", "f"]]


async def test_a_persons_match_is_in_no_competition(house: FakeArena, host: FakeHost) -> None:
    house.open(house.bot("eva"), house.bot("house:nash"))
    [match] = look(host)["matches"]

    fit(match, "competition=null decisions=0")


async def test_a_ladder_has_no_end_and_no_queue(host: FakeHost) -> None:
    host.come("ann", "ben")
    await host.begin("ann", form=Form.LADDER)
    shown = look(host)

    fit(shown, "competitions.scheduled=[null] competitions.0.bots>0 queue=[]")
    await host.end()


async def test_it_tells_of_matches_that_are_over_and_of_runs_to_come(host: FakeHost) -> None:
    host.come("ann", "ben", plays=first_legal)
    competition = host.compete("ann", "ben")
    ended = Termination(Ending.ILLEGAL, 1, "a text that may tell cards")
    result = Result((1, -1), (0, 0), ended)
    latest = LatestMatches()
    for number in range(30):
        pairing = Pairing(number, ("ann", "ben"))
        latest.match_finished(competition.ledger, f"m-{number}", pairing, result)
    coming = Upcoming("finals", "gin_rummy", "round_robin", 12.0)
    shown = look(host, latest, [coming])

    assert [match["id"] for match in shown["latest"]][:2] == ["m-29", "m-28"]
    fit(shown, "latest.#=20 latest.0.termination=illegal")
    assert "cards" not in str(shown["latest"])
    assert msgspec.convert(shown["runs"], list[Upcoming]) == [coming]
