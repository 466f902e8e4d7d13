"""Transcripts and a real arena: a match gives the same transcript live and from its record."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from arena.competitions.arena_host import Host
from arena.formats.spec import plan_of
from arena.games import GAMES
from arena.records.check_transcript import check
from arena.records.seat_transcript import conversation
from arena.records.transcript import Side
from arena.storage.store import Store
from protocol.messages import Limits
from tests.support.sample_database import SHORT
from tests.support.scenes import SCENES
from tests.tools import vectors
from tests.tools.transcripts import FOLDER, main

pytestmark = pytest.mark.e2e

TIMEOUT_S = 60.0
LIMITS = Limits(decision_ms=10_000, hard_ms=20_000)  # so that the bank stays full

Message = dict[str, Any]


def test_the_transcripts_are_those_of_the_scenes() -> None:
    assert sorted(file.stem for file in FOLDER.iterdir()) == sorted(scene.name for scene in SCENES)


def test_one_command_finds_that_all_comes_out_the_same_once_more() -> None:
    assert vectors.main(["--check"]) == 0


def test_a_transcript_that_is_not_there_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.tools.transcripts.FOLDER", tmp_path)
    name = "ace_king_queen-1"
    assert main(["--check", name]) == 1
    assert main([name]) == 0
    assert main(["--check", name]) == 0

    captured = capsys.readouterr()
    assert captured.err == "ace_king_queen-1 comes out differently\n"
    assert [file.name for file in tmp_path.iterdir()] == ["ace_king_queen-1.jsonl"]
    assert (tmp_path / f"{name}.jsonl").read_bytes() == (FOLDER / f"{name}.jsonl").read_bytes()


def test_the_one_command_names_what_is_stale_and_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(vectors.FOLDER, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr("tests.tools.vectors.FOLDER", tmp_path)
    cards = tmp_path / "cards.json"
    text = cards.read_bytes()
    cards.write_bytes(text.replace(b'"ace_king_queen": [["A"', b'"ace_king_queen": [["B"'))

    assert vectors.main(["--check"]) == 1
    assert capsys.readouterr().err == f"stale: {cards}; run `python -m tests.tools.vectors`\n"
    assert vectors.main([]) == 0
    assert cards.read_bytes() == text


class Logged:
    """A bot by hand that answers by chance, and writes down what is said about its matches."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.said: dict[str, list[tuple[Side, Message]]] = {}
        self.is_welcome = asyncio.Event()
        self._random = random.Random(name)

    async def play(self, url: str, game: str) -> None:
        """Until the arena closes."""
        async with connect(url, compression=None) as websocket:
            hello = {"type": "hello", "protocol": 1, "name": self.name, "games": [game]}
            await websocket.send(json.dumps(hello))
            async for frame in websocket:
                heard = json.loads(frame)
                if heard["type"] == "welcome":
                    self.is_welcome.set()
                    continue
                answer = self._answer(heard)
                lines = self.said.setdefault(heard["match"], [])
                lines.append((Side.ARENA, heard))
                if answer is not None:
                    lines.append((Side.BOT, answer))
                    await websocket.send(json.dumps(answer))

    def _answer(self, heard: Message) -> Message | None:
        match heard["type"]:
            case "match":
                nonce = f"{self.name} {heard['match']}"
                return {"type": "ready", "match": heard["match"], "nonce": nonce}
            case "ask":
                legal = heard["legal"]
                is_range = isinstance(legal, dict)
                value = legal["min"] if is_range else self._random.choice(legal)
                about = {"match": heard["match"], "ask": heard["ask"]}
                return {"type": "answer", **about, "value": value}
            case _:
                return None


async def competition(file: Path, game: str, bots: list[Logged]) -> None:
    """Have the bots play a whole competition over the network, into a database."""
    rules = GAMES[game]
    settings = rules.vocabulary.read_settings(SHORT[game])
    with Store(file) as store:
        async with asyncio.timeout(TIMEOUT_S):
            async with Host(store, limits=LIMITS) as host:
                playing = [asyncio.create_task(bot.play(host.url, game)) for bot in bots]
                for bot in bots:
                    await bot.is_welcome.wait()
                names = tuple(bot.name for bot in bots)
                plan = plan_of(rules, settings, names, limits=LIMITS)
                await host.play(host.compete(plan))
            await asyncio.gather(*playing)


@pytest.mark.parametrize("game", GAMES)
async def test_what_is_made_of_a_record_is_what_was_said(game: str, tmp_path: Path) -> None:
    file = tmp_path / "arena.db"
    bots = [Logged(name) for name in ("ann", "ben", "cem", "Zoë")]
    await competition(file, game, bots)
    compared = 0

    with Store(file, create=False) as store:
        [one] = store.competitions()
        for played in store.matches(one.id):
            record = store.record(played.id)
            for seat, name in enumerate(played.players):
                chair = f"{played.id}.{seat}"
                [bot] = [bot for bot in bots if bot.name == name]
                made = conversation(record, played.players, seat, chair, limits=one.plan.limits)
                lines = [(line.side, json.loads(line.text)) for line in made.lines]

                assert check(made) == ()
                assert lines[2:] == bot.said[chair]
                compared += 1
    assert compared >= len(bots)
