"""Transcripts and a real arena: a match gives the same transcript live and from its record."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import defaultdict
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from arena.competitions.live_arena import LiveArena
from arena.formats.spec import plan_of
from arena.games.catalogue import GAMES
from arena.records.transcript import Side, conversation
from arena.storage.store import Store
from protocol.messages import Limits
from tests.support.gateway_bots import Message, RawBot
from tests.support.sample_database import SHORT
from tests.support.scenes import SCENES
from tests.support.transcript_check import check
from tests.tools import vectors
from tests.tools.transcripts import FOLDER

pytestmark = pytest.mark.e2e

TIMEOUT_S = 60.0
LIMITS = Limits(decision_ms=10_000, hard_ms=20_000)  # so that the bank stays full


def test_the_transcripts_are_those_of_the_scenes() -> None:
    assert sorted(file.stem for file in FOLDER.iterdir()) == sorted(scene.name for scene in SCENES)


def test_all_comes_out_the_same_once_more_and_what_is_stale_is_named_and_written(
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


class LoggedBot(RawBot):
    """A bot by hand that writes down what is said about its matches."""

    def __init__(self, websocket: ClientConnection, name: str) -> None:
        super().__init__(websocket, name)
        self.lines: defaultdict[str, list[tuple[Side, Message]]] = defaultdict(list)

    async def hear(self) -> Message:
        message = await super().hear()
        self._note(Side.ARENA, message)
        return message

    async def say(self, *messages: Message, **message: Any) -> None:
        self._note(Side.BOT, message)
        await super().say(*messages, **message)

    def _note(self, side: Side, message: Message) -> None:
        if "match" in message:
            self.lines[message["match"]].append((side, message))


async def competition(file: Path, game: str, *names: str) -> dict[str, LoggedBot]:
    """Have bots play a whole competition over the network, into a database."""
    rules = GAMES[game]
    settings = rules.vocabulary.read_settings(SHORT[game])
    plan = plan_of(rules, settings, names, limits=LIMITS)
    bots: dict[str, LoggedBot] = {}
    with Store(file) as store:
        async with asyncio.timeout(TIMEOUT_S), AsyncExitStack() as stack:
            async with LiveArena(store, limits=LIMITS) as host:
                for name in names:
                    opened = connect(host.url, compression=None)
                    bots[name] = LoggedBot(await stack.enter_async_context(opened), name)
                    await bots[name].hello(games=[game])
                playing = [asyncio.create_task(bot.plays_on()) for bot in bots.values()]
                await host.play(host.compete(plan))
            await asyncio.gather(*playing)
    return bots


@pytest.mark.parametrize("game", GAMES)
async def test_what_is_made_of_a_record_is_what_was_said(game: str, tmp_path: Path) -> None:
    file = tmp_path / "arena.db"
    bots = await competition(file, game, "ann", "ben", "cem", "Zoë")
    compared = 0

    with Store(file, create=False) as store:
        [one] = store.competitions()
        for played in store.matches(one.id):
            record = store.record(played.id)
            for seat, name in enumerate(played.players):
                chair = f"{played.id}.{seat}"
                made = conversation(record, played.players, seat, chair, limits=one.plan.limits)
                lines = [(line.side, json.loads(line.text)) for line in made.lines]

                check(made)
                assert lines[2:] == bots[name].lines[chair]
                compared += 1
    assert compared >= len(bots)
