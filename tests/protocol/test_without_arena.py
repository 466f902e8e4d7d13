"""The wire, all vocabularies and all house bots, in a process that cannot import `arena`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from arena.games.catalogue import GAMES
from protocol.games import MOST_SEATS
from protocol.strategy import house_bots
from tests.support.toy_games import toy_name, write_toy

pytestmark = pytest.mark.e2e

SEATS = (1, 2, 3, 6, MOST_SEATS)

WRITES = """
from pathlib import Path
from arena.authoring.samples import vectors
from arena.games.catalogue import GAMES

for game in GAMES.values():
    for name, text in vectors(game).items():
        if name.endswith(".jsonl"):
            Path(name).write_text(text, encoding="utf-8")
"""
"""A match of every house bot, as the arena plays it."""

PLAYS_AGAIN = """
import json
import sys
from pathlib import Path

sys.modules["arena"] = None  # so that importing it fails

from protocol.codec import Encoding, decode_from_arena, decode_from_bot, encode
from protocol.messages import Answer, Ask, Match, Over
from protocol.strategy import house_bots

played = []
for path in sorted(Path().glob("*.jsonl")):
    game, _, bot = path.stem.partition("-")
    heading, *lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    strategy = house_bots(game)[bot]()
    strategy.seed(heading["players"][0])
    strategy.reset()
    value = None
    for line in lines:
        [(side, said)] = line.items()
        frame = json.dumps(said).encode()
        if side == "bot":
            [message] = decode_from_bot(frame, Encoding.JSON)
            if isinstance(message, Answer):
                assert message.value == json.loads(encode(value, Encoding.JSON))["value"], path
            continue
        [message] = decode_from_arena(frame, Encoding.JSON, {"m.0": game}.__getitem__, game)
        packed = encode(message, Encoding.MSGPACK)
        again = decode_from_arena(packed, Encoding.MSGPACK, {"m.0": game}.__getitem__)
        assert again == [message], path
        if isinstance(message, Match):
            assert len(message.seats) == len(heading["players"]), path
        if isinstance(message, Ask | Over):
            for news in message.news:
                strategy.hear(news)
        if isinstance(message, Ask):
            value = Answer(message.match, message.ask, strategy.decide(message.question))
            message.question.check(value.value)
    assert isinstance(message, Over), path
    played.append(path.stem)
assert not [name for name in sys.modules if name.startswith("arena.")]
print(json.dumps(played))
"""


VARIANT = """
from msgspec.structs import replace
from protocol import high_low
from protocol.vocabulary import News
from protocol.words import Told

class Closed(News, frozen=True, gc=False, tag="closed"):
    '''How a round ended.

    Attributes:
        round: which it was.
        gains: what it brought.
    '''

    round: int
    gains: tuple[int, ...]

VOCABULARY = replace(
    high_low.VOCABULARY,
    name="variant",
    alias="variant",
    seats=3,
    closes=Closed,
    payoffs=lambda news: news.gains,
    words={
        high_low.Swap: high_low.VOCABULARY.words[high_low.Swap],
        high_low.Bid: high_low.VOCABULARY.words[high_low.Bid],
        high_low.Dealt: high_low.VOCABULARY.words[high_low.Dealt],
        Closed: Told("{gains}"),
    },
)
"""
"""A game with the questions of one of ours, and news of its own."""

BOTH = """
from protocol.codec import Encoding, decode_from_arena, encode
from protocol.entry_points import LEFT_OUT
from protocol.high_low import RoundOver, Swap
from protocol.messages import Ask
from variant import Closed

assert not LEFT_OUT, LEFT_OUT
news = {
    "high_low": RoundOver((None,) * 4, None, (-2,) * 4, (-2,) * 4),
    "variant": Closed(1, (0, 0, 0)),
}
for game, told in news.items():
    for encoding in Encoding:
        ask = Ask("m.0", "m.0:1", Swap("As", "2c"), (told,), 0, 0)
        frame = encode(ask, encoding)
        for likely in (None, game):
            assert decode_from_arena(frame, encoding, lambda match: game, likely) == [ask]
"""


def run(code: str, packages: Path, folder: Path) -> str:
    """Run a program in a process that finds these packages; returns what it prints."""
    root = str(Path(__file__).parents[2])
    paths = (str(packages), root, os.environ["PYTHONPATH"])
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_house_bots_play_their_matches_again_without_the_arena(tmp_path: Path) -> None:
    packages, folder = tmp_path / "toys", tmp_path / "vectors"
    toys = [write_toy(packages, seats) for seats in SEATS]
    folder.mkdir()

    run(WRITES, packages, folder)
    played = json.loads(run(PLAYS_AGAIN, packages, folder))

    assert toys == [toy_name(seats) for seats in SEATS]
    assert {*played} == {
        *(f"{game}-{bot}" for game in GAMES for bot in house_bots(game)),
        *(f"{toy}-{bot}" for toy in toys for bot in ("bold", "random", "timid")),
    }


def test_a_game_may_ask_the_questions_of_another_and_tell_its_own_news(tmp_path: Path) -> None:
    (tmp_path / "variant.py").write_text(VARIANT)
    info = tmp_path / "variant-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: variant\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[protocol.games]\nvariant = variant\n")

    run(BOTH, tmp_path, tmp_path)
