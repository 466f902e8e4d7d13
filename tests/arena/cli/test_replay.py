"""`arena replay`: how it finds and shows a match, and puts the questions to a bot."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import arena
from arena.cli import replay
from arena.formats.schedule import Pairing
from arena.records.seat_document import seat_document
from arena.results import audit_database
from arena.storage.store import Store
from bots.ace_king_queen import Honest
from tests.support.in_process import Run
from tests.support.sample_database import SampleWriter, plan, play


@pytest.fixture(scope="module")
def file(sample_file: Path) -> str:
    return str(sample_file)


@pytest.fixture
def honest(tmp_path: Path) -> str:
    """The record of a match that two bots played that do the same again."""
    bots = [Honest(), Honest()]
    result = arena.play("ace_king_queen", bots, settings={"hands": 60}, seed=1)
    path = tmp_path / "honest.json"
    path.write_bytes(result.record.to_json())
    return str(path)


def test_on_a_terminal_a_long_text_goes_through_a_pager(monkeypatch: pytest.MonkeyPatch) -> None:
    paged: list[str] = []
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("click.echo_via_pager", paged.append)

    replay._show(iter(["one line"]))
    assert paged == []
    replay._show(iter(["a line"] * 500))

    assert paged == ["\n".join(["a line"] * 500)]


def test_what_a_seat_saw_is_read_like_a_record(run: Run, file: str, tmp_path: Path) -> None:
    with audit_database.opened(file) as store:
        record, played = store.record("gin_rummy-1"), store.played("gin_rummy-1")
    path = tmp_path / "seat.json"
    path.write_bytes(seat_document(record, 1, played.id, played.players).to_json())

    whole = run("replay", "gin_rummy-1", "--db", file, "--seat", "2").out.splitlines()
    seen = run("replay", str(path)).out.splitlines()

    assert seen == whole[1:]
    assert run("replay", str(path), "--json").out.encode() == path.read_bytes() + b"\n"
    whole_record = "expected a whole record, got what seat 2 saw of a match"
    assert run("replay", str(path), "--seat", "1").refusal() == whole_record
    assert run("replay", str(path), "--frames").refusal() == whole_record
    assert "got what seat 2 saw of a match" in run("verify", str(path)).out


# ---- With a bot


@pytest.mark.e2e
def test_a_bot_that_answers_the_same(run: Run, honest: str) -> None:
    ran = run("replay", honest, "--seat", "2", "--bot", "honest")

    assert ran.status == 0
    assert ran.out.endswith(" answers, all as recorded\n")


@pytest.mark.e2e
def test_a_bot_that_answers_otherwise(run: Run, honest: str) -> None:
    ran = run("replay", honest, "--seat", "1", "--bot", "bluffer")

    assert ran.status == 1
    head, *lines = ran.out.splitlines()
    assert re.fullmatch(r"\d+ answers as recorded, \d+ different", head)
    assert len(lines) % 4 == 0
    for asked, legal, recorded, given in zip(*[iter(lines)] * 4, strict=True):
        assert re.fullmatch(r"question \d+, round \d+: seat-1 has the \w+", asked)
        assert legal in ("  legal: bet, check", "  legal: call, fold")
        assert recorded.startswith("  recorded: ")
        assert given.startswith("  given: ")
    # A check ends the round; after a bet the other seat is asked, and nobody knows what it does.
    told = {line for line in lines if "would have brought" in line}
    assert told
    assert not any(line.startswith("  given: bets") for line in told)
    assert ran.err.splitlines()[-1].endswith(" answered differently")


@pytest.mark.e2e
def test_a_bot_in_a_file_that_fails(run: Run, honest: str, bot_file: Callable[..., str]) -> None:
    bot = bot_file(answer="1 / 0")

    ran = run("replay", honest, "--seat", "1", "--bot", bot, "--json")

    assert ran.status == 1
    document = json.loads(ran.out)
    assert document["same"] == 0
    assert document["differs"] is None
    assert document["failed"]["text"] == "crashed: exit status 1"
    assert document["failed"]["number"] == 1
    assert "ZeroDivisionError" in document["failed"]["stderr"]
    assert "seat-1: ZeroDivisionError: division by zero" in ran.err.splitlines()
    assert ran.err.splitlines()[-1] == ("arena: the bot failed: crashed: exit status 1")


@pytest.mark.e2e
@pytest.mark.parametrize("prefix", ["", "stdio: "])
def test_a_command_that_ends_in_a_file(run: Run, honest: str, tmp_path: Path, prefix: str) -> None:
    piped = """import json, sys
def say(**message): print(json.dumps(message), flush=True)
about, frames = {"name": "x"}, sys.stdin
"""
    connects = """import json, os
from websockets.sync.client import connect
frames = connect(os.environ["ARENA_URL"])
def say(**message): frames.send(json.dumps(message))
about = {"name": os.environ["ARENA_NAME"], "token": os.environ["ARENA_TOKEN"]}
"""
    plays = """
say(type="hello", protocol=1, games=["ace_king_queen"], **about)
for frame in frames:
    heard = json.loads(frame)
    if heard["type"] == "match":
        say(type="ready", match=heard["match"], nonce="n")
    elif heard["type"] == "ask":
        say(type="answer", match=heard["match"], ask=heard["ask"], value=heard["legal"][0])
"""
    (tmp_path / "std.py").write_text((piped if prefix else connects) + plays)
    bot = f"{prefix}{shlex.quote(sys.executable)} std.py"

    with contextlib.chdir(tmp_path):
        ran = run("replay", honest, "--seat", "1", "--bot", bot)

    assert ran.status == 1, ran
    recorded, given = ran.out.splitlines()[-2:]
    assert recorded.startswith("  recorded: ")
    assert given.startswith(("  given: bets", "  given: calls"))


# ---- As frames


def conversation(run: Run, match: str, *, seat: int = 1, db: str = "no.db") -> list[dict[str, Any]]:
    ran = run("replay", match, "--db", db, "--seat", str(seat), "--frames")
    return [json.loads(line) for line in ran.text.splitlines()]


@pytest.mark.parametrize(
    ("more", "about", "seats"),
    [
        (
            {"versions": ("v3", "connected")},
            "Players: ann v3, ben (connected).",
            "ann v3, seat 2 ben (c",
        ),
        ({"worker": "north"}, "Refereed by worker north.", "ann, seat 2 ben"),
    ],
    ids=["the versions that have played", "the worker that refereed"],
)
def test_a_conversation_begins_with(
    run: Run, tmp_path: Path, more: dict[str, Any], about: str, seats: str
) -> None:
    db = str(tmp_path / "arena.db")
    with Store(db) as store:
        writer = SampleWriter(store, plan("ace_king_queen"), "akq")
        writer.finished(Pairing(1, ("ann", "ben")), play("ace_king_queen", **more), "m")
    [heading, hello, *_] = conversation(run, "m", seat=2, db=db)

    assert heading["about"] == f"Seat 2 in match m, made up from its record. {about}"
    assert (heading["players"], hello["bot"]["name"]) == (["ann", "ben"], "ben")
    assert f"seat 1 {seats}" in run("replay", "m", "--db", db).out


@pytest.mark.parametrize(
    ("change", "why"),
    [
        # The length of the nonce does not fit into two bytes.
        ({"nonces": ("n" * 70_000, "n")}, ""),
        ({"answers": ()}, "it says completed, but has only 0 answers"),
    ],
    ids=["unforeseen", "no answers"],
)
def test_a_record_that_cannot_be_played_has_no_conversation(
    run: Run, tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    path = tmp_path / "record.json"
    record = play("ace_king_queen").record
    path.write_bytes(msgspec.structs.replace(record, **change).to_json())

    line = run("replay", str(path), "--seat", "1", "--frames").refusal(1)
    assert line.startswith(f"match replay cannot be played again: {why}")
