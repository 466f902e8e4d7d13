"""The page's tables in node: real matches in every view go through the reducers."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from arena.games.catalogue import GAMES, game_named
from arena.games.match import MatchState, Record
from arena.records.captions import Captioner
from arena.records.rounds import rounds_of
from arena.records.visibility import seen
from arena.web.files import game_files
from protocol.cards import PACK
from protocol.gin_melds import arrange, points
from protocol.messages import Ending
from protocol.vocabulary import Range
from protocol.watching import View
from tests.support.needs import tool

PAGE = Path(__file__).parents[3] / "arena/web/page"
TESTS = Path(__file__).parent / "page"
NODE_S = 280  # a few seconds on a machine that does nothing else

SETTINGS: dict[str, dict[str, Any]] = {
    "ace_king_queen": {"hands": 12},
    "gin_rummy": {"games": 1, "max_rounds": 2},
    "high_low": {"max_shuffles": 1},
    "three_card_poker": {"rounds": 9},
    "blackjack": {"hands": 9, "bankroll": 400},
}
_BY_SEAT = {"cards", "payoffs", "scores"}
_VIEWS = (View("all"), View("public"), View("seat", (0,)))


@pytest.fixture(scope="module")
def node() -> str:
    """The program that runs the page's modules."""
    return tool("node")


@pytest.mark.e2e
def test_all_views_of_all_games_go_through_the_tables(node: str, tmp_path: Path) -> None:
    shutil.copytree(PAGE, tmp_path / "page")
    shutil.copytree(TESTS, tmp_path / "tests")
    for name, body in game_files().items():
        file = tmp_path / "page" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    given = {"matches": list(_matches()), "hands": list(_hands(200))}
    (tmp_path / "tests/matches.json").write_text(json.dumps(given))

    run = subprocess.run(
        [node, "--test", *sorted(map(str, (tmp_path / "tests").glob("*.test.mjs")))],
        capture_output=True,
        text=True,
        timeout=NODE_S,
        check=False,
    )

    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]


def _matches() -> Iterator[dict[str, Any]]:
    """Matches of every game by chance, one of them ended by an offence, in every view.

    Each is drawn by the game's own view and by the general one.
    """
    for name, game in GAMES.items():
        for seed, most in ((1, None), (2, 17)):
            record = _played(name, SETTINGS.get(name, game.short), seed, most)
            rounds = list(rounds_of(record))
            seats = len(record.scores)
            players = [f"ann{seat}" for seat in range(seats)]
            captions = Captioner(game.vocabulary, players)
            for view, words in product(_VIEWS[: 2 if seats == 1 else 3], (None, captions)):
                drawn = f"{name} in general" if words else name
                yield {
                    "name": f"{drawn} {seed} {view.kind}",
                    "game": name,
                    "drawn": drawn,
                    "isAsScored": words is None or game.points is None,
                    "by_seat": {
                        kind: [field for field in news.__struct_fields__ if field in _BY_SEAT]
                        for kind, news in game.vocabulary.news.items()
                    },
                    "settings": record.settings,
                    "players": players,
                    "view": {"kind": view.kind, "seats": list(view.seats)},
                    "rounds": [
                        {
                            "round": each.number,
                            "scores": each.scores,
                            "events": seen(each.events, view, seats, words),
                        }
                        for each in rounds
                    ],
                }


def _played(name: str, settings: Mapping[str, Any], seed: int, most: int | None) -> Record:
    """A match by chance; with `most`, a seat is out of time after so many answers."""
    game = game_named(name)
    dice = random.Random(seed)
    chosen = game.vocabulary.read_settings(settings)
    nonces = ("ab" * 16,) * game.seats
    match = MatchState(game, chosen, seed=bytes([seed]) * 32, nonces=nonces)
    while match.pending is not None:
        if len(match.answers) == most:
            match.end(Ending.TIMEOUT, match.pending.seat, "out of time: 5,200 ms")
            break
        legal = match.pending.question.choices
        if isinstance(legal, Range):
            answer = dice.randint(legal.min, min(legal.max, legal.min + 20))
        else:
            knocks = [each for each in legal if getattr(each, "knock", False)]
            answer = dice.choice(knocks or list(legal))
        note = "a note" if dice.random() < 0.1 else None
        match.answer(answer, note, took_ms=dice.randint(0, 50))
    return match.result().record


def _hands(number: int) -> Iterator[dict[str, Any]]:
    """Hands by chance, of few ranks so that they meld, and the least deadwood of each."""
    dice = random.Random(3)
    for _ in range(number):
        few = dice.sample("A23456789TJQK", dice.randint(4, 13))
        cards = [card for card in PACK if card[0] in few]
        hand = dice.sample(cards, dice.choice((10, 11)))
        melded = {card for meld in arrange(hand)[0] for card in meld}
        left = points(card for card in hand if card not in melded)
        yield {"hand": hand, "deadwood": left}
