"""The golden transcripts: the rules and the JavaScript example find the same.

`transcript_check` replays them by the rules; `replay.js` draws the cards again and has its own
session send what the bot has sent. They share no code. Both have to notice a changed byte, and an
end that is changed wherever it stands.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.needs import tool
from tests.support.transcript_check import check, read

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
TRANSCRIPTS = sorted((ROOT / "protocol/vectors/transcripts").glob("*.jsonl"))
REPLAY = ROOT / "bots/examples/javascript/replay.js"
TIMEOUT_S = 240

CHANGES = {
    "a seed": r'"seed":"(.)',
    "a nonce in the heading": r'"nonces":\["(.)',
    "a nonce in ready": r'"type":"ready".*"nonce":"(.)',
    "a commitment": r'"commitment":"(.)',
    "a seed in reveal": r'"reveal":{"seed":"(.)',
    "a card that was dealt": r'"decks":\[.*?([2-9KQA])',
    "a cut": r'"decks":\[(\d)',
    "a score in the heading": r'"scores":\[-?(\d).*"termination"',
    "a score in over": r'"type":"over".*"scores":\[-?(\d).*"termination"',
    "a score in the news": r'"news":\[.*"scores":\[-?(\d)',
    "a payoff": r'"payoffs?":\[?-?(\d)',
    "cash": r'"(?:cash|bankroll)":(\d)[^}]*"legal"',
    "a card in a question": r'"type":"ask".*?"(?:card|hand|upcard)":\[?"(.)',
    "a card in the news": r'"news":\[{.*?"(?:cards?|hand|upcard)":\[?"(.)',
    "a legal answer": r'(?!(?s:.*)"illegal")(?s:.*)"bot":{"type":"answer".*"value":"?(\w)',
    "the question of an answer": r'"bot":{"type":"answer".*"ask":"(.)',
    "the match of an answer": r'"bot":{"type":"answer","match":"(.)',
    "a session that is resumed": r'"resume":"(.)',
    "an end": r'"type":"over".*"termination":{"kind":"(.)',
}
"""What to change: the first character that the group finds becomes another one of its kind."""

COMPLETED = r'"termination":{"kind":"completed","seat":null'
OFFENCE = r'"termination":{"kind":"\w+","seat":\d+,"text":"[^"]*"'
LIES = {
    "a crash of the first seat": (COMPLETED, '"termination":{"kind":"crash","seat":0'),
    "a match that is void": (COMPLETED, '"termination":{"kind":"void","seat":null'),
    "an end without an offence": (
        OFFENCE,
        '"termination":{"kind":"completed","seat":null,"text":""',
    ),
    "another offence of its own": (r'"kind":"illegal"(?!,"seat":\d,"text":"")', '"kind":"timeout"'),
    "another offender": ('"kind":"illegal","seat":0', '"kind":"illegal","seat":1'),
}
"""Another end, in each of the two or more places where it stands: pattern and replacement."""


def test_every_transcript_replays_in_both_with_the_same_result() -> None:
    headings = [json.loads(path.read_bytes().partition(b"\n")[0]) for path in TRANSCRIPTS]
    assert len({heading["game"] for heading in headings}) == 5

    replayed, wrong = replay(TRANSCRIPTS)

    assert failing(TRANSCRIPTS) == []
    assert wrong == []
    assert [(one["file"], one["game"], one["scores"]) for one in replayed] == [
        (str(path), heading["game"], heading["scores"])
        for path, heading in zip(TRANSCRIPTS, headings, strict=True)
    ]


@pytest.mark.parametrize("what", [*CHANGES, *LIES])
def test_both_notice_what_is_changed(what: str, changed: Changed) -> None:
    files = {file for file in changed.files if Path(file).parent.name == what}

    assert files
    assert files - changed.failed == set()
    assert files - changed.wrong == set()


class Changed(NamedTuple):
    """All transcripts with all changes, and which of these each end has noticed."""

    files: set[str]
    failed: set[str]
    wrong: set[str]


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Changed:
    """Both check all files at once, which saves some forty starts of a program."""
    folder = tmp_path_factory.mktemp("changed")
    files = [
        file
        for what, pattern in CHANGES.items()
        for path in TRANSCRIPTS
        if (file := change(path, pattern, folder / what)) is not None
    ]
    files += [
        file
        for what, (pattern, other) in LIES.items()
        for path in TRANSCRIPTS
        if (file := lie(path, pattern, other, folder / what)) is not None
    ]
    failed = failing(files)
    replayed, wrong = replay(files)
    assert len(replayed) + len(wrong) == len(files)
    return Changed({str(file) for file in files}, set(failed), set(wrong))


def change(path: Path, pattern: str, folder: Path) -> Path | None:
    """A copy of a transcript in which one byte is another, if it has such a one."""
    text = path.read_text(encoding="utf-8")
    found = re.search(pattern, text)
    if found is None:
        return None
    at = found.start(1)
    folder.mkdir(exist_ok=True)
    file = folder / path.name
    text = text[:at] + another(text[at]) + text[at + 1 :]
    file.write_text(text, encoding="utf-8")
    return file


def lie(path: Path, pattern: str, other: str, folder: Path) -> Path | None:
    """A copy of a transcript with another end in every place, if it has that end."""
    text, places = re.subn(pattern, other, path.read_text(encoding="utf-8"))
    if places < 2:
        return None
    folder.mkdir(exist_ok=True)
    file = folder / path.name
    file.write_text(text, encoding="utf-8")
    return file


def another(character: str) -> str:
    """A character of the same kind."""
    for kind in ("23456789", "KQA", "abcdef"):
        if character in kind:
            return kind[kind.index(character) - 1]
    return "2" if character in "01" else "x"


def failing(paths: Iterable[Path]) -> list[str]:
    """The transcripts that do not fit."""
    failed = []
    for path in paths:
        try:
            check(read(path.read_bytes().splitlines()))
        except Exception:  # whatever a changed byte leads to
            failed.append(str(path))
    return failed


def replay(paths: Iterable[Path]) -> tuple[list[Any], list[str]]:
    """What `replay.js` says of the transcripts that are right, and the names of the others."""
    done = run([tool("node"), str(REPLAY), *map(str, paths)])
    lines = done.stderr.splitlines()
    assert done.returncode == bool(lines)
    return [json.loads(line) for line in done.stdout.splitlines()], [
        line.partition(".jsonl: ")[0] + ".jsonl" for line in lines
    ]


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=TIMEOUT_S, check=False
    )
