"""The documents of every form, to each kind of viewer, while a competition goes on and after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arena.formats.schedule import Pairing
from arena.formats.spec import Form, Settling
from arena.games.settle import Goal
from arena.results.match_sums import recompute
from arena.storage.store import Store
from tests.support import databases
from tests.support.golden import by_viewer, golden, laid_out
from tests.support.page_reader import INSTRUCTOR, PUBLIC, AnalysisReader, owner
from tests.support.sample_database import SampleWriter, plan, play, running

FOLDER = Path(__file__).with_name("golden")
VIEWERS = {"public": PUBLIC, "ann": owner("ann"), "ben": owner("ben"), "eva": INSTRUCTOR}
SETTLING = Settling(goal=Goal("order"), level=2.0, most=40)
COMPETITIONS: dict[str, dict[str, Any]] = {
    "round_robin": {"game": "ace_king_queen", "played": 6, "offends": 5, "matches": 2},
    "settled": {"game": "ace_king_queen", "not_there": ("zoe",), "forgive": 1, "settle": SETTLING},
    "league": {"game": "three_card_poker", "offends": 2},
    "ladder": {"game": "ace_king_queen", "form": Form.LADDER, "players": ("ann",)},
    "elimination": {"game": "high_low", "offends": 2, "players": ("ann", "ben", *"cdefghi")},
    "final": {"game": "high_low", "players": ("ann", "ben", "cem", "dee")},
    "points": {"game": "gin_rummy", "played": 2, "offends": 1},
}


def asked(of: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each kind of document once, and of a competition those of ann and ben."""
    for path in ("", "/cross", "/matches"):
        yield f"competitions/c{path}", {}
    yield "competitions", {}
    yield "competitions/c/matches", {"before": "3", "limit": "1"}
    yield "competitions/c/pairing", {"a": "ann", "b": "ben"}
    for name in ("ann", "zoe"):
        yield "competitions/c/bot", {"name": name}
    yield "competitions/c/strength", {"bot": "ann"}
    for match in (f"matches/{of}-1", f"matches/{of}-2"):
        yield match, {}
        yield f"{match}/mistakes", {"seat": "2"}
    yield f"matches/{of}-1/rounds", {"from": "1", "to": "2"}
    yield f"matches/{of}-1/record", {}


@pytest.mark.parametrize("name", COMPETITIONS)
def test_documents_are_as_they_were(name: str, tmp_path: Path) -> None:
    file, given = tmp_path / "arena.db", dict(COMPETITIONS[name])
    game = given["game"]
    if given.get("form") is Form.LADDER:
        with Store(file) as store:
            writer = SampleWriter(store, plan(**given), "c")
            for number in range(1, 7):
                seats = ("ann", "ben") if number % 3 else ("ben", "zoe")
                offender = 1 if number == 5 else None
                result = play(game, number, offender=offender, versions=(f"v{number // 2}", ""))
                writer.finished(Pairing(number, seats), result)
    else:
        running(file, **given).close()
    with Store(file, exclusive=True) as store:
        recompute(store)
        store.competition_started("later", plan("blackjack"), 5e3)
    texts: dict[str, str] = {}
    for state in ("going on", "over"):
        reader = AnalysisReader(file)
        for path, query in asked(game):
            words = " ".join([path, *(f"{key}={so}" for key, so in query.items())])
            is_done = "mistakes" in path and name != "points"  # gin takes seconds a decision
            ask = reader.analysed if is_done else reader.reply
            replies = {who: ask(f"{path}.json", viewer, **query) for who, viewer in VIEWERS.items()}
            said = {who: f"{r.status}\n{laid_out(r.body)}" for who, r in replies.items()}
            texts |= by_viewer(f"{state}: {words}", said)
        reader.close()
        databases.rows(file, "UPDATE competitions SET state = 'finished', finished_at = 9e3")
    golden(FOLDER / f"{name}.txt", texts)
