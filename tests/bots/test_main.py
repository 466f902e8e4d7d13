"""`python -m bots`: where it keeps its session, and what it says of matches.

How it is called wrong is in tests/arena/cli/connect.cram.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import bots.__main__
from bots.__main__ import _result, main
from bots.reach import NotAdmitted
from bots.session_file import SessionUnusable, default_place
from protocol.errors import TOKEN_NEEDED
from protocol.messages import Ending, Limits, Match, Over, Termination, Verdict

# --- where the session is kept ---


class Stub:
    """A client that only notes how it was made."""

    options: dict[str, Any]

    def __init__(self, url: str, name: str, strategies: Any, **options: Any) -> None:
        Stub.options = options

    async def run(self) -> None:
        """The arena has closed."""

    def finish(self) -> None:
        """Nothing is on."""

    def has_lost_arena(self) -> bool:
        return True


def options_of(monkeypatch: pytest.MonkeyPatch, *words: str) -> dict[str, Any]:
    """What the client is told by a command line."""
    monkeypatch.setattr(bots.__main__, "Client", Stub)
    monkeypatch.setattr(sys, "argv", ["bots", "akq", "nash", *words])
    main()
    return Stub.options


def test_it_keeps_its_session_unless_it_is_told_not_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    url, chosen = "ws://arena:7700", tmp_path / "mine.json"

    place = options_of(monkeypatch, "--url", url)["session_file"]
    assert place == default_place(url, "nash")
    other = options_of(monkeypatch, "--url", url, "--name", "ann")["session_file"]
    assert other == default_place(url, "ann")
    told = options_of(monkeypatch, "--session", str(chosen))["session_file"]
    assert told == chosen
    assert options_of(monkeypatch, "--no-session")["session_file"] is None


def test_who_has_no_place_for_it_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nowhere(url: str, name: str) -> Path:
        raise SessionUnusable("there is no home to keep the session in")

    monkeypatch.setattr(bots.__main__, "default_place", nowhere)

    assert options_of(monkeypatch)["session_file"] is None
    [line] = capsys.readouterr().err.splitlines()
    assert line == "there is no home to keep the session in; going on without"


# --- a refusal ---


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ((), "give yours with --token or in ARENA_TOKEN"),
        (("--token", "x"), "copy the whole token, as it was given to you"),
    ],
)
def test_a_token_that_is_not_taken_is_told_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    advice: str,
) -> None:
    class RefusedStub(Stub):
        async def run(self) -> None:
            raise NotAdmitted("token", TOKEN_NEEDED, "nash")

    monkeypatch.setattr(bots.__main__, "Client", RefusedStub)
    monkeypatch.setattr(sys, "argv", ["bots", "akq", "nash", "--no-session", *words])
    with pytest.raises(SystemExit, match="2"):
        main()

    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"arena: the arena refuses this bot: {TOKEN_NEEDED}; {advice}")


# --- what it says of a match ---

MATCH = Match("m.0", "high_low", 1, ("ann", "ben", "cat", "dan"), {}, Limits(), "hash")


def said(termination: Termination, verdict: Verdict | None = None) -> str:
    """What is said after the scores."""
    over = Over("m.0", (), (1, 2, 3, 4), termination, None, verdict)
    line = _result(MATCH, over)
    beginning = "high_low match m.0 over · ann: +1 you: +2 cat: +3 dan: +4"
    assert line.startswith(beginning)
    return line.removeprefix(beginning)


@pytest.mark.parametrize(
    ("termination", "words"),
    [
        (Termination(Ending.COMPLETED), ""),
        (Termination(Ending.VOID, None, "a fault"), " · void: a fault"),
        (Termination(Ending.VOID), " · void"),
        (Termination(Ending.TIMEOUT, 2), " · cat is out: timeout"),
        (Termination(Ending.TIMEOUT, 1), " · you are out: timeout"),
    ],
)
def test_J3_all_learn_how_it_ended_and_who_is_out(termination: Termination, words: str) -> None:
    assert said(termination) == words


@pytest.mark.parametrize(
    ("kind", "advice", "words"),
    [
        (Ending.MEMORY, "use less", " · eliminated: 9 MiB > 8 MiB; use less"),
        (Ending.MEMORY, "", " · eliminated: 9 MiB > 8 MiB"),
        (Ending.CRASH, "see stderr", " · 9 MiB > 8 MiB; see stderr"),
    ],
)
def test_J4_who_is_to_blame_learns_what_to_do(kind: Ending, advice: str, words: str) -> None:
    of: dict[str, Any] = {"match": "m", "game": "high_low", "bot": "ben", "seat": 1}
    of |= {"text": "9 MiB > 8 MiB", "advice": advice, "stderr": "Traceback"}
    verdict = Verdict(kind=kind, bank_ms=0, limits=Limits(), **of)

    assert said(Termination(kind, 1), verdict) == words
