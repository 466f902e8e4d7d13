"""`python -m bots`: called wrong, and what it says of matches."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import bots.__main__
from bots.__main__ import _result, main
from bots.session_file import SessionUnusable, default_place
from protocol.messages import Ending, Limits, Match, Over, Termination, Verdict


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "missing argument 'GAME NAME | FILE.py | 'stdio: COMMAND''"),
        (["akq"], "expected GAME NAME, FILE.py or 'stdio: COMMAND'"),
        (["stdio:", "sh", "x"], "expected 'stdio: COMMAND' as one word, in quotes"),
        (["stdio: sh", "--seed", "1"], "expected no --encoding, --seed or --session"),
        (["akq", "nash", "--tables", "x"], "invalid value for '--tables': 'x' is not a"),
        (["akq", "nash", "--tables", "0"], "invalid value for '--tables': 0 is not in"),
        (["akq", "nash", "--encoding", "xml"], "invalid value for '--encoding': 'xml' is not"),
        (["akq", "nash", "honest"], "expected GAME NAME, FILE.py or 'stdio: COMMAND'"),
        (["akq", "nash", "--colour", "1"], "no such option"),
        (
            ["akq", "nash", "--session", "x.json", "--no-session"],
            "expected --session or --no-session, got both",
        ),
    ],
)
def test_called_wrong_is_one_line_in_the_arenas_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["bots", *words])

    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"arena: {said}")
    assert line.endswith("; see 'python -m bots --help'")


# --- where the session is kept ---


class Stub:
    """A client that only notes how it was made."""

    options: dict[str, Any]

    def __init__(self, url: str, name: str, strategies: Any, **options: Any) -> None:
        Stub.options = options

    async def run(self) -> None:
        """The arena has closed."""


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


# --- what it says of a match ---

MATCH = Match("m.0", "high_low", 1, ("ann", "ben", "cat", "dan"), {}, Limits(), "hash")


def said(termination: Termination, verdict: Verdict | None = None) -> str:
    """What is said after the scores."""
    over = Over("m.0", (), (1, 2, 3, 4), termination, None, verdict)
    line = _result(MATCH, over)
    beginning = "high_low match m.0 over · ann: +1 you: +2 cat: +3 dan: +4"
    assert line.startswith(beginning)
    return line.removeprefix(beginning)


def test_a_match_that_ran_its_course_needs_no_words() -> None:
    assert said(Termination(Ending.COMPLETED)) == ""


def test_a_void_match_has_its_reason() -> None:
    assert said(Termination(Ending.VOID, None, "a fault")) == " · void: a fault"
    assert said(Termination(Ending.VOID)) == " · void"


def test_J3_others_learn_who_is_out_and_the_word() -> None:
    assert said(Termination(Ending.TIMEOUT, 2)) == " · cat is out: timeout"
    assert said(Termination(Ending.TIMEOUT, 1)) == " · you are out: timeout"


@pytest.mark.parametrize(
    ("kind", "advice", "words"),
    [
        (Ending.MEMORY, "use less", " · eliminated: 9 MiB > 8 MiB; use less"),
        (Ending.MEMORY, "", " · eliminated: 9 MiB > 8 MiB"),
        (Ending.CRASH, "see stderr", " · 9 MiB > 8 MiB; see stderr"),
    ],
)
def test_J4_who_is_to_blame_learns_what_to_do(kind: Ending, advice: str, words: str) -> None:
    verdict = Verdict(
        kind=kind,
        match="m",
        game="high_low",
        bot="ben",
        seat=1,
        text="9 MiB > 8 MiB",
        advice=advice,
        stderr="Traceback",
        bank_ms=0,
        limits=Limits(),
    )

    assert said(Termination(kind, 1), verdict) == words
