"""How an instructor's commands are called and what they show; a fake arena answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from arena.cli import instruct
from protocol.errors import ArenaError, Unreachable
from protocol.messages import Action, Done, Instruct, Progress

Run = Callable[..., Any]

CUP = Progress(
    competition="akq-1",
    run="cup",
    game="ace_king_queen",
    form="round_robin",
    state="running",
    settled=1_250,
    scheduled=2_000,
    left_s=200.0,
    waits_for=("ann", "ben", "cem", "dora", "eve"),
)
LADDER = Progress("gin-2", "", "gin_rummy", "ladder", "paused", 7, 0, None)


class FakeInstructSocket:
    """Notes what it is asked, and answers."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Instruct]] = []
        self.answer: Done | ArenaError = Done("done", (CUP, LADDER))

    def __call__(self, url: str, message: Instruct) -> Done:
        self.heard.append((url, message))
        if isinstance(self.answer, ArenaError):
            raise self.answer
        return self.answer


@pytest.fixture
def arena(monkeypatch: pytest.MonkeyPatch) -> FakeInstructSocket:
    here = FakeInstructSocket()
    monkeypatch.setattr(instruct, "_ask", here)
    monkeypatch.setenv("ARENA_INSTRUCTOR", "secret")
    monkeypatch.delenv("ARENA_URL", raising=False)
    return here


@pytest.mark.parametrize(
    ("words", "action", "about"),
    [
        ("pause", Action.PAUSE, {}),
        ("pause cup", Action.PAUSE, {"competition": "cup"}),
        ("resume", Action.RESUME, {}),
        ("resume akq-1", Action.RESUME, {"competition": "akq-1"}),
        ("stop cup", Action.STOP, {"competition": "cup"}),
        ("void 3f-17", Action.VOID, {"match": "3f-17"}),
        ("remove ann", Action.REMOVE, {"bot": "ann"}),
        ("remove ann --competition cup", Action.REMOVE, {"bot": "ann", "competition": "cup"}),
        ("status", Action.STATUS, {}),
        ("start cup", Action.START, {"competition": "cup"}),
        (
            "start akq --form ladder --matches 3 --set hands=20",
            Action.START,
            {"competition": "akq", "form": "ladder", "matches": 3, "settings": {"hands": 20}},
        ),
    ],
)
def test_every_command_is_one_word_to_the_arena(
    run: Run, arena: FakeInstructSocket, words: str, action: Action, about: dict[str, Any]
) -> None:
    ran = run(*words.split())

    assert (ran.status, ran.err) == (0, "")
    [(url, message)] = arena.heard
    assert url == "ws://127.0.0.1:7700"
    assert message == Instruct(1, "secret", action, **about)
    if action is not Action.STATUS:
        assert ran.out == "done\n"


def test_options_win_over_the_environment(
    run: Run, arena: FakeInstructSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARENA_URL", "ws://one:1")
    run("stop")
    run("stop", "--url", "wss://two:2", "--token", "other")

    assert [(url, message.token) for url, message in arena.heard] == [
        ("ws://one:1", "secret"),
        ("wss://two:2", "other"),
    ]


def test_status_is_a_table(run: Run, arena: FakeInstructSocket) -> None:
    out = run("status").out

    assert "1,250 of 2,000" in out
    assert "about 3 min" in out
    assert "ann, ben, cem and 2 more" in out
    [cup] = [line for line in out.splitlines() if "akq-1" in line]
    assert "cup" in cup
    assert "round robin" in cup
    [ladder] = [line for line in out.splitlines() if "gin-2" in line]
    assert "paused" in ladder
    assert " of " not in ladder


def test_the_log_is_its_lines(run: Run, arena: FakeInstructSocket) -> None:
    arena.answer = Done("2 lines", (CUP,), lines=("one", "two"))

    assert run("log").out == "one\ntwo\n"
    assert run("log", "--json").document["lines"] == ["one", "two"]
    assert [message.action for _, message in arena.heard] == [Action.LOG] * 2


@pytest.mark.parametrize("words", ["start", "start a b", "start akq --form knockout"])
def test_start_called_wrong(run: Run, arena: FakeInstructSocket, words: str) -> None:
    assert run(*words.split()).status == 2
    assert arena.heard == []


def test_status_of_nothing(run: Run, arena: FakeInstructSocket) -> None:
    arena.answer = Done("0 on")

    assert run("status").out == "no competition is on\n"


@pytest.mark.parametrize("words", ["status", "pause", "void m", "remove ann"])
def test_as_a_json_document(run: Run, arena: FakeInstructSocket, words: str) -> None:
    document = run(*words.split(), "--json").document

    assert document["text"] == "done"
    cup, ladder = document["competitions"]
    assert cup["waits_for"] == ["ann", "ben", "cem", "dora", "eve"]
    assert (cup["settled"], cup["scheduled"], cup["left_s"]) == (1_250, 2_000, 200.0)
    assert ladder["left_s"] is None


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ArenaError("expected a competition that is on (none), got 'cup'"), 1),
        (Unreachable("no arena answers at ws://x: refused"), 1),
    ],
)
def test_a_refusal_is_one_line(
    run: Run, arena: FakeInstructSocket, error: ArenaError, status: int
) -> None:
    arena.answer = error

    assert run("pause", "cup").refusal(status) == str(error)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("void", "missing argument 'MATCH'"),
        ("remove", "missing argument 'BOT'"),
        ("pause one two", "unexpected extra argument"),
    ],
)
def test_what_is_called_wrong(run: Run, arena: FakeInstructSocket, words: str, said: str) -> None:
    assert said in run(*words.split()).refusal()
    assert arena.heard == []


@pytest.mark.parametrize("command", ["status", "pause", "void", "remove"])
def test_without_a_token_it_says_where_one_comes_from(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.delenv("ARENA_INSTRUCTOR", raising=False)
    words = {"void": ["m"], "remove": ["ann"]}.get(command, [])

    assert "--token" in run(command, *words).refusal()
    help_text = " ".join(run(command, "--help").out.split())
    assert "ARENA_INSTRUCTOR" in help_text
