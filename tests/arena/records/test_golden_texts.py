"""What a record is told as: in words, to all and to each seat, with its decisions and its rounds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import arena
from arena.games.catalogue import GAMES
from arena.games.match import MatchResult
from arena.records.captions import Captioner
from arena.records.narrative import tell
from arena.records.rounds import rounds_of
from arena.records.seat_document import seat_document
from arena.records.transcript import conversation
from arena.records.visibility import seen
from protocol.messages import Limits
from protocol.watching import View
from tests.support.golden import golden, laid_out
from tests.support.sample_database import play, verdict_of, void
from tests.support.transcript_check import check

FOLDER = Path(__file__).with_name("golden")
NAMES = ("ann", "ben", "cem", "dee")
LONG = ("gin_rummy", "high_low")  # of which a whole match would be a hundred pages
VIEWS = {"all": View("all"), "public": View("public"), "seat 1": View("seat", (0,))}


def results(game: str) -> Iterator[tuple[str, MatchResult]]:
    """A match to its end, if that is near, one that was void, and one that seat 1 ended."""
    more: dict[str, Any] = {"shuffle": "uniform"} if game == "blackjack" else {}
    settings = {**GAMES[game].rounds(2), **more}
    versions = ("v1", "connected", "", "v2")[: GAMES[game].seats]
    cut: dict[str, Any] = {"offender": 1, "after": 14} if game in LONG else {}
    result = play(game, 2, settings=settings, note="Aha", versions=versions, **cut)
    yield "played", result
    yield "offence", play(game, 3, offender=0, worker="north\x1b")
    yield "void", void(game)


@pytest.mark.parametrize("game", GAMES)
def test_a_record_is_told_as_it_was(game: str) -> None:
    seats, texts = GAMES[game].seats, {}
    players, captions = NAMES[:seats], Captioner(GAMES[game].vocabulary, NAMES[:seats])
    for name, result in results(game):
        record = result.record
        is_offence = result.termination.is_offence
        verdict = verdict_of("m-1", players, result) if is_offence else None
        for seat in (None, *range(min(seats, 2))):
            who = f"{name}, as seat {seat} sees it" if seat is not None else name
            texts[who] = "\n".join(tell(record, players, seat=seat, verdict=verdict))
        talk = conversation(record, players, seats - 1, "m-1", limits=Limits(), verdict=verdict)
        check(talk)
        texts[f"{name}, on the wire"] = talk.to_bytes().decode()
        document = seat_document(record, 0, "m-1", players)
        texts[f"{name}, the document of seat 0"] = laid_out(document.to_json())
        decisions = msgspec.to_builtins([*arena.decisions(record)] if record.answers else [])
        texts[f"{name}, decisions"] = "\n".join(map(str, decisions))
        for kind, view in VIEWS.items():
            shown = [
                f"{each.number} {each.scores} {event}"
                for each in rounds_of(record)
                for event in seen(each.events, view, seats, captions)
            ]
            texts[f"{name}, the events for {kind}"] = "\n".join(shown)
    golden(FOLDER / f"{game}.txt", texts)
